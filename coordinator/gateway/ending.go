package gateway

import (
	"context"

	"google.golang.org/grpc/tap"

	"github.com/leasehold/leasehold/agent/protocol"
)

// endKey finds what ends a stream in its context.
type endKey struct{}

// endable gives a stream a context that the gateway can end. gRPC takes it before anything waits
// for the stream, so that a goroutine that waits for what the agent says wakes up when that ends.
// What was said before still goes out, nothing that is said after. There is no other way to end a
// stream but from the goroutine that serves it: without this each would need a second one.
func endable(ctx context.Context, call *tap.Info) (context.Context, error) {
	if call.FullMethodName != protocol.Gateway_Session_FullMethodName {
		return ctx, nil
	}
	return withEnd(ctx), nil
}

func withEnd(ctx context.Context) context.Context {
	ctx, end := context.WithCancelCause(ctx)
	return context.WithValue(ctx, endKey{}, end)
}

// endOf returns what ends the stream with this context; nil if its server was not made with
// ServerOptions.
func endOf(ctx context.Context) context.CancelCauseFunc {
	end, _ := ctx.Value(endKey{}).(context.CancelCauseFunc)
	return end
}
