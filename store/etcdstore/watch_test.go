package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/store"
)

// put writes until it is certain that the key holds the value, and returns the revision.
func put(ctx context.Context, t *testing.T, s *Store, key, value string) store.Revision {
	t.Helper()
	for {
		_, err := s.Commit(ctx, store.Txn{
			Conditions: []store.Condition{store.Absent(key)},
			Writes:     []store.Write{store.Put(key, []byte(value))},
		})
		if err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown) &&
			!errors.Is(err, store.ErrConflict) {
			t.Fatal(err)
		}
		kv, err := s.Get(ctx, key)
		switch {
		case err == nil:
			return kv.Modified
		case ctx.Err() != nil:
			t.Fatalf("put %s: %v", key, err)
		}
	}
}

// collect reads a watch until it has seen n events, and checks that revisions only grow.
func collect(ctx context.Context, t *testing.T, w <-chan store.Batch, n int) []store.Event {
	t.Helper()
	var events []store.Event
	var last store.Revision
	for len(events) < n {
		select {
		case b, ok := <-w:
			if !ok || b.Err != nil {
				t.Fatalf("watch ended after %d of %d events: %v", len(events), n, b.Err)
			}
			if b.Revision < last {
				t.Fatalf("revision %d after %d", b.Revision, last)
			}
			for _, e := range b.Events {
				if e.KV.Modified <= last || e.KV.Modified > b.Revision {
					t.Fatalf("event of revision %d in a batch that goes from %d to %d", e.KV.Modified, last+1,
						b.Revision)
				}
			}
			last = b.Revision
			events = append(events, b.Events...)
		case <-ctx.Done():
			t.Fatalf("%d of %d events", len(events), n)
		}
	}
	return events
}

// proves SAFE-3: what ends a watch for a while leaves no gap in it
func TestWatchSurvivesRestartsOfEtcd(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	dir := t.TempDir()
	server := startEtcd(t, dir, "127.0.0.1:0")
	s := openStore(t, Config{Endpoints: []string{server.Endpoint()}})
	w := s.Watch(ctx, "/p/", 1)

	const restarts, each = 3, 20
	var want []string
	var revisions []store.Revision
	for r := range restarts + 1 {
		for i := range each {
			key := fmt.Sprintf("/p/%d-%02d", r, i)
			want = append(want, key)
			revisions = append(revisions, put(ctx, t, s, key, "v"))
		}
		if r < restarts {
			if err := server.Close(); err != nil {
				t.Fatal(err)
			}
			server = startEtcd(t, dir, server.Endpoint())
		}
	}
	for i, e := range collect(ctx, t, w, len(want)) {
		if e.KV.Key != want[i] || e.KV.Modified != revisions[i] {
			t.Fatalf("event %d is %s of revision %d, want %s of %d", i, e.KV.Key, e.KV.Modified, want[i], revisions[i])
		}
	}
}

// etcd comes back with other data, at a revision that is no lower: from there on nothing would tell
// of what differs. The consumer has to list again.
//
// proves SAFE-3, SAFE-15
func TestWatchEndsInAnotherHistory(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	s := openStore(t, Config{Endpoints: []string{server.Endpoint()}})
	w := s.Watch(ctx, "/p/", 1)
	put(ctx, t, s, "/p/a", "v")
	collect(ctx, t, w, 1)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	elsewhere := startEtcd(t, other, "127.0.0.1:0")
	before := openStore(t, Config{Endpoints: []string{elsewhere.Endpoint()}})
	for i := range 20 {
		put(ctx, t, before, fmt.Sprintf("/p/%d", i), "v")
	}
	if err := elsewhere.Close(); err != nil {
		t.Fatal(err)
	}
	startEtcd(t, other, server.Endpoint())
	for b := range w {
		if len(b.Events) > 0 {
			t.Fatalf("told of a change in another history: %+v", b.Events[0].KV)
		}
		if b.Err != nil {
			if !errors.Is(b.Err, store.ErrCompacted) {
				t.Fatalf("ended with %v", b.Err)
			}
			return
		}
	}
	t.Fatal("the watch ended without a reason")
}

// proves SAFE-3: a watch that hears nothing is opened again, and misses nothing
func TestWatchSurvivesAnEtcdThatFreezes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	between := startProxy(t, server.Endpoint())
	direct := openStore(t, Config{Endpoints: []string{server.Endpoint()}})
	s := openStore(t, Config{Endpoints: []string{between.address()}, WatchSilence: 1500 * time.Millisecond})

	w := s.Watch(ctx, "/p/", 1)
	put(ctx, t, direct, "/p/a", "")
	collect(ctx, t, w, 1)
	between.freeze(toServer, toClient)
	put(ctx, t, direct, "/p/b", "")
	quiet := time.NewTimer(2 * time.Second) // longer than WatchSilence: at least one session gives up
	for frozen := true; frozen; {
		select {
		case b := <-w:
			if len(b.Events) > 0 || b.Err != nil {
				t.Fatalf("through a frozen connection: %+v", b)
			}
		case <-quiet.C:
			frozen = false
		}
	}
	put(ctx, t, direct, "/p/c", "")
	between.thaw()
	got := collect(ctx, t, w, 2)
	if got[0].KV.Key != "/p/b" || got[1].KV.Key != "/p/c" || len(got) != 2 {
		t.Fatalf("got %+v", got)
	}
}

func TestWatchLosesNothingWhenTheConsumerIsSlow(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	// The consumer takes longer than a watch may be silent: that is not etcd's silence.
	s := openStore(t, Config{Endpoints: []string{server.Endpoint()}, WatchSilence: 1100 * time.Millisecond})
	w := s.Watch(ctx, "/p/", 1)
	const n = 1500
	began := time.Now()
	for i := range n {
		put(ctx, t, s, fmt.Sprintf("/p/%04d", i), strings.Repeat("x", 100))
	}
	eventually(t, "the consumer has been away for longer than the silence limit",
		func() bool { return time.Since(began) > 2*time.Second })
	for i, e := range collect(ctx, t, w, n) {
		if want := fmt.Sprintf("/p/%04d", i); e.KV.Key != want {
			t.Fatalf("event %d is %s, want %s", i, e.KV.Key, want)
		}
	}
}

func TestWatchReportsProgressWhileNothingHappens(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	s := openStore(t, Config{Endpoints: []string{server.Endpoint()}})
	rev := put(ctx, t, s, "/elsewhere", "")
	// One begins with the past and one with what is yet to come.
	one, two := s.Watch(ctx, "/one/", 1), s.Watch(ctx, "/two/", rev+1)
	for _, w := range []<-chan store.Batch{one, two} {
		for range 2 {
			for b := range w {
				if len(b.Events) > 0 || b.Err != nil {
					t.Fatalf("got %+v", b)
				}
				if b.Revision >= rev {
					break
				}
			}
		}
	}
	if ctx.Err() != nil {
		t.Fatal("no progress")
	}
}

func TestWatchEndsWhereItsRevisionIsCompacted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	s := openStore(t, Config{Endpoints: []string{server.Endpoint()}})
	put(ctx, t, s, "/p/a", "")
	rev := put(ctx, t, s, "/p/b", "")
	if _, err := s.data.Compact(ctx, int64(rev), clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	// The first revision that is kept can be watched from, and what was asked for is delivered
	// exactly.
	fromKept := s.Watch(ctx, "/p/", rev)
	if got := collect(ctx, t, fromKept, 1); got[0].KV.Modified != rev {
		t.Errorf("from the first revision that is kept: %+v", got)
	}
	var last store.Batch
	n := 0
	for b := range s.Watch(ctx, "/p/", 1) {
		last = b
		n++
	}
	if n != 1 || !errors.Is(last.Err, store.ErrCompacted) {
		t.Fatalf("%d batches, the last %+v", n, last)
	}
	if _, err := s.List(ctx, "/p/", 1); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("list at a compacted revision: %v", err)
	}
}

func TestWatchEndsWithItsContextAndWithTheStore(t *testing.T) {
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	s := openStore(t, Config{Endpoints: []string{server.Endpoint()}})
	ctx, cancel := context.WithCancel(t.Context())
	w := s.Watch(ctx, "/p/", 1)
	other := s.Watch(t.Context(), "/p/", 1)
	cancel()
	for b := range w {
		if b.Err != nil {
			t.Errorf("an error for a context that ended: %v", b.Err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range other {
	}
	for range s.Watch(t.Context(), "/p/", 1) {
		t.Error("a closed store delivers")
	}
}

// A follower that lags behind answers with a revision that is older than what was delivered.
func TestWatchNeverGoesBack(t *testing.T) {
	put := func(rev int64) *mvccpb.Event {
		return &mvccpb.Event{Type: mvccpb.Event_PUT, Kv: &mvccpb.KeyValue{Key: []byte("k"), ModRevision: rev}}
	}
	header := func(rev int64) *pb.ResponseHeader { return &pb.ResponseHeader{Revision: rev} }
	for _, c := range []struct {
		name   string
		next   store.Revision
		resp   *pb.WatchResponse
		events int
		rev    store.Revision
	}{
		{"progress ahead", 10, &pb.WatchResponse{Header: header(15)}, 0, 15},
		{"progress behind", 10, &pb.WatchResponse{Header: header(5)}, 0, 9},
		{
			"events, header ahead of them", 10,
			&pb.WatchResponse{Header: header(50), Events: []*mvccpb.Event{put(10), put(12)}}, 2, 12,
		},
		{
			"events, some had before", 10,
			&pb.WatchResponse{Header: header(50), Events: []*mvccpb.Event{put(8), put(9), put(11)}}, 1, 11,
		},
		{
			"events, all had before", 10, &pb.WatchResponse{Header: header(50), Events: []*mvccpb.Event{put(8), put(9)}},
			0, 0,
		},
		{"created", 10, &pb.WatchResponse{Header: header(50), Created: true}, 0, 0},
	} {
		w := &watch{next: c.next}
		b, err := w.take(c.resp)
		if err != nil || len(b.Events) != c.events || b.Revision != c.rev {
			t.Errorf("%s: got %d events up to %d, %v; want %d up to %d", c.name, len(b.Events), b.Revision, err,
				c.events, c.rev)
		}
	}
}
