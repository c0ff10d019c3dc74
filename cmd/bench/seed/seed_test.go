package seed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

func database(t *testing.T) *memstore.Store {
	db := memstore.New(memstore.Config{})
	t.Cleanup(db.Close)
	return db.Connect()
}

func list(t *testing.T, st store.Store, prefix string) store.Listing {
	t.Helper()
	l, err := st.List(t.Context(), prefix, 0)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func plan(shard string, instances int) Plan {
	return Plan{
		Shard: shard, Instances: instances, GroupSize: 100, Provider: "bench", Zone: "local",
		Interval: 10 * time.Second, ReconnectMax: 10 * time.Second,
	}
}

// What is written is what a coordinator and operators would have written: every record can be read,
// and belongs to the others.
func TestTheShardIsWhole(t *testing.T) {
	st := database(t)
	p := plan("bench-a", 250)
	shard, err := Write(t.Context(), st, p)
	if err != nil {
		t.Fatal(err)
	}
	keys := store.KeysOf(p.Shard)
	l := list(t, st, keys.Prefix())
	if want := 1 + 3 + 250; len(l.KVs) != want || l.Revision != shard.Revision {
		t.Errorf("%d keys at revision %d, want %d at %d", len(l.KVs), l.Revision, want, shard.Revision)
	}
	var ids []string
	sizes := map[string]int{}
	for _, kv := range l.KVs {
		switch kind, name, _ := keys.Split(kv.Key); {
		case kind == store.KindGroups:
			g := decoded[store.Group](t, kv)
			if err := g.Validate(); err != nil || g.Name != name || g.Report.LeaseTTL.D() != shard.LeaseTTL {
				t.Errorf("%s: %+v, %v", kv.Key, g, err)
			}
			sizes[name] = g.Size
		case kind == store.KindInstances:
			rec := decoded[store.Instance](t, kv)
			if rec.ID != name || rec.Phase != store.Booting || !rec.Managed || rec.Zone != p.Zone ||
				rec.Template != rec.Spec.TemplateHash() || rec.Spec.Report.Interval.D() != p.Interval {
				t.Errorf("%s: %+v", kv.Key, rec)
			}
			ids = append(ids, rec.ID)
		case kv.Key == keys.Shard():
			if s := decoded[store.Shard](t, kv); s.ID != shard.ID || s.Name != p.Shard ||
				s.Settings.ReconnectMax.D() != p.ReconnectMax {
				t.Errorf("%s: %+v", kv.Key, s)
			}
		default:
			t.Errorf("%s: it was not asked for", kv.Key)
		}
	}
	for i, name := range shard.Groups {
		if want := []int{100, 100, 50}[i]; sizes[name] != want {
			t.Errorf("group %s wants %d instances, want %d", name, sizes[name], want)
		}
	}
	want := slices.Sorted(slices.Values(shard.Instances))
	if slices.Sort(ids); !slices.Equal(ids, want) {
		t.Errorf("there are records of %d instances, and %d were told", len(ids), len(want))
	}
	if shard.LeaseTTL != 32*time.Second {
		t.Errorf("a lease lasts %s, want three intervals and 2s", shard.LeaseTTL)
	}
	if _, err := Write(t.Context(), st, p); !errors.Is(err, store.ErrConflict) {
		t.Errorf("writing it once more: %v, want a conflict", err)
	}
}

func decoded[T any](t *testing.T, kv store.KV) T {
	t.Helper()
	v, err := store.Decode[T](kv)
	if err != nil {
		t.Fatal(err)
	}
	return v.Record
}

func TestWhatAGroupMayNotSayIsAnError(t *testing.T) {
	p := plan("bench-a", 10)
	p.LeaseTTL = time.Second // less than three intervals
	if _, err := Write(t.Context(), database(t), p); err == nil || !strings.Contains(err.Error(), "lease_ttl") {
		t.Errorf("%v, want an error that names lease_ttl", err)
	}
}

// A bench takes away all of its shard, leases included, and nothing else.
func TestRemoveLeavesNothing(t *testing.T) {
	st := database(t)
	for _, name := range []string{"bench-a", "bench-ab"} {
		if _, err := Write(t.Context(), st, plan(name, 3*store.MaxOps)); err != nil {
			t.Fatal(err)
		}
	}
	lease, err := st.Grant(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	keys := store.KeysOf("bench-a")
	var writes []store.Write
	for i := range 10 {
		writes = append(writes, store.PutLeased(keys.Alive(fmt.Sprintf("g0000-%d-b", i)), []byte("{}"), lease.ID))
	}
	if _, err := st.Commit(t.Context(), store.Txn{Writes: writes}); err != nil {
		t.Fatal(err)
	}
	others := len(list(t, st, store.KeysOf("bench-ab").Prefix()).KVs)
	if err := Remove(t.Context(), st, "bench-a"); err != nil {
		t.Fatal(err)
	}
	if left := list(t, st, keys.Prefix()).KVs; len(left) > 0 {
		t.Errorf("%d keys are left, as %s", len(left), left[0].Key)
	}
	if _, err := st.Renew(t.Context(), lease.ID); !errors.Is(err, store.ErrLeaseGone) {
		t.Errorf("its lease: %v, want it gone", err)
	}
	if n := len(list(t, st, store.KeysOf("bench-ab").Prefix()).KVs); n != others {
		t.Errorf("%d of %d keys are left of the shard whose name begins the same", n, others)
	}
	if err := Remove(t.Context(), st, "bench-a"); err != nil {
		t.Errorf("removing it once more: %v", err)
	}
}

// The first write that fails is reported, and no more are tried.
func TestWritingEndsWithTheFirstError(t *testing.T) {
	st := &failing{Store: database(t), after: 3}
	_, err := Write(t.Context(), st, plan("bench-a", 100*store.MaxOps))
	if !errors.Is(err, errFull) {
		t.Errorf("%v, want %v", err, errFull)
	}
	if n := st.calls.Load(); n > 3+2*atOnce {
		t.Errorf("%d transactions were tried, 3 with success", n)
	}
}

// failing is an etcd that takes some transactions and then no more.
type failing struct {
	store.Store
	after int32
	calls atomic.Int32
}

var errFull = errors.New("no space")

func (f *failing) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	if f.calls.Add(1) > f.after {
		return 0, errFull
	}
	return f.Store.Commit(ctx, txn)
}
