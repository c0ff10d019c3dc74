package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/store"
)

// denied: etcd rejected our identity, or the identity has no right to the request.
func denied(err error) bool { return denial(err) != nil }

// denial returns which refusal it is; nil if it is none.
func denial(err error) error {
	etcdErr := rpctypes.Error(err)
	is := func(e error) bool { return errors.Is(etcdErr, e) }
	switch {
	case is(rpctypes.ErrUserEmpty), strings.Contains(err.Error(), "tls: certificate required"):
		return store.ErrNotLoggedIn
	case is(rpctypes.ErrAuthFailed):
		return store.ErrLogin
	case is(rpctypes.ErrPermissionDenied), is(rpctypes.ErrInvalidAuthToken), is(rpctypes.ErrUserNotFound):
		return store.ErrDenied
	}
	if code := status.Code(err); code == codes.PermissionDenied || code == codes.Unauthenticated {
		return store.ErrDenied
	}
	return nil
}

// loginEnded reports whether the login of a stream has expired, so that a new one may work.
func loginEnded(err error) bool {
	etcdErr := rpctypes.Error(err)
	return errors.Is(etcdErr, rpctypes.ErrInvalidAuthToken) || errors.Is(etcdErr, rpctypes.ErrAuthOldRevision)
}

// refused: etcd reported that it did not execute the request, for a reason that may pass.
func refused(err error) bool {
	err = rpctypes.Error(err)
	return errors.Is(err, rpctypes.ErrTooManyRequests) || errors.Is(err, rpctypes.ErrNoSpace) ||
		errors.Is(err, rpctypes.ErrAuthOldRevision) || // rights were changed in that moment
		// Not in etcd's table of errors: a member that knows no leader drops a proposal before
		// anyone sees it.
		strings.Contains(err.Error(), "raft proposal dropped")
}

// readError gives the error of a call that changes nothing its meaning.
func readError(ctx context.Context, err error) error {
	switch etcdErr := rpctypes.Error(err); {
	case errors.Is(etcdErr, rpctypes.ErrCompacted):
		return store.ErrCompacted
	case denied(err):
		return fmt.Errorf("%w: %s", denial(err), reason(err))
	case unanswered(ctx, err):
		return because(ctx, store.ErrUnavailable, err)
	}
	return err
}

// writeError gives the error of a call that changes something its meaning. sent: the request may
// have left.
func writeError(ctx context.Context, err error, sent bool) error {
	switch etcdErr := rpctypes.Error(err); {
	case errors.Is(etcdErr, rpctypes.ErrLeaseNotFound):
		return store.ErrLeaseGone
	case denied(err):
		return fmt.Errorf("%w: %s", denial(err), reason(err))
	case errors.Is(etcdErr, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w: compact and defragment etcd, then disarm its NOSPACE alarm", store.ErrFull)
	case errors.Is(etcdErr, rpctypes.ErrRequestTooLarge):
		return fmt.Errorf("larger than etcd takes in one request (its --max-request-bytes): %w", err)
	case refused(err) || !sent:
		return because(ctx, store.ErrUnavailable, err)
	case status.Code(err) == codes.InvalidArgument:
		return err // etcd rejects the request as invalid
	}
	return because(ctx, store.ErrUnknown, err)
}

// unanswered: no member answered, or the one that did could not serve us now.
func unanswered(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		refused(err) {
		return true
	}
	switch status.Code(rpctypes.Error(err)) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.ResourceExhausted:
		return true
	case codes.Unknown:
		var e rpctypes.EtcdError
		if errors.As(rpctypes.Error(err), &e) {
			return e.Code() == codes.Unavailable || e.Code() == codes.ResourceExhausted
		}
	default: // a member's answer
	}
	return false
}

// because wraps a sentinel and, where the context ended, the context's error as well.
func because(ctx context.Context, sentinel, err error) error {
	if cause := ctx.Err(); cause != nil {
		if last := lastConnectionError(err); last != "" {
			return fmt.Errorf("%w: %w (%s)", sentinel, cause, last)
		}
		return fmt.Errorf("%w: %w", sentinel, cause)
	}
	return fmt.Errorf("%w: %s", sentinel, reason(err))
}

// write does a call that changes something, once, and gives its error its meaning.
//
// Whether the request may have left is known from the peer: gRPC fills it in as soon as the call
// has a stream on some connection, and leaves it empty when no connection was to be had. A call
// that gRPC repeats by itself is one that the server certainly did not look at.
func write(ctx context.Context, call func(opts ...grpc.CallOption) error) error {
	var to peer.Peer
	err := call(grpc.Peer(&to), grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(math.MaxInt32))
	if err == nil {
		return nil
	}
	return writeError(ctx, err, to.Addr != nil)
}
