package sim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// An agent whose reports come late, but before its lease ends, is never judged lost, however often
// that happens, and to however many at once. One that says nothing for longer is replaced.
//
// proves DET-2, DET-6, SAFE-5
func TestReportsThatComeLateCostNoInstance(t *testing.T) {
	overdue, failed := 0, ""
	w := sim.New(sim.Config{Seed: 1, Groups: []store.Group{web(6)}, Observer: sim.Observer{
		Judged: func(_ time.Time, _, id string, _, now plan.Judgment) {
			if now.Verdict.Failed() {
				failed = id + " is " + string(now.Verdict)
			}
		},
		Changed: func(_ time.Time, e store.Event) {
			if strings.Contains(string(e.KV.Value), `"state":"overdue"`) {
				overdue++
			}
		},
	}})
	w.RunUntil(sim.Epoch.Add(5 * time.Minute))
	ids, ttl := w.Instances(), web(6).Report.LeaseTTL.D()
	for _, by := range []time.Duration{6 * time.Second, 8 * time.Second, 12 * time.Second, ttl - time.Second, ttl} {
		for round := range 20 {
			for i, id := range ids {
				if round%2 == 0 || i == round%len(ids) { // all at once, and one alone
					w.Delay(id, by)
				}
			}
			w.RunUntil(w.Now().Add(time.Duration(1+round) * time.Second))
		}
		w.RunUntil(w.Now().Add(time.Minute))
		if now := w.Instances(); !slices.Equal(now, ids) || w.Working("web") != len(ids) || failed != "" {
			t.Fatalf("reports that come %s after the last: %s; of %v there are %v, and %d work", by, failed, ids, now,
				w.Working("web"))
		}
	}
	if overdue < 100 {
		t.Errorf("a report was overdue %d times only", overdue)
	}
	w.Freeze(ids[0])
	w.RunUntil(w.Now().Add(2 * ttl))
	if !strings.HasPrefix(failed, ids[0]) || slices.Equal(w.Instances(), ids) {
		t.Errorf("an agent that says nothing is kept: %q, %v", failed, w.Instances())
	}
}
