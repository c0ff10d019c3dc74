package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/leasehold/leasehold/store"
)

func TestTransactionsThatMakeNoSenseAreNotSent(t *testing.T) {
	many := func(n int) (c []store.Condition, w []store.Write) {
		for i := range n {
			c = append(c, store.Absent(fmt.Sprint(i)))
			w = append(w, store.Delete(fmt.Sprint(i)))
		}
		return c, w
	}
	conditions, writes := many(store.MaxOps + 1)
	one := []store.Write{store.Put("k", nil)}
	when := func(c store.Condition) store.Txn {
		return store.Txn{Conditions: []store.Condition{c}, Writes: one}
	}
	for name, txn := range map[string]store.Txn{
		"no writes":              {Conditions: []store.Condition{store.Absent("k")}},
		"too many writes":        {Writes: writes},
		"too many conditions":    {Conditions: conditions, Writes: one},
		"key put twice":          {Writes: []store.Write{store.Put("k", nil), store.Put("k", nil)}},
		"key deleted twice":      {Writes: []store.Write{store.Delete("k"), store.Delete("k")}},
		"key put and deleted":    {Writes: []store.Write{store.Put("k", nil), store.Delete("k")}},
		"write without key":      {Writes: []store.Write{store.Put("", nil)}},
		"condition without key":  when(store.Condition{Absent: true}),
		"compares nothing":       when(store.Condition{Key: "k"}),
		"absent and existing":    when(store.Condition{Key: "k", Absent: true, Exists: true}),
		"absent with a revision": when(store.Condition{Key: "k", Absent: true, Modified: 1}),
		"negative revision":      when(store.Condition{Key: "k", Modified: -1}),
	} {
		if _, err := request(txn); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	conditions, writes = many(store.MaxOps)
	if _, err := request(store.Txn{Conditions: conditions, Writes: writes}); err != nil {
		t.Errorf("as many as fit: %v", err)
	}
}

func TestAConflictNamesTheKeysThatFailed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s := openStore(t, Config{Endpoints: []string{startEtcd(t, t.TempDir(), "127.0.0.1:0").Endpoint()}})
	created := put(ctx, t, s, "/a", "1")
	modified, err := s.Commit(ctx,
		store.Txn{
			Conditions: []store.Condition{store.CreatedAt("/a", created), store.Exists("/a")},
			Writes:     []store.Write{store.Put("/a", []byte("2"))},
		})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name       string
		conditions []store.Condition
		keys       []string // none: it holds
	}{
		{"all hold", []store.Condition{
			store.At("/a", modified), store.CreatedAt("/a", created), store.Exists("/a"),
			store.At("/b", 0),
		}, nil},
		{"both revisions", []store.Condition{{Key: "/a", Modified: modified, Created: created}}, nil},
		{
			"one of both revisions",
			[]store.Condition{{Key: "/a", Modified: modified, Created: created + 1}},
			[]string{"/a"},
		},
		{"old revision", []store.Condition{store.At("/a", created)}, []string{"/a"}},
		{"not absent", []store.Condition{store.Absent("/a"), store.Absent("/b")}, []string{"/a"}},
		{
			"not there",
			[]store.Condition{store.Exists("/a"), store.Exists("/b"), store.At("/c", 7)},
			[]string{"/b", "/c"},
		},
		{"one key, two conditions", []store.Condition{store.Exists("/b"), store.At("/b", 7)}, []string{"/b"}},
	} {
		_, err := s.Commit(ctx, store.Txn{
			Conditions: c.conditions,
			Writes:     []store.Write{store.Put("/written", []byte(c.name))},
		})
		if c.keys == nil {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) || !errors.Is(err, store.ErrConflict) || !slices.Equal(conflict.Keys, c.keys) {
			t.Errorf("%s: got %v, want a conflict on %v", c.name, err, c.keys)
		}
	}
	if kv, err := s.Get(ctx, "/written"); err != nil || string(kv.Value) != "both revisions" {
		t.Errorf("a transaction in conflict wrote %q, %v", kv.Value, err)
	}
}

func TestPuttingOnALeaseThatIsGone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s := openStore(t, Config{Endpoints: []string{startEtcd(t, t.TempDir(), "127.0.0.1:0").Endpoint()}})
	_, err := s.Commit(ctx, store.Txn{Writes: []store.Write{store.Put("/a", nil), store.PutLeased("/b", nil, 12345)}})
	if !errors.Is(err, store.ErrLeaseGone) {
		t.Fatalf("got %v", err)
	}
	if _, err := s.Get(ctx, "/a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("half a transaction happened: %v", err)
	}
}

// The write happens, and the answer is lost.
func TestALostAnswerIsUnknown(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	between := startProxy(t, server.Endpoint())
	direct := openStore(t, Config{Endpoints: []string{server.Endpoint()}})
	s := openStore(t, Config{Endpoints: []string{between.address()}})
	put(ctx, t, s, "/warm", "")

	between.freeze(toClient)
	impatient, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error)
	go func() {
		_, err := s.Commit(impatient, store.Txn{Writes: []store.Write{store.Put("/a", []byte("1"))}})
		failed <- err
	}()
	eventually(t, "the write has happened", func() bool { _, err := direct.Get(ctx, "/a"); return err == nil })
	stop()
	if err := <-failed; !errors.Is(err, store.ErrUnknown) || !errors.Is(err, context.Canceled) ||
		errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	between.thaw()
}

// Unavailable is a promise: what failed with it was never written.
func TestWhatIsUnavailableWasNotWritten(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	dir := t.TempDir()
	server := startEtcd(t, dir, "127.0.0.1:0")
	s := openStore(t, Config{Endpoints: []string{server.Endpoint()}})
	put(ctx, t, s, "/warm", "")
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	var promised []string
	for i := 0; len(promised) < 5; i++ {
		key := fmt.Sprintf("/p/%d", i)
		short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
		_, err := s.Commit(short, store.Txn{Writes: []store.Write{store.Put(key, nil)}})
		stop()
		switch {
		case errors.Is(err, store.ErrUnavailable):
			if !strings.Contains(err.Error(), "connection refused") {
				t.Errorf("%q does not say why", err)
			}
			promised = append(promised, key)
		case !errors.Is(err, store.ErrUnknown):
			t.Fatalf("got %v", err)
		case i > 100:
			t.Fatalf("still unknown: %v", err)
		}
	}
	short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	defer stop()
	if _, err := s.Get(short, "/warm"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("get without etcd: %v", err)
	}
	if _, err := s.Vitals(short); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("vitals without etcd: %v", err)
	}
	startEtcd(t, dir, server.Endpoint())
	put(ctx, t, s, "/after", "")
	for _, key := range promised {
		if _, err := s.Get(ctx, key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestErrorsOfEtcdAndWhatTheyMean(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		err  error
		sent bool
		want error // nil: none of the sentinels
	}{
		{rpctypes.ErrGRPCLeaseNotFound, true, store.ErrLeaseGone},
		{rpctypes.ErrGRPCPermissionDenied, true, store.ErrDenied},
		{rpctypes.ErrGRPCAuthFailed, true, store.ErrDenied},
		{rpctypes.ErrTooManyRequests, true, store.ErrUnavailable},
		{rpctypes.ErrGRPCNoSpace, true, store.ErrFull},
		{rpctypes.ErrGRPCTimeout, true, store.ErrUnknown},
		{rpctypes.ErrGRPCTimeoutDueToLeaderFail, true, store.ErrUnknown},
		{rpctypes.ErrGRPCStopped, true, store.ErrUnknown},
		{errors.New("anything"), true, store.ErrUnknown},
		{errors.New("anything"), false, store.ErrUnavailable},
		{rpctypes.ErrGRPCRequestTooLarge, true, nil},
	} {
		got := writeError(ctx, c.err, c.sent)
		for _, sentinel := range []error{
			store.ErrLeaseGone, store.ErrDenied, store.ErrUnavailable, store.ErrFull,
			store.ErrUnknown,
		} {
			if errors.Is(got, sentinel) != errors.Is(c.want, sentinel) {
				t.Errorf("%v, sent %t: got %v, want %v", c.err, c.sent, got, c.want)
			}
		}
	}
}

func TestListReadsManyPagesAtOneRevision(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s := openStore(t, Config{Endpoints: []string{startEtcd(t, t.TempDir(), "127.0.0.1:0").Endpoint()}})
	const n = 2*listPage + 10
	var rev store.Revision
	for i := 0; i < n; {
		var txn store.Txn
		for ; i < n && len(txn.Writes) < store.MaxOps; i++ {
			txn.Writes = append(txn.Writes, store.Put(fmt.Sprintf("/l/%06d", i), nil))
		}
		var err error
		if rev, err = s.Commit(ctx, txn); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Commit(ctx, store.Txn{Writes: []store.Write{
		store.Delete("/l/000005"),
		store.Put("/l/zzz", nil),
	}}); err != nil {
		t.Fatal(err)
	}
	l, err := s.List(ctx, "/l/", rev)
	if err != nil || len(l.KVs) != n || l.Revision != rev {
		t.Fatalf("%d keys at %d, %v", len(l.KVs), l.Revision, err)
	}
	for i, kv := range l.KVs {
		if want := fmt.Sprintf("/l/%06d", i); kv.Key != want {
			t.Fatalf("key %d is %s, want %s", i, kv.Key, want)
		}
	}
	if l, err := s.List(ctx, "/l/", 0); err != nil || len(l.KVs) != n || l.Revision != rev+1 ||
		l.KVs[n-1].Key != "/l/zzz" {
		t.Errorf("newest: %d keys at %d, %v", len(l.KVs), l.Revision, err)
	}
	var parts []store.KV
	for from := ""; ; {
		part, err := s.ListPart(ctx, "/l/", from, 0, rev)
		if parts = append(parts, part.KVs...); err != nil || part.Revision != rev || len(part.KVs) > listPage ||
			part.Behind != n-len(parts) {
			t.Fatalf("part from %q: %d keys at %d, %d behind them, %v", from, len(part.KVs), part.Revision, part.Behind,
				err)
		}
		if from = part.Next; from == "" {
			break
		}
	}
	if len(parts) != n || parts[0].Key != "/l/000000" || parts[n-1].Key != fmt.Sprintf("/l/%06d", n-1) {
		t.Errorf("in parts: %d keys, %d are there", len(parts), n)
	}
	if l, err := s.List(ctx, "/none/", 0); err != nil || len(l.KVs) != 0 || l.Revision != rev+1 {
		t.Errorf("nothing: %+v, %v", l, err)
	}
}
