package evidence_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// The same input in the same order at the same times gives the same snapshot, to the byte.
func TestSnapshotDependsOnNoChance(t *testing.T) {
	first := ""
	for range 10 {
		w := newWorld(t)
		w.shard(5, 20)
		w.lead()
		var machines []provider.Machine
		for i := range 20 {
			machines = append(machines, provider.Machine{
				Instance: fmt.Sprintf("extra-%d", i),
				State:    provider.StateRunning,
			})
			w.put(keys.Request(fmt.Sprintf("r%d", i)),
				store.Request{Schema: store.Schema, Instance: fmt.Sprintf("extra-%d", i)})
			w.event(store.Event{KV: store.KV{Key: keys.Slot("g0001", 100+i), Value: fmt.Appendf(nil, "torn %d", i)}})
			w.event(store.Event{KV: store.KV{
				Key:   keys.Alive(fmt.Sprintf("x%d", i)),
				Value: fmt.Appendf(nil, "torn %d", i),
			}})
			w.evidence.PlanAgain(fmt.Sprintf("g%04d", i), w.now)
		}
		w.evidence.ListedBy("mem", w.now, machines, w.content)
		groups := w.evidence.TakeDirty(w.content.Revision, w.now)
		got := fmt.Sprintf("%q\n%+v", groups, w.evidence.Snapshot(w.content, groups))
		if first == "" {
			first = got
		}
		if got != first {
			t.Fatalf("shows\n%s\nand before\n%s", got, first)
		}
	}
	for _, want := range []string{"extra-19", "g0004-0019", keys.Slot("g0001", 100)} {
		if !strings.Contains(first, want) {
			t.Errorf("nothing of %s in the snapshot", want)
		}
	}
}

func TestInstancesAndSlotsAreInOrder(t *testing.T) {
	w := newWorld(t)
	w.lead()
	for _, id := range []string{"web-3", "web-1", "web-2", "web-0"} {
		w.run("web", id)
	}
	for _, n := range []int{10, 2, 7} {
		w.put(keys.Slot("web", n), store.Slot{Schema: store.Schema})
	}
	w.remove(keys.Instance("web-2"))
	moved := w.run("web", "web-5")
	moved.Group = "api"
	w.put(keys.Instance("web-5"), moved)
	g := w.group("web")
	var shown []string
	for _, in := range g.Instances {
		shown = append(shown, in.Record.ID)
	}
	for _, s := range g.Slots {
		shown = append(shown, fmt.Sprint(s.Record.Number))
	}
	if want := []string{"web-0", "web-1", "web-3", "2", "7", "10"}; !slices.Equal(shown, want) {
		t.Errorf("shown are %q, want %q", shown, want)
	}
	w.remove(keys.Report("web-0"))
	w.remove(keys.Alive("web-0"))
	if in := w.instance("web", "web-0"); in.Report.Key != keys.Report("web-0") || in.Alive.Key != keys.Alive("web-0") ||
		in.Alive.Present() {
		t.Errorf("what is not there has no key to be compared by: %+v", in)
	}
}

// changeOne has one group change, wait and be planned again, as a term does.
func (w *world) changeOne(n int) {
	w.report("g0000-0000", "boot", n%2 == 0)
	groups := w.evidence.TakeDirty(w.content.Revision, w.now)
	s := w.evidence.Snapshot(w.content, groups)
	if len(s.Groups) != 1 || len(s.Groups[0].Instances) != 10 {
		w.t.Fatalf("planned are %q", groups)
	}
	w.evidence.PlanAgain("g0000", w.now.Add(time.Second))
	w.evidence.NextDue()
}

// crowd returns a shard of so many groups of ten, all of which wait for something.
func crowd(t testing.TB, groups int) *world {
	w := newWorld(t)
	w.shard(groups, 10)
	w.lead()
	for _, name := range w.takeAll() {
		w.evidence.PlanAgain(name, w.now.Add(time.Minute))
	}
	for i := range groups {
		w.put(keys.Request(fmt.Sprint(i)), store.Request{Schema: store.Schema, Instance: fmt.Sprintf("g%04d-0001", i)})
	}
	w.evidence.TakeDirty(w.content.Revision, w.now)
	return w
}

func TestChangeOfOneGroupCostsTheSameInALargeShard(t *testing.T) {
	cost := func(groups int) float64 {
		w, n := crowd(t, groups), 0
		return testing.AllocsPerRun(100, func() { n++; w.changeOne(n) })
	}
	if small, large := cost(2), cost(300); large > small+2 {
		t.Errorf("costs %.0f allocations among 2 groups, %.0f among 300", small, large)
	}
}

func BenchmarkChangeOfOneGroup(b *testing.B) {
	for _, groups := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("of_%d", groups), func(b *testing.B) {
			w, n := crowd(b, groups), 0
			b.ReportAllocs()
			for b.Loop() {
				n++
				w.changeOne(n)
			}
		})
	}
}

func BenchmarkListing(b *testing.B) {
	w := newWorld(b)
	w.shard(1000, 100)
	w.lead()
	b.ReportAllocs()
	for b.Loop() {
		w.evidence.Listed(w.content)
	}
}
