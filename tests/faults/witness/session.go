package witness

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

var (
	errSilent    = fmt.Errorf("nothing was heard for %s", patience)
	errLookAgain = errors.New("what was to come next is compacted")
)

// session is one connection to one member.
type session struct {
	w      *Watcher
	cancel context.CancelCauseFunc
	asked  int            // Settle was called so often before etcd was asked
	target store.Revision // and this is what etcd was at then
}

// run sees how etcd is, and then what becomes of it.
func (s *session) run(ctx context.Context, member string) error {
	conn, err := dial(member, s.w.cfg.TLS)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing is sent any more
	silence := time.AfterFunc(patience, func() { s.cancel(errSilent) })
	defer silence.Stop()
	if err := s.begin(ctx, pb.NewKVClient(conn)); err != nil {
		return err
	}
	silence.Reset(patience)
	return s.follow(ctx, conn, silence)
}

// dial makes a connection of its own for each session: what a frozen member has left in an old one
// is ignored.
func dial(member string, secure *tls.Config) (*grpc.ClientConn, error) {
	transport := insecure.NewCredentials()
	if secure != nil {
		transport = credentials.NewTLS(secure)
	}
	return grpc.NewClient("passthrough:///"+member, grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))
}

// begin finds out whether this is the history that we know. All its reads are linearizable: a
// member that lags, or is alone, does not answer them.
func (s *session) begin(ctx context.Context, kv pb.KVClient) error {
	it := fresh
	if s.w.line > 0 {
		var err error
		if it, err = s.recall(ctx, kv); err != nil || it == known {
			return err
		}
	}
	head, found, err := list(ctx, kv, s.w.cfg.Prefix, 0)
	if err != nil {
		return err
	}
	s.look(it, head, found)
	return nil
}

// memory is whether etcd is the one that we saw before.
type memory int

const (
	fresh   memory = iota // we have seen none before
	known                 // it is
	foreign               // it is not
	unclear               // what it was then, it does not know any more
)

// recall says whether etcd was, at the last revision that we saw, as we saw it.
func (s *session) recall(ctx context.Context, kv pb.KVClient) (memory, error) {
	head, then, err := list(ctx, kv, s.w.cfg.Prefix, s.w.revision)
	switch {
	case errors.Is(err, rpctypes.ErrFutureRev):
		return foreign, nil
	case errors.Is(err, rpctypes.ErrCompacted):
		return unclear, nil
	case err != nil:
		return unclear, err
	case s.older(head), !s.w.keys.same(then):
		return foreign, nil
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.term = head.RaftTerm
	s.target = store.Revision(head.Revision)
	s.reached()
	return known, nil
}

// older reports whether etcd is another one, or one from before.
func (s *session) older(head *pb.ResponseHeader) bool {
	return head.ClusterId != s.w.cluster || head.RaftTerm < s.w.term || store.Revision(head.Revision) < s.w.revision
}

// look takes what is there for the state, and tells what is new about it.
func (s *session) look(it memory, head *pb.ResponseHeader, found keys) {
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	revision := store.Revision(head.Revision)
	before, since := w.keys, w.revision
	if it != unclear || s.older(head) || !before.leadsTo(found, since) {
		if w.line++; w.line > 1 {
			w.cfg.Logger.Warn("etcd has another history", "line", w.line, "revision", head.Revision, "before",
				int64(since))
		}
		before, since = keys{}, 0
	} else {
		text := fmt.Sprintf("line %d: changes after revision %d and before %d were compacted before they were seen",
			w.line, since, revision)
		w.cfg.Logger.Warn("changes were missed", "line", w.line, "after", int64(since), "before", head.Revision)
		w.cfg.Log.Add(history.Event{Mark: &history.Mark{What: history.Missed, Text: text}})
	}
	var news []history.Change
	for _, kv := range found {
		if kv.Modified > since {
			news = append(news, changed(w.line, kv))
		}
	}
	for key := range before {
		if _, there := found[key]; !there {
			news = append(news, history.Change{Line: w.line, Revision: revision, Key: key, Deleted: true})
		}
	}
	slices.SortFunc(news, func(a, b history.Change) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Key, b.Key))
	})
	for i := range news {
		news[i].Found = true
		w.cfg.Log.Add(history.Event{Change: &news[i]})
	}
	w.cluster, w.term, w.revision, w.keys = head.ClusterId, head.RaftTerm, revision, found
	s.target = revision
	s.reached()
	w.step()
}

// follow takes what comes until something ends it, and returns what.
func (s *session) follow(parent context.Context, conn *grpc.ClientConn, silence *time.Timer) error {
	// A member that knows no leader ends the stream instead of serving an old state.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(parent))
	var prompter sync.WaitGroup
	defer prompter.Wait()
	defer cancel()
	stream, err := pb.NewWatchClient(conn).Watch(ctx)
	if err != nil {
		return err
	}
	// One revision more than is needed: etcd tells no watch of progress that begins after the
	// newest.
	if err := stream.Send(
		&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
			Key: []byte(s.w.cfg.Prefix), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(s.w.cfg.Prefix)),
			StartRevision: int64(s.w.revision),
		}}},
	); err != nil {
		return err
	}
	prompter.Go(func() { s.ask(ctx, stream) })
	for {
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		silence.Reset(patience)
		if err := s.take(answer); err != nil {
			return err
		}
	}
}

// ask asks for progress until its context ends. It is the only one that sends on the stream.
func (s *session) ask(ctx context.Context, stream pb.Watch_WatchClient) {
	tick := time.NewTicker(hurry)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if time.Since(last) < prompt && !s.w.hurried() {
			continue
		}
		last = time.Now()
		if stream.Send(
			&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}},
		) != nil {
			return // who receives hears why
		}
	}
}

// take writes down what an answer tells. etcd sends whole revisions, since fragments are not asked
// for; its header may be ahead of the events.
func (s *session) take(answer *pb.WatchResponse) error {
	w := s.w
	switch {
	case answer.CompactRevision != 0:
		return errLookAgain
	case answer.Canceled:
		return errors.New(answer.CancelReason)
	case answer.Created:
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	reached := w.revision
	if len(answer.Events) == 0 {
		reached = max(reached, store.Revision(answer.Header.GetRevision()))
	}
	for _, e := range answer.Events {
		kv := kvOf(e.Kv)
		if kv.Modified <= w.revision {
			continue
		}
		reached = kv.Modified
		change := changed(w.line, kv)
		if e.Type == mvccpb.Event_DELETE {
			change = history.Change{Line: w.line, Revision: kv.Modified, Key: kv.Key, Deleted: true}
			delete(w.keys, kv.Key)
		} else {
			w.keys[kv.Key] = kv
		}
		w.cfg.Log.Add(history.Event{Change: &change})
	}
	w.revision = reached
	s.reached()
	w.step()
	return nil
}

// reached wakes the callers of Settle once the log has reached their revision. The lock is held.
func (s *session) reached() {
	if s.w.revision >= s.target && s.asked > s.w.settled {
		s.w.settled = s.asked
		s.w.step()
	}
}

func list(ctx context.Context, kv pb.KVClient, prefix string, at store.Revision) (*pb.ResponseHeader, keys, error) {
	answer, err := kv.Range(ctx, &pb.RangeRequest{
		Key:      []byte(prefix),
		RangeEnd: []byte(clientv3.GetPrefixRangeEnd(prefix)), Revision: int64(at),
	})
	if err != nil {
		return nil, nil, rpctypes.Error(err)
	}
	found := make(keys, len(answer.Kvs))
	for _, one := range answer.Kvs {
		found[string(one.Key)] = kvOf(one)
	}
	return answer.Header, found, nil
}

func changed(line int, kv store.KV) history.Change {
	return history.Change{
		Line: line, Revision: kv.Modified, Key: kv.Key, Value: kv.Value, Created: kv.Created,
		Lease: kv.Lease,
	}
}

func kvOf(kv *mvccpb.KeyValue) store.KV {
	return store.KV{
		Key: string(kv.Key), Value: kv.Value, Created: store.Revision(kv.CreateRevision),
		Modified: store.Revision(kv.ModRevision), Lease: store.LeaseID(kv.Lease),
	}
}
