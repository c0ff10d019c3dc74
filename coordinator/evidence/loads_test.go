package evidence_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
	_ "github.com/leasehold/leasehold/tests/tier"
)

// Loads that come together show in snapshots, and in the content, as the reports that they stand
// for, whatever happens in between.
//
// proves AUTO-2
func TestLoadsShowAsReports(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		single, together := loadWorld(t), loadWorld(t)
		both := func(do func(w *world)) { do(single); do(together) }
		for range rapid.IntRange(1, 20).Draw(r, "steps") {
			some := rapid.SliceOfNDistinct(rapid.IntRange(0, 4), 1, 5, rapid.ID).Draw(r, "instances")
			id := fmt.Sprintf("web-%d", some[0])
			switch rapid.IntRange(0, 7).Draw(r, "what") {
			case 0, 1, 2, 3:
				tellLoads(single, together, some, rapid.Float64Range(1, 100).Draw(r, "cpu"))
			case 4:
				healthy := rapid.Bool().Draw(r, "healthy")
				both(func(w *world) { w.report(id, "boot", healthy) })
			case 5:
				both(func(w *world) {
					w.put(keys.Alive(id), store.Alive{Schema: store.Schema, Instance: id, BootID: "boot", State: store.StreamLost})
				})
			case 6:
				both(func(w *world) { w.remove(keys.Report(id)) })
			case 7:
				both(func(w *world) { w.group("web") })
			}
			both(func(w *world) { w.pass(time.Second) })
			if rapid.Bool().Draw(r, "look") {
				sameInstances(t, single, together)
			}
		}
		sameInstances(t, single, together)
		both(func(w *world) { // each instance is looked at once more
			for i := range 5 {
				alive := store.Alive{Schema: store.Schema, BootID: "boot", State: store.StreamOpen}
				w.put(keys.Alive(fmt.Sprintf("web-%d", i)), alive)
			}
		})
		sameInstances(t, single, together)
		if !reflect.DeepEqual(single.content.Reports, together.content.Reports) {
			t.Errorf("the content has\n%+v, want\n%+v", together.content.Reports, single.content.Reports)
		}
		if a, b := single.evidence.NextDue(), together.evidence.NextDue(); !a.Equal(b) {
			t.Errorf("the group is to be planned at %s, want %s", b, a)
		}
	})
}

// loadWorld has a group of five that follows its load.
func loadWorld(t *testing.T) *world {
	w := newWorld(t)
	g := spec("web")
	g.Scale = &store.ScaleSpec{Max: 9, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: 60}}}
	w.put(keys.Group("web"), g)
	w.put(keys.Status("web"), store.Status{Schema: store.Schema, Group: "web", Accepted: &g})
	for i := range 5 {
		w.run("web", fmt.Sprintf("web-%d", i))
	}
	w.lead()
	w.takeAll()
	w.group("web")
	return w
}

// tellLoads has some agents report another load: one by one in the first world, together in the
// second one. Reports that are not there have nothing but a load that is new.
func tellLoads(single, together *world, some []int, cpu float64) {
	l := &cache.Loads{Group: "web", At: single.now}
	var changes []cache.Change
	for i := range 5 {
		id := fmt.Sprintf("web-%d", i)
		v := single.content.Reports[id]
		if !slices.Contains(some, i) || !v.Present() {
			continue
		}
		single.content.Revision++
		l.Instances, l.Revisions = append(l.Instances, id), append(l.Revisions, single.content.Revision)
		l.Windows = append(l.Windows, []store.HostWindow{{Span: store.Duration(time.Minute), CPUPercent: cpu}})
		l.Write(len(l.Instances)-1, &v)
		changes = append(changes, single.content.ApplyReport(v))
	}
	if len(changes) == 0 {
		return
	}
	single.evidence.Changed(single.content, changes)
	together.content.Revision = single.content.Revision
	together.evidence.Changed(together.content, []cache.Change{
		{Kind: store.KindReports, Group: "web", Same: true, Loads: l},
	})
}

func sameInstances(t *testing.T, single, together *world) {
	t.Helper()
	if a, b := single.group("web").Instances, together.group("web").Instances; !reflect.DeepEqual(a, b) {
		t.Fatalf("the snapshot shows\n%+v, want\n%+v", b, a)
	}
}
