package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/store"
)

var (
	// errSilent ends a session that received nothing for Config.WatchSilence.
	errSilent = errors.New("no event and no progress notice")
	// errTooEarly ends a session whose first revision is compacted while the one it needs is not.
	errTooEarly = errors.New("began one revision too early")
)

// Watch follows the contract of store.Store. A consumer that takes its time loses nothing: etcd
// keeps what is not taken, until it is compacted.
func (s *Store) Watch(ctx context.Context, prefix string, from store.Revision) <-chan store.Batch {
	w := &watch{store: s, prefix: prefix, next: from, out: make(chan store.Batch)}
	if !s.start(func() { w.run(ctx) }) {
		close(w.out)
	}
	return w.out
}

// watch is one call of Watch: a row of sessions, each of which begins where the one before it
// ended.
type watch struct {
	store  *Store
	prefix string
	next   store.Revision // everything before it has been delivered; 0 until the first session has begun "now"
	exact  bool           // ask for next itself: the revision before it is compacted
	heard  bool           // something came in the current session
	last   store.KV       // the newest value that was delivered: etcd must still have it in its history
	out    chan store.Batch
}

func (w *watch) run(ctx context.Context) {
	defer close(w.out)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.store.ctx, cancel)()

	pause, interrupted := 50*time.Millisecond, false
	for {
		w.heard = false
		err := w.watchOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, store.ErrCompacted) || errors.Is(err, store.ErrDenied) {
			w.deliver(ctx, store.Batch{
				Revision: max(w.next-1, 0),
				Err:      fmt.Errorf("watch %s from revision %d: %w", w.prefix, w.next, err),
			})
			return
		}
		if errors.Is(err, errTooEarly) {
			continue
		}
		w.exact = false
		level := slog.LevelDebug // an outage is worth one line
		if w.heard || !interrupted {
			pause, level = 50*time.Millisecond, slog.LevelWarn
		}
		interrupted = true
		w.store.cfg.Logger.Log(ctx, level, "watch interrupted, opening it again where it ended",
			"prefix", w.prefix, "revision", int64(w.next), "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, time.Second)
	}
}

// watchOnce watches until something ends it, and returns the reason.
//
// It speaks etcd's protocol on a stream of its own and does not use the etcd client's watcher. That
// watcher resumes by itself, at the revision after the last one delivered, and etcd sends such a
// watch no progress until something is written: after every reconnection an idle watch would be as
// silent as a broken one. It also reads on without bound while the consumer is busy. On a stream of
// our own, etcd keeps what is not read yet, as history.
func (w *watch) watchOnce(parent context.Context) error {
	// A member that knows no leader ends the stream instead of serving an old state.
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(parent))
	defer cancel(nil)
	limit := w.store.cfg.WatchSilence
	silence := time.AfterFunc(limit, func() { cancel(fmt.Errorf("%w for %s", errSilent, limit)) })
	defer silence.Stop()

	stream, err := pb.NewWatchClient(w.store.data.ActiveConnection()).Watch(ctx, grpc.WaitForReady(true),
		grpc.MaxCallRecvMsgSize(math.MaxInt32))
	if err == nil {
		err = stream.Send(w.request())
	}
	if err != nil && !errors.Is(err, io.EOF) { // EOF: receiving returns the reason
		return watchError(firstOf(context.Cause(ctx), err))
	}
	var busy atomic.Bool // the consumer has not taken the last batch yet: more notices would only pile up
	var prompter sync.WaitGroup
	defer prompter.Wait()
	defer cancel(nil)
	prompter.Go(func() { askForProgress(ctx, stream, &busy) })

	for {
		resp, err := stream.Recv()
		if err != nil {
			return watchError(firstOf(context.Cause(ctx), err))
		}
		silence.Stop()
		batch, err := w.take(resp)
		if err == nil && resp.Created {
			err = w.sameHistory(ctx)
		}
		if err != nil {
			return err
		}
		w.heard = true
		if batch.Revision != 0 {
			busy.Store(true)
			if !w.deliver(ctx, batch) {
				return ctx.Err()
			}
			busy.Store(false)
			w.next = batch.Revision + 1
			for _, e := range batch.Events {
				if !e.Deleted {
					w.last = store.KV{Key: e.KV.Key, Modified: e.KV.Modified}
				}
			}
		}
		silence.Reset(limit)
	}
}

// sameHistory reports whether etcd still has the history that was delivered. If its data was lost
// and then restored from a snapshot, or its data directory was replaced by an older one, its
// revision may be higher than ours and its cluster's ID the same: a watch that continued there
// would never report the differences (SAFE-3). So sameHistory reads the newest value that was
// delivered, at that value's own revision. If that revision is compacted, nothing can be said; it
// is then compacted in most restored data, too.
func (w *watch) sameHistory(ctx context.Context) error {
	if w.last.Key == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.store.cfg.WatchSilence)
	defer cancel()
	resp, err := w.store.data.Get(ctx, w.last.Key, clientv3.WithRev(int64(w.last.Modified)), clientv3.WithKeysOnly())
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return nil
	case errors.Is(err, rpctypes.ErrFutureRev),
		err == nil && (len(resp.Kvs) == 0 || resp.Kvs[0].ModRevision != int64(w.last.Modified)):
		return fmt.Errorf("%w: etcd has another history: at revision %d it does not have what was seen then",
			store.ErrCompacted, w.last.Modified)
	case err != nil:
		return watchError(err)
	}
	return nil
}

// request asks for one revision more than needed, which take drops again: etcd reports progress to
// no watch that begins after the newest revision. It asks for exactly what is needed where the one
// before is compacted.
func (w *watch) request() *pb.WatchRequest {
	from, end := rangeOf(w.prefix)
	start := w.next
	if start > 1 && !w.exact {
		start--
	}
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte(from), RangeEnd: []byte(end), StartRevision: int64(start),
	}}}
}

// askForProgress asks each second until ctx ends. It is the only one that sends on the stream.
func askForProgress(ctx context.Context, stream pb.Watch_WatchClient, busy *atomic.Bool) {
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	ask := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if busy.Load() {
			continue
		}
		if err := stream.Send(ask); err != nil {
			return // the session gets the reason when it receives
		}
	}
}

// take makes a batch of a response, or the zero batch if there is nothing to deliver.
//
// etcd sends whole revisions, since fragments are not asked for. Its header may be ahead of the
// events while a watch catches up, so what was delivered is counted from the events. It may also be
// behind what was delivered: a follower that lags answers with its own revision.
func (w *watch) take(resp *pb.WatchResponse) (store.Batch, error) {
	switch {
	case resp.CompactRevision != 0:
		if !w.exact && store.Revision(resp.CompactRevision) <= w.next {
			w.exact = true
			return store.Batch{}, errTooEarly
		}
		return store.Batch{}, fmt.Errorf("%w: kept from revision %d on", store.ErrCompacted, resp.CompactRevision)
	case resp.Canceled:
		return store.Batch{}, watchError(errors.New(resp.CancelReason))
	case resp.Created:
		if w.next == 0 {
			w.next = store.Revision(resp.Header.GetRevision()) + 1
		}
		return store.Batch{}, nil
	case len(resp.Events) == 0:
		return store.Batch{Revision: max(store.Revision(resp.Header.GetRevision()), w.next-1)}, nil
	}
	batch := store.Batch{Events: make([]store.Event, 0, len(resp.Events))}
	for _, e := range resp.Events {
		if store.Revision(e.Kv.ModRevision) < w.next {
			continue
		}
		event := store.Event{KV: kvOf(e.Kv)}
		if e.Type == mvccpb.Event_DELETE {
			event = store.Event{
				KV:      store.KV{Key: string(e.Kv.Key), Modified: store.Revision(e.Kv.ModRevision)},
				Deleted: true,
			}
		}
		batch.Events = append(batch.Events, event)
		batch.Revision = event.KV.Modified
	}
	return batch, nil
}

// watchError distinguishes a refusal, which ends a watch, from an interruption. A watch that is
// refused on creation has no error code, only a text. An expired token is no refusal: the next
// session logs in again.
func watchError(err error) error {
	text := err.Error()
	for _, final := range []error{rpctypes.ErrPermissionDenied, rpctypes.ErrAuthFailed, rpctypes.ErrUserNotFound} {
		if strings.Contains(text, rpctypes.ErrorDesc(final)) {
			return fmt.Errorf("%w: %s", store.ErrDenied, reason(err))
		}
	}
	if _, ok := status.FromError(err); ok {
		return errors.New(reason(err))
	}
	return err
}

// deliver hands a batch to the consumer. It reports false if ctx ended first.
func (w *watch) deliver(ctx context.Context, b store.Batch) bool {
	select {
	case w.out <- b:
		return true
	case <-ctx.Done():
		return false
	}
}
