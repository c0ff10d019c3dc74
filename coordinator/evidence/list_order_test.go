package evidence_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// What a List says does not depend on its order: of instances, of those that it misses, of machines
// without a record, and of two machines of one instance.
//
// proves DET-12, REC-8
func TestTheOrderOfAList(t *testing.T) {
	machine := func(id, ref string) provider.Machine {
		return provider.Machine{Instance: id, Group: "g0000", Ref: ref, State: provider.StateRunning}
	}
	all := []provider.Machine{
		machine("g0000-0000", "a"), machine("g0000-0001", "b"), machine("g0000-0003", "c"), machine("g0000-0004", "d"),
	}
	extra, twice := machine("g0000-0000x", "e"), machine("g0000-0003", "f")
	twice.State = provider.StateStopped
	foreign := machine("g0000-0004", "g")
	foreign.Foreign = true
	for name, lists := range map[string][][]provider.Machine{
		"the same":         {all, all},
		"one more first":   {all, slices.Insert(slices.Clone(all), 0, machine("g0000", "z"))},
		"one is gone":      {all, all[1:]},
		"an extra one":     {all, slices.Insert(slices.Clone(all), 1, extra), all},
		"a copy":           {all, slices.Insert(slices.Clone(all), 3, twice)},
		"a foreign one":    {all, append(slices.Clone(all), foreign)},
		"none":             {all, nil},
		"an instance more": {all[:3], all},
	} {
		show := func(order func([]provider.Machine)) string {
			w := newWorld(t)
			w.shard(1, 5)
			w.lead()
			for _, list := range lists {
				w.pass(10 * time.Second)
				list = slices.Clone(list)
				order(list)
				w.evidence.ListedBy("mem", w.now, list, w.content)
			}
			s := w.evidence.Snapshot(w.content, []string{"", "g0000"})
			text := fmt.Sprintf("%+v\n", s.Extras)
			for _, in := range s.Groups[0].Instances {
				text += fmt.Sprintf("%s %+v\n", in.Record.ID, in.Sighting)
			}
			return text
		}
		want := show(slices.Reverse[[]provider.Machine])
		if got := show(func([]provider.Machine) {}); got != want {
			t.Errorf("%s: in order\n%s\nin another order\n%s", name, got, want)
		}
	}
}
