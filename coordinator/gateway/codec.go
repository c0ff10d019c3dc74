package gateway

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that this one wraps
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/guard"
)

// codec is gRPC's codec for protobuf that also decodes into a frame. A decoded message never refers
// to gRPC's buffers, which gRPC reuses.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// frame receives a message together with the error of decoding it. gRPC would hide that error from
// the gateway.
type frame struct {
	received received
	err      error
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if f, ok := v.(*frame); ok {
		whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer whole.Free()
		f.received, f.err = decode(whole.ReadOnlyData())
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

// received is an agent's message with its size.
type received struct {
	*protocol.AgentMessage
	bytes int
}

// receive returns the next message of an agent. The error may be a guard.Violation.
func receive(stream grpc.ServerStream) (received, error) {
	var f frame
	if err := stream.RecvMsg(&f); err != nil {
		if status.Code(err) == codes.ResourceExhausted {
			return received{}, guard.MessageTooLong
		}
		return received{}, err
	}
	return f.received, f.err
}

// decode decodes a message unless it has too many fields.
func decode(data []byte) (received, error) {
	msg := &protocol.AgentMessage{}
	if err := guard.CountFields(data, msg.ProtoReflect().Descriptor()); err != nil {
		return received{}, err
	}
	if err := proto.Unmarshal(data, msg); err != nil {
		return received{}, fmt.Errorf("%w: %w", guard.MessageMalformed, err)
	}
	return received{msg, len(data)}, nil
}
