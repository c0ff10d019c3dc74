package gateway

import (
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // whose codec is extended
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/leasehold/leasehold/agent/protocol"
)

// A message is weighed before it is decoded: one of 256 KiB may hold a hundred thousand empty parts, which take a hundred times that memory
// (SEC-5).

// frame takes a message that is weighed and read where it lies.
type frame struct {
	letter letter
	err    error
}

// frames is gRPC's own codec, which can also weigh what it reads. Nothing that is read refers to gRPC's buffers, which are used again.
type frames struct{ encoding.CodecV2 }

func newFrames() frames { return frames{encoding.GetCodecV2("proto")} }

func (c frames) Unmarshal(data mem.BufferSlice, v any) error {
	if f, ok := v.(*frame); ok {
		whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer whole.Free()
		f.letter, f.err = readLetter(whole.ReadOnlyData())
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

// letter is what came from an agent, and how much it was.
type letter struct {
	*protocol.AgentMessage
	bytes int
	in    *reading // where it was read; nil: in a place of its own
}

// offence is something that no agent does. Its text is one of the program's.
type offence string

func (o offence) Error() string { return string(o) }

// Offences of a single message.
const (
	offenceTooLong   = offence("a message is too long")
	offenceParts     = offence("a message has too many parts")
	offenceMalformed = offence("a message cannot be read")
)

// receive returns the next message of an agent. The error may be an offence.
func receive(stream grpc.ServerStream) (letter, error) {
	var f frame
	if err := stream.RecvMsg(&f); err != nil {
		if status.Code(err) == codes.ResourceExhausted {
			return letter{}, offenceTooLong
		}
		return letter{}, err
	}
	return f.letter, f.err
}

// readLetter decodes a message, if it may be one.
func readLetter(data []byte) (letter, error) {
	if report, all := reportIn(data); all && len(data) < 2*protocol.MostParts { // a part has two bytes at least
		in, _ := readings.Get().(*reading)
		if err := in.read(report); err != nil {
			return letter{}, fmt.Errorf("%w: %w", offenceMalformed, err)
		}
		return letter{&in.message, len(data), in}, nil
	}
	msg := &protocol.AgentMessage{}
	left := protocol.MostParts
	if err := weigh(data, msg.ProtoReflect().Descriptor(), &left); err != nil {
		return letter{}, err
	}
	if err := proto.Unmarshal(data, msg); err != nil {
		return letter{}, fmt.Errorf("%w: %w", offenceMalformed, err)
	}
	return letter{msg, len(data), nil}, nil
}

// weigh counts the fields of a message, those of its parts included.
func weigh(data []byte, as protoreflect.MessageDescriptor, left *int) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errors.Join(offenceMalformed, protowire.ParseError(n))
		}
		if *left--; *left < 0 {
			return offenceParts
		}
		data = data[n:]
		n = protowire.ConsumeFieldValue(number, kind, data)
		if n < 0 {
			return errors.Join(offenceMalformed, protowire.ParseError(n))
		}
		if field := as.Fields().ByNumber(number); field != nil && field.Message() != nil && kind == protowire.BytesType {
			part, _ := protowire.ConsumeBytes(data)
			if err := weigh(part, field.Message(), left); err != nil {
				return err
			}
		}
		data = data[n:]
	}
	return nil
}
