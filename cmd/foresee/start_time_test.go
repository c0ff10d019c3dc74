package foresee_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/foresee"
	"github.com/leasehold/leasehold/store"
)

// A start is measured only if it can be distinguished from a restart, in which an instance passes
// through its phases again.
func TestPaceIsThatOfFirstStarts(t *testing.T) {
	born := noon.Add(-time.Hour)
	workloadRestarted := func(in *store.Instance, a *store.Alive, r *store.Report) {
		in.Since, a.Since, r.Restarted = born.Add(9*time.Minute), born.Add(20*time.Second), "r1"
	}
	machineRestarted := func(in *store.Instance, a *store.Alive, _ *store.Report) {
		in.Since, a.Since, a.Epoch = born.Add(9*time.Minute), born.Add(8*time.Minute), 2
	}
	for name, test := range map[string]struct {
		change func(in *store.Instance, a *store.Alive, r *store.Report)
		pace   time.Duration // 0: unknown
	}{
		"started":            {pace: 30 * time.Second},
		"workload restarted": {workloadRestarted, 20 * time.Second},
		"workload restarted, and healthy 5s later": {
			func(in *store.Instance, a *store.Alive, r *store.Report) {
				workloadRestarted(in, a, r)
				r.Checks = []store.CheckReport{{Name: "process", Healthy: true, Since: in.Since.Add(-5 * time.Second)}}
			}, 25 * time.Second,
		},
		"machine restarted": {machineRestarted, 0},
		"both restarted": {func(in *store.Instance, a *store.Alive, r *store.Report) {
			workloadRestarted(in, a, r)
			machineRestarted(in, a, r)
		}, 0},
		"connected again since": {func(_ *store.Instance, a *store.Alive, _ *store.Report) {
			a.Since, a.Epoch = born.Add(30*time.Minute), 2
		}, 30 * time.Second},
		"silent": {
			func(_ *store.Instance, a *store.Alive, _ *store.Report) { *a = store.Alive{} },
			30 * time.Second,
		},
		"longer than able": {func(in *store.Instance, _ *store.Alive, _ *store.Report) {
			in.Since = born.Add(50 * time.Minute)
		}, 0},
	} {
		listing := records(group(3), func(_ int, in *store.Instance, a *store.Alive, r *store.Report) {
			if test.change != nil {
				test.change(in, a, r)
			}
		})
		pace, known := foresee.New(keys, "web", listing, nil, noon).StartTime()
		if pace != test.pace || known != (test.pace > 0) {
			t.Errorf("%s: %s, known %v; want %s", name, pace, known, test.pace)
		}
	}
}

// Instances on demand count for no size, and not among the ones that stay healthy either.
func TestAheadLeavesOutWhoIsOnDemand(t *testing.T) {
	g := group(4)
	listing := records(g, func(i int, in *store.Instance, _ *store.Alive, _ *store.Report) {
		if i == 3 {
			in.Managed, in.Slot = false, -1
		}
	})
	c := foresee.New(keys, "web", listing, edit(g, func(g *store.Group) { g.Size = 2 }), noon).Ahead(time.Second)
	if c.Before != 3 || c.Healthy != 2 || c.Remove != 1 {
		t.Errorf("%s: %+v", c.Words(), c)
	}
}

// Drain hooks take time only where instances drain.
func TestAheadCountsWhoDrains(t *testing.T) {
	g := group(6)
	g.Drain.Hook = []string{"./drain"}
	for size, drain := range map[int]int{8: 0, 4: 2} {
		if c := foresee.New(keys, "web", records(g, nil), edit(g, func(g *store.Group) { g.Size = size }),
			noon).Ahead(time.Second); c.Drain != drain {
			t.Errorf("to size %d: %d drain, want %d", size, c.Drain, drain)
		}
	}
}
