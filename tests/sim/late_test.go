package sim_test

import (
	"testing"

	"github.com/leasehold/leasehold/tests/tier"
)

// late is a trouble of its own worlds, so that the others stay as they are for each seed.
var late = kind{"report late", 0, func(tr *trial) {
	by := tr.aWhile(20)
	tr.someMachine(func(id string) { tr.w.Delay(id, by) })
}}

// Among all other troubles, reports come late and within their leases; -seed plays one world.
//
// proves DET-2, SAFE-1, SAFE-5
func TestWorldsOfLateReports(t *testing.T) {
	first, worlds, came := uint64(1), uint64(tier.Pick(20, 1000)), 0
	if *seedFlag != 0 {
		first, worlds = *seedFlag, 1
	}
	for seed := first; seed < first+worlds; seed++ {
		tr := play(plot{seed: seed, steps: *stepsFlag, late: true, all: *showFlag, without: map[string]bool{}})
		if *showFlag {
			t.Log("\n" + tr.trace.text())
		}
		if tr.failed != "" {
			t.Fatal(shrink(tr).story())
		}
		came += tr.events[late.name]
	}
	if worlds > 1 && came < 5*int(worlds) {
		t.Errorf("%d reports were late in %d worlds", came, worlds)
	}
}
