package sim_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

var update = flag.Bool("update", false, "write the table of bad templates into docs/changing.md")

const (
	badPage  = "../../docs/changing.md"
	badBegin = "<!-- bad templates: written by go test ./coordinator/sim -run TestBadTemplates -update -->\n"
	badEnd   = "<!-- /bad templates -->\n"
)

// badAnalysis is healthy, and a number from outside says that it is bad.
const badAnalysis sim.Flaw = "healthy, analysis bad"

// setback is the damage that a bad template did before the old state was restored.
type setback struct {
	down int           // of twenty slots, at most at the same time
	made int           // machines
	back time.Duration // until all is as it was
}

func (s *setback) worst(o setback) {
	s.down, s.made, s.back = max(s.down, o.down), max(s.made, o.made), max(s.back, o.back)
}

// playBad brings a bad template to a group of twenty in three zones, with three canaries.
func playBad(t *testing.T, seed uint64, flaw sim.Flaw, roomFirst bool) setback {
	g := web(20)
	g.Checks = []store.Check{{
		Name: "http", TCP: &store.TCPCheck{Port: "80"}, Interval: store.Duration(2 * time.Second),
		Timeout: store.Duration(time.Second), UnhealthyThreshold: 2, HealthyThreshold: 2,
	}}
	g.Budget.MaxExpansion = store.Percent(10)
	if roomFirst {
		g.Budget.MaxExpansion, g.Budget.MaxUnavailable = 0, new(store.Percent(10))
	}
	g.Rollout.Canary, g.Rollout.AutoRollback = 3, true
	g.Rollout.CanaryDuration = new(store.Duration(10 * time.Minute))
	g.Rollout.Analysis = []store.Analysis{{From: "errors", Max: new(0.01)}}
	g.Complete()
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	var w *sim.World
	var s setback
	begun := false
	w = sim.New(sim.Config{
		Seed: seed, Groups: []store.Group{g},
		Providers: []sim.Provider{{Name: "cloud", Config: fake.Config{Zones: fake.Zones("a", "b", "c")}}},
		Sources: map[string]sim.Source{"errors": func(w *sim.World, _ string) (float64, error) {
			if flaw == badAnalysis {
				return float64(newWorking(w)) / 20, nil
			}
			return 0, nil
		}},
		Observer: sim.Observer{
			Stirred: func(string) {
				if begun {
					s.down = max(s.down, 20-w.Working("web"))
				}
			},
			Machine: func(_ time.Time, m sim.Machine) {
				if begun && m.Event == fake.Made {
					s.made++
				}
			},
		},
	})
	w.RunUntil(w.Now().Add(10 * time.Minute))
	old := sim.Read[store.Status](w, w.Keys().Status("web")).Record.LastGood.Template
	begun = true
	w.Edit("web", func(g *store.Group) {
		g.Template.InstanceType = "large"
		if flaw != badAnalysis {
			w.SpoilTemplate(g.InstanceSpec().TemplateHash(), flaw)
		}
	})
	start := w.Now()
	for w.Now().Sub(start) < 2*time.Hour {
		w.RunUntil(w.Now().Add(5 * time.Second))
		st := sim.Read[store.Status](w, w.Keys().Status("web")).Record
		g, _ := w.Group("web")
		if g.InstanceSpec().TemplateHash() == old && st.Rollout == nil && st.Outdated == 0 && w.Working("web") == 20 &&
			len(w.Instances()) == 20 {
			s.back = w.Now().Sub(start)
			return s
		}
	}
	t.Fatalf("%s, seed %d: the old state is not back after two hours", flaw, seed)
	return s
}

// A bad template of each kind costs its canaries at most, and the old one comes back by itself. The
// page has the figures.
//
// proves ROLL-5, FLAP-5, ROLL-9
func TestBadTemplatesCostNoMoreThanTheirCanaries(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| Every machine of the new template | Replacements | Down at once | Machines made | Back after |\n" +
		"|---|---|---|---|---|\n")
	for _, flaw := range []sim.Flaw{sim.NeverBoots, sim.NeverRegisters, sim.NeverHealthy, sim.CrashesSoon, badAnalysis} {
		for _, roomFirst := range []bool{false, true} {
			var worst setback
			for seed := range uint64(5) {
				worst.worst(playBad(t, seed, flaw, roomFirst))
			}
			first, most := "first", 3
			if roomFirst {
				first = "after removal"
			} else if flaw != sim.CrashesSoon { // nothing goes before what replaces it is healthy
				most = 0
			}
			if worst.down > most {
				t.Errorf("%s, replacements %s: %d of 20 were down at once", flaw, first, worst.down)
			}
			fmt.Fprintf(&b, "| %s | %s | %d of 20 | %d | %s |\n", flaw, first, worst.down, worst.made,
				worst.back.Round(time.Second))
		}
	}
	b.WriteString("\n")
	comparePage(t, b.String())
}

// comparePage compares the table of the page, or writes it.
func comparePage(t *testing.T, table string) {
	raw, err := os.ReadFile(badPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(raw), badBegin)
	_, after, ok2 := strings.Cut(rest, badEnd)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table", badPage)
	}
	want := before + badBegin + table + badEnd + after
	if *update {
		if err := os.WriteFile(badPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(raw) != want {
		t.Errorf("%s is not as it was measured; rewrite it with: go test ./coordinator/sim -run TestBadTemplates -update",
			badPage)
	}
}
