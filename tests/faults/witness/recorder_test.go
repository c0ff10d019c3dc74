package witness

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// replica is a recorded client of a database.
type replica struct {
	store.Store
	t    *testing.T
	db   *memstore.Database
	raw  *memstore.Store
	keys store.Keys
	path string
	file *history.File
}

func newReplica(t *testing.T) *replica {
	t.Helper()
	r := &replica{
		t: t, db: memstore.New(memstore.Config{}), keys: store.KeysOf("default"),
		path: filepath.Join(t.TempDir(), "history"),
	}
	t.Cleanup(r.db.Close)
	r.raw = r.db.Connect()
	var err error
	if r.file, err = history.Append(r.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.file.Close(); err != nil {
			t.Error(err)
		}
	})
	r.Store = Record(r.raw, Recording{Replica: "a", Process: 7, Keys: r.keys, File: r.file})
	return r
}

// last is how the last commit was written down: as it began and, unless it is still under way, as
// it ended.
func (r *replica) last() (begun, ended *history.Commit) {
	r.t.Helper()
	events, err := history.Read(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range events {
		c := e.Commit
		if c.Replica != "a" || c.Process != 7 {
			r.t.Fatalf("whose is %+v?", c)
		}
		if !c.Ended {
			begun, ended = c, nil
			continue
		}
		if begun == nil || c.ID != begun.ID || !slices.Equal(c.Keys, begun.Keys) || c.Fence != begun.Fence ||
			c.Believed != begun.Believed {
			r.t.Fatalf("%+v ended, and %+v had begun", c, begun)
		}
		ended = c
	}
	return begun, ended
}

func (r *replica) elect(lease store.Lease) store.Fence {
	r.t.Helper()
	fence, err := store.Elect(r.t.Context(), r, r.keys, lease, store.Leader{Schema: store.Schema, Replica: "a"})
	if err != nil {
		r.t.Fatal(err)
	}
	return fence
}

func (r *replica) lease() store.Lease {
	r.t.Helper()
	lease, err := r.Grant(r.t.Context(), time.Hour)
	if err != nil {
		r.t.Fatal(err)
	}
	return lease
}

func (r *replica) write(conditions ...store.Condition) error {
	_, err := r.Commit(r.t.Context(),
		store.Txn{Conditions: conditions, Writes: []store.Write{store.Put(r.keys.Instance("web-1"), []byte("{}"))}})
	return err
}

func TestCommitsAreWrittenDownWithTheirOutcome(t *testing.T) {
	r := newReplica(t)
	fence := r.elect(r.lease())
	wants := func(outcome history.Outcome, compared store.Fence) {
		t.Helper()
		_, c := r.last()
		if c == nil || c.Outcome != outcome || c.Fence != compared || c.Believed != fence ||
			(c.At != 0) != (outcome == history.Happened) ||
			!slices.Equal(c.Keys, []string{r.keys.Instance("web-1")}) {
			t.Errorf("written down: %+v", c)
		}
	}
	if err := r.write(fence.Condition()); err != nil {
		t.Fatal(err)
	}
	wants(history.Happened, fence)
	if err := r.write(); err != nil { // as a leader must not
		t.Fatal(err)
	}
	wants(history.Happened, store.Fence{})
	if r.write(fence.Condition(), store.Absent(r.keys.Instance("web-1"))) == nil {
		t.Fatal("a condition that does not hold was passed over")
	}
	wants(history.Refused, fence)
	r.raw.Faults().LoseAnswer()
	if r.write(fence.Condition()) == nil {
		t.Fatal("the answer was not lost")
	}
	wants(history.Unknown, fence)
	r.raw.Faults().Cut()
	if r.write(fence.Condition()) == nil {
		t.Fatal("the connection was not cut")
	}
	wants(history.Refused, fence)
}

func TestTheFenceThatAReplicaBelievesInIsKnownFromHowItStood(t *testing.T) {
	for name, fault := range map[string]func(memstore.ConnectionFaults){
		"won":             func(memstore.ConnectionFaults) {},
		"the answer lost": func(f memstore.ConnectionFaults) { f.LoseAnswer() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newReplica(t)
			for range 2 {
				lease := r.lease()
				fault(r.raw.Faults())
				fence := r.elect(lease)
				if err := r.write(); err != nil {
					t.Fatal(err)
				}
				if _, c := r.last(); c.Believed != fence || c.Fence != (store.Fence{}) {
					t.Fatalf("it holds %+v, and believes in %+v", fence, c.Believed)
				}
				if err := fence.Resign(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestACommitThatIsUnderWayIsWrittenDown(t *testing.T) {
	r := newReplica(t)
	if begun, _ := r.last(); begun != nil {
		t.Fatalf("%+v", begun)
	}
	r.db.Faults().Freeze()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := r.Commit(ctx, store.Txn{Writes: []store.Write{store.Put(r.keys.Served(), nil)}})
		done <- err
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for begun, ended := r.last(); begun == nil; begun, ended = r.last() {
		if ended != nil {
			t.Fatalf("ended: %+v", ended)
		}
		<-tick.C
	}
	cancel()
	if err := <-done; err == nil {
		t.Fatal("it happened")
	}
	if _, ended := r.last(); ended == nil || ended.Outcome == history.Happened {
		t.Fatalf("%+v", ended)
	}
}
