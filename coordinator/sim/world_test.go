package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

func web(size int) store.Group {
	g := store.DefaultGroup()
	g.Name, g.Size, g.Provider = "web", size, "cloud"
	g.Complete()
	return g
}

// diary records everything that an observer receives.
func diary(b *strings.Builder) sim.Observer {
	line := func(at time.Time, format string, args ...any) {
		fmt.Fprintf(b, "%12s "+format+"\n", append([]any{at.Sub(sim.Epoch)}, args...)...)
	}
	return sim.Observer{
		Committed: func(at time.Time, a *plan.Action, rev store.Revision) {
			line(at, "%s %s %s: %s", a.Rule, a.Instance, a.What(), a.Why)
		},
		Machine: func(at time.Time, m sim.Machine) { line(at, "machine %s %s", m.Instance, m.Event) },
		Judged: func(at time.Time, _, id string, _, now plan.Judgment) {
			line(at, "%s is %s: %s", id, now.Verdict, now.Why())
		},
		Noted:   func(at time.Time, what string) { line(at, "%s", what) },
		Changed: func(at time.Time, e store.Event) { line(at, "%s %s", e.KV.Key, e.KV.Value) },
	}
}

// A leader of many instances hears of several events at once, because planning takes time: it does
// not plan for each.
func TestPlanningTakesTime(t *testing.T) {
	const size = 300
	var last time.Time
	plans, large := 0, 0
	w := sim.New(sim.Config{Seed: 1, Groups: []store.Group{web(size)}, Observer: sim.Observer{
		Planned: func(at time.Time, _ *plan.Snapshot, p *plan.Plan) {
			if plans++; large == size && at.Sub(last) < size*20*time.Microsecond {
				t.Errorf("planned %s after the plan before, of %d instances", at.Sub(last), large)
			}
			last, large = at, p.Judgments.Len()
		},
	}})
	w.RunUntil(sim.Epoch.Add(2 * time.Minute))
	if n := w.Working("web"); n != size || plans < size/10 {
		t.Errorf("%d of %d work after %d plans", n, size, plans)
	}
}

func TestAGroupComesUpAndHeals(t *testing.T) {
	w := sim.New(sim.Config{Seed: 1, Groups: []store.Group{web(5)}})
	w.RunUntil(sim.Epoch.Add(time.Minute))
	if n := w.Working("web"); n != 5 {
		t.Fatalf("%d of 5 work after a minute", n)
	}
	first := w.Instances()[0]
	w.Kill(first)
	if n := w.Working("web"); n != 4 {
		t.Fatalf("%d work though one of 5 was killed", n)
	}
	w.RunUntil(w.Now().Add(time.Minute))
	if n := w.Working("web"); n != 5 {
		t.Fatalf("%d of 5 work a minute after one was killed", n)
	}
	if w.Instance(first).Present() {
		t.Errorf("the record of %s is still there", first)
	}
}

func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	run := func(seed uint64) string {
		var b strings.Builder
		w := sim.New(sim.Config{Seed: seed, Groups: []store.Group{web(5)}, Observer: diary(&b)})
		for i := range 10 {
			w.RunUntil(w.Now().Add(20 * time.Second))
			w.Kill(w.Instances()[i%3])
		}
		return b.String()
	}
	one, again, other := run(7), run(7), run(8)
	if one != again {
		t.Error("two runs of a seed differ")
	}
	if one == other {
		t.Error("the runs of two seeds do not differ")
	}
	if !strings.Contains(one, string(provider.StateCrashed)) {
		t.Error("nothing happened")
	}
}

func BenchmarkStep(b *testing.B) {
	for _, size := range []int{3, 12} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			w := sim.New(sim.Config{Seed: 1, Groups: []store.Group{web(size)}})
			w.RunUntil(sim.Epoch.Add(time.Minute))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n++; n%200 == 0 {
					if ids := w.Machines(); len(ids) > 0 {
						w.Kill(ids[n%len(ids)])
					}
				}
				w.Step()
			}
		})
	}
}
