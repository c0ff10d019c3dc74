package trial

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/seed"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

// observed is an observer of a shard that is not there: a test tells it what has changed.
type observed struct {
	t *testing.T
	*observer
}

func observing(t *testing.T, instances ...string) observed {
	keys := store.KeysOf("bench-1")
	return observed{t, newObserver(keys, seed.Shard{Instances: instances})}
}

func (o observed) put(key string, record any) {
	o.t.Helper()
	o.take(store.Batch{Events: []store.Event{{KV: store.KV{Key: key, Value: store.Encode(record)}}}})
	if err := o.failed(); err != nil {
		o.t.Fatal(err)
	}
}

func (o observed) gone(keys ...string) {
	for _, key := range keys {
		o.take(store.Batch{Events: []store.Event{{KV: store.KV{Key: key}, Deleted: true}}})
	}
}

func (o observed) phase(id string, phase store.Phase, replaces string) {
	o.t.Helper()
	o.put(o.keys.Instance(id), store.Instance{Schema: store.Schema, ID: id, Phase: phase, Replaces: replaces})
}

func (o observed) leased(ids ...string) {
	o.t.Helper()
	for _, id := range ids {
		o.put(o.keys.Alive(id), store.Alive{Schema: store.Schema, Instance: id})
	}
}

func (o observed) decided(id string, verdict store.Verdict) {
	o.t.Helper()
	o.put(o.keys.Event(time.Now(), id),
		store.JournalEntry{
			Schema: store.Schema, Instance: id, Verdict: verdict, Rule: "DET-17",
			Why: "its lease ended",
		})
}

// wants compares a number that was counted.
func wants(t *testing.T, what string, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("%d %s, want %d", got, what, want)
	}
}

func TestPhasesAndLeasesAreCounted(t *testing.T) {
	o := observing(t, "a", "b", "c")
	o.phase("a", store.Running, "")
	o.phase("b", store.Checking, "")
	o.phase("b", store.Running, "")
	o.phase("b", store.Running, "") // something else of it has changed
	o.leased("a", "b", "c")
	wants(t, "instances are healthy", o.running(), 2)
	o.gone(o.keys.Alive("c"))
	running, leased := o.well()
	wants(t, "instances are healthy", running, 2)
	wants(t, "have a lease", leased, 2)
	wants(t, "of a and c have none", o.endedOf([]string{"a", "c"}), 1)
	o.leased("c")
	wants(t, "of a and c have none", o.endedOf([]string{"a", "c"}), 0)
	wants(t, "leases of harmless agents ended", o.lost(nil), 1)
	wants(t, "leases of harmless agents ended, but for c", o.lost(map[string]bool{"c": true}), 0)
	o.gone(o.keys.Instance("a"))
	wants(t, "instances are healthy once one is gone", o.running(), 1)
	if got, want := o.count(), (counts{removed: 1, ended: 1}); got != want {
		t.Errorf("%+v is counted, want %+v", got, want)
	}
}

// An instance is given up when its replacement is recorded, or when it is to go itself, whichever
// comes first.
func TestGivenUpWhenItsReplacementIsRecorded(t *testing.T) {
	o := observing(t, "a", "b", "c")
	begun := time.Now()
	o.phase("d", store.Pending, "a")
	first := o.given([]string{"a"})["a"]
	o.phase("a", store.Deleting, "")
	o.phase("b", store.Draining, "")
	o.phase("c", store.Running, "")
	given := o.given([]string{"a", "b", "c", "x"})
	if ids := slices.Sorted(maps.Keys(given)); !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("%q are given up, want a and b", ids)
	}
	if first.Before(begun) || !given["a"].Equal(first) {
		t.Errorf("a was given up at %s, want %s, when its replacement was recorded", given["a"], first)
	}
	wants(t, "instances are made", o.count().made, 1)
}

func TestJudgingAnUnharmedInstanceIsWrong(t *testing.T) {
	o := observing(t, "a", "b", "c", "d")
	o.decided("a", store.Lost)
	o.decided("b", store.Lost)
	o.decided("b", store.Dead) // the first says why
	o.decided("c", store.Suspect)
	o.decided("", store.Lost)
	o.phase("b", store.Deleting, "")
	o.phase("d", store.Draining, "")
	got := o.wrongly(map[string]bool{"a": true})
	want := map[string]string{"b": "lost (DET-17): its lease ended", "d": "given up"}
	if !maps.Equal(got, want) {
		t.Errorf("wrongly judged are %q, want %q", got, want)
	}
	o.forget()
	if got := o.wrongly(nil); len(got) > 0 {
		t.Errorf("after all was forgotten %q are wrongly judged", got)
	}
	wants(t, "are given up after that", len(o.given([]string{"a", "b", "c", "d"})), 0)
}

func TestDisturbancesAndStormsAreCounted(t *testing.T) {
	o := observing(t)
	saw := func(id string, n int, last string) {
		o.put(o.keys.Replica(id), store.Replica{
			Schema: store.Schema, ID: id, Disturbances: n,
			Last: &store.Disturbance{What: last},
		})
	}
	o.put(o.keys.Replica("one"), store.Replica{Schema: store.Schema, ID: "one"})
	saw("one", 2, "renewals were late")
	saw("two", 1, "etcd's leader changed")
	saw("one", 2, "renewals were late") // something else of it has changed
	wants(t, "disturbances", o.count().disturbed, 3)
	if got, want := o.lastDisturbance(), "etcd's leader changed"; got != want {
		t.Errorf("the last was %q, want %q", got, want)
	}
	o.gone(o.keys.Replica("one"))
	wants(t, "disturbances once a replica is gone", o.count().disturbed, 3)
	for _, storm := range []*store.Storm{nil, {Lost: 5}, nil} {
		o.put(o.keys.Status("g"), store.Status{Schema: store.Schema, Group: "g", Storm: storm})
	}
	o.put(o.keys.Status("h"), store.Status{Schema: store.Schema, Group: "h"})
	wants(t, "groups have a status", o.statuses(), 2)
	wants(t, "have or had a storm", o.count().storms, 1)
}

// What cannot be read is not passed over: figures that leave something out would be wrong.
func TestWhatCannotBeReadIsReported(t *testing.T) {
	o := observing(t, "a")
	o.take(store.Batch{Events: []store.Event{{KV: store.KV{Key: o.keys.Instance("a"), Value: []byte("{")}}}})
	o.take(store.Batch{Err: errors.New("later")})
	if err := o.failed(); err == nil || !strings.Contains(err.Error(), o.keys.Instance("a")) {
		t.Errorf("%v, want an error that names the key", err)
	}
	o = observing(t)
	o.take(store.Batch{Err: store.ErrCompacted})
	if err := o.failed(); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("%v, want %v", err, store.ErrCompacted)
	}
}

// All that happens after the shard was written is seen, also what happened before it was watched.
func TestObservingBeginsWhereTheShardWasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New(memstore.Config{})
		defer db.Close()
		st := db.Connect()
		shard, err := seed.Write(t.Context(), st,
			seed.Plan{Shard: "bench-1", Instances: 2, GroupSize: 2, Provider: "bench", Interval: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		keys := store.KeysOf("bench-1")
		put := func(id string) {
			rec := store.Instance{Schema: store.Schema, ID: id, Phase: store.Running}
			if _, err := st.Commit(t.Context(),
				store.Txn{Writes: []store.Write{store.Put(keys.Instance(id), store.Encode(rec))}}); err != nil {
				t.Fatal(err)
			}
		}
		put(shard.Instances[0])
		ctx, cancel := context.WithCancel(t.Context())
		o := observe(ctx, st, keys, shard)
		put(shard.Instances[1])
		synctest.Wait()
		wants(t, "instances are healthy", o.running(), 2)
		wants(t, "were made", o.count().made, 0)
		cancel()
		o.wait()
	})
}
