package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// Drills on a schedule come once each, under any leader, and inside the windows alone. An agent
// that is killed comes back and keeps its machine; a workload and a machine are replaced. No slot
// counts a failure.
//
// proves DAY-6, ROLL-6, DET-15
func TestDrillsOnASchedule(t *testing.T) {
	g := web(4)
	g.Workload.Run = []string{"./web"}
	for i, kind := range store.DrillKinds {
		g.Drills = append(g.Drills, store.DrillSpec{Cron: fmt.Sprintf("%d * * * *", 10+15*i), Kind: kind})
	}
	first := sim.Epoch.Truncate(time.Hour).Add(time.Hour)
	g.Windows = []store.Window{{
		From: first.Format("15:04"), For: store.Duration(2 * time.Hour), Allow: []string{store.PlannedDrill},
	}}
	g.Complete()
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	drills, left := map[string]int{}, 0
	w := sim.New(sim.Config{Seed: 5, Groups: []store.Group{g}, Observer: sim.Observer{
		Committed: func(at time.Time, a *plan.Action, _ store.Revision) {
			for _, e := range a.JournalEntries() {
				switch {
				case e.Rule == "DAY-6" && e.Instance == "":
					left++
					t.Log(at, e.What(), e.Why)
				case e.Rule == "DAY-6":
					drills[e.What()]++
				}
			}
		},
	}})
	w.RunUntil(first.Add(4 * time.Hour))
	want := map[string]int{
		"drill: 1 machine to be ended": 2, "drill: its agent to be killed": 2, "drill: its workload to be killed": 2,
	}
	for what, n := range want {
		if drills[what] != n {
			t.Errorf("%s: %d times, want %d", what, drills[what], n)
		}
	}
	if left < 6 { // outside of the window
		t.Errorf("%d left out, want 6 at least", left)
	}
	ids := w.Instances()
	if w.Working("web") != 4 || len(ids) != 4 {
		t.Errorf("%d work of %v", w.Working("web"), ids)
	}
	for n := range 4 {
		if rec := sim.Read[store.Slot](w, w.Keys().Slot("web", n)); len(rec.Record.Failures) > 0 {
			t.Errorf("slot %d counts %v", n, rec.Record.Failures)
		}
	}
}
