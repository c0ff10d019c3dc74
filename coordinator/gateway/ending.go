package gateway

import (
	"context"

	"google.golang.org/grpc/tap"

	"github.com/leasehold/leasehold/agent/protocol"
)

// endKey is the context key of what ends a stream.
type endKey struct{}

// endable gives a stream a context that the gateway can end. gRPC takes it before anything waits
// for the stream, so that a goroutine that waits for the agent wakes up when the context ends.
// Earlier messages are still sent, later ones are not. Otherwise only the goroutine that serves a
// stream could end it, and each stream would need a second goroutine.
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

// endOf returns what ends the stream with this context; nil if its server was not created with
// ServerOptions.
func endOf(ctx context.Context) context.CancelCauseFunc {
	end, _ := ctx.Value(endKey{}).(context.CancelCauseFunc)
	return end
}
