package coordinator

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// Of instances that are being deleted, or whose records were removed by hand, a leader keeps
// nothing.
func TestNothingIsKeptOfInstancesThatAreGone(t *testing.T) {
	group := func(phases map[string]store.Phase) *plan.Group {
		g := &plan.Group{Name: "web"}
		for _, id := range slices.Sorted(maps.Keys(phases)) {
			var in plan.Instance
			in.Record = store.Instance{ID: id, Group: "web", Phase: phases[id]}
			g.Instances = append(g.Instances, in)
		}
		return g
	}
	lost := plan.Judgment{Verdict: store.Lost}
	term := &term{verdicts: map[string]map[string]plan.Judgment{}, troubles: map[string]time.Time{"db-0": {}}}
	all := term.verdictsOf(group(map[string]store.Phase{"a": store.Running, "b": store.Running, "c": store.Running}))
	for _, id := range []string{"a", "b", "c"} {
		all[id], term.troubles[id] = lost, time.Now()
	}
	for _, c := range []struct {
		phases map[string]store.Phase
		want   []string
	}{
		{map[string]store.Phase{"a": store.Running, "b": store.Running, "c": store.Draining}, []string{"a", "b", "c"}},
		// d is not judged yet
		{
			map[string]store.Phase{"a": store.Running, "b": store.Deleting, "c": store.Running, "d": store.Booting},
			[]string{"a", "c"},
		},
		{map[string]store.Phase{"c": store.Running, "e": store.Deleting}, []string{"c"}},
		{map[string]store.Phase{"e": store.Deleting}, nil},
		{nil, nil},
	} {
		verdicts := term.verdictsOf(group(c.phases))
		if got := slices.Sorted(maps.Keys(verdicts)); !slices.Equal(got, c.want) {
			t.Errorf("of %v verdicts of %q are kept, want %q", c.phases, got, c.want)
		}
		if got := slices.Sorted(maps.Keys(term.troubles)); !slices.Equal(got, append(slices.Clone(c.want), "db-0")) {
			t.Errorf("of %v troubles of %q are kept, want %q", c.phases, got, c.want)
		}
	}
	if len(term.verdicts) != 0 {
		t.Errorf("verdicts are kept of groups without instances: %v", term.verdicts)
	}
}
