package sim_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// always returns a source that gives the same answer each time.
func always(value float64, err error) sim.Source {
	return func(*sim.World, string) (float64, error) { return value, err }
}

// analyzed is a world with a group of six whose rolls are judged by its rate of errors.
func analyzed(answer sim.Source, change func(*store.Group)) *sim.World {
	g := web(6)
	g.Rollout.Analysis = []store.Analysis{{From: "errors", Max: new(0.01)}}
	g.Rollout.AutoRollback = true
	g.Rollout.Canary, g.Rollout.CanaryDuration = 2, new(store.Duration(2*time.Minute))
	if change != nil {
		change(&g)
	}
	g.Complete()
	if err := g.Validate(); err != nil {
		panic(err)
	}
	w := sim.New(sim.Config{Seed: 7, Groups: []store.Group{g}, Sources: map[string]sim.Source{"errors": answer}})
	w.RunUntil(w.Now().Add(3 * time.Minute))
	w.Edit("web", func(g *store.Group) { g.Template.InstanceType = "large" })
	return w
}

// newWorking counts the working instances that were created from the new template.
func newWorking(w *sim.World) (n int) {
	for _, id := range w.Instances() {
		if w.Instance(id).Record.Spec.Template.InstanceType == "large" && w.Works(id) {
			n++
		}
	}
	return n
}

// A roll is judged by a number from outside: what is out of its bounds while canaries are tried, or
// afterwards, stops it and brings the old template back. One bad answer is not believed, and a
// number that is missing proves nothing: the roll waits, is not stalled, and says so.
//
// proves ROLL-5, ROLL-4
func TestARollIsJudgedByNumbersFromOutside(t *testing.T) {
	missing := errors.New("connection refused")
	noCanary := func(g *store.Group) { g.Rollout.Canary, g.Rollout.CanaryDuration = 0, nil }
	for _, test := range []struct {
		name   string
		answer sim.Source
		change func(*store.Group)
		after  time.Duration // the roll began
		on     int           // instances on the new template then
		is     string        // the roll: done, waits or back
	}{
		{name: "good", answer: always(0.001, nil), on: 6, is: "done"},
		{name: "bad on the canaries", answer: func(w *sim.World, _ string) (float64, error) {
			return float64(newWorking(w)) * 0.1, nil
		}, is: "back"},
		{name: "bad after the canaries", answer: func(w *sim.World, _ string) (float64, error) {
			return max(0, float64(newWorking(w)-2)) * 0.1, nil
		}, is: "back"},
		{name: "bad before anything has changed", answer: always(0.5, nil), is: "waits"},
		{name: "missing", answer: always(0, missing), is: "waits"},
		{
			name: "missing without canaries", answer: always(0, missing), change: noCanary,
			is: "waits",
		},
		{
			name: "good without canaries", answer: always(0.01, nil), change: noCanary,
			on: 6, is: "done",
		},
		{name: "missing once the canaries are there", answer: func(w *sim.World, _ string) (float64, error) {
			if newWorking(w) > 0 {
				return 0, missing
			}
			return 0, nil
		}, on: -1, is: "waits"},
		{name: "missing once the first is there, without canaries", answer: func(w *sim.World, _ string) (float64, error) {
			if newWorking(w) > 0 {
				return 0, missing
			}
			return 0, nil
		}, change: noCanary, on: -1, is: "waits"},
		{name: "one bad answer, then none", answer: oneBad(missing), on: -1, is: "waits"},
		{name: "one bad answer, then good ones", answer: oneBad(nil), on: 6, is: "done"},
		{name: "bad, and nothing goes back by itself", answer: func(w *sim.World, _ string) (float64, error) {
			return float64(newWorking(w)) * 0.1, nil
		}, change: func(g *store.Group) { g.Rollout.AutoRollback = false }, on: -1, is: "stopped"},
	} {
		w := analyzed(test.answer, test.change)
		w.RunUntil(w.Now().Add(40 * time.Minute))
		st := sim.Read[store.Status](w, w.Keys().Status("web")).Record
		on := newWorking(w)
		is := "done"
		g, _ := w.Group("web")
		switch r := st.Rollout; {
		case g.Template.InstanceType != "large":
			is = "back"
		case r == nil:
		case r.Blamed != "":
			is = "stopped"
		case r.Stalled == "" && slices.ContainsFunc(st.Blocked,
			func(b store.Blocked) bool {
				return b.Kind == store.BlockedByAnalysis && strings.Contains(b.Why, "errors: ")
			}):
			is = "waits"
		default:
			is = "neither done nor waiting"
		}
		if is != test.is || test.on >= 0 && on != test.on || test.on < 0 && (on < 1 || on > 2) {
			t.Errorf("%s: the roll is %s, with %d on the new template: %+v, %+v", test.name, is, on, st.Rollout, st.Blocked)
		}
		if n := w.Working("web"); n != 6 {
			t.Errorf("%s: %d of 6 work", test.name, n)
		}
	}
}

// A number that is bad since the new machines cannot be made is no reason to wait for it: the roll
// stalls, and goes back.
//
// proves ROLL-4, ROLL-5
func TestARollStallsThoughAnAnalysisWaits(t *testing.T) {
	for name, answer := range map[string]func(w *sim.World, _ string) (float64, error){
		"bad": func(w *sim.World, _ string) (float64, error) { return float64(6-w.Working("web")) * 0.1, nil },
		"missing": func(w *sim.World, _ string) (float64, error) {
			if w.Working("web") < 6 {
				return 0, errors.New("connection refused")
			}
			return 0, nil
		},
	} {
		w := analyzed(answer, func(g *store.Group) {
			g.Rollout.Canary, g.Rollout.CanaryDuration = 0, nil
			g.Budget.MaxExpansion, g.Budget.MaxUnavailable = 0, new(store.Amount(1))
		})
		for _, zone := range []string{"a", "b"} {
			w.Fill("cloud", zone, true)
		}
		w.RunUntil(w.Now().Add(30 * time.Minute))
		if g, _ := w.Group("web"); g.Template.InstanceType == "large" {
			st := sim.Read[store.Status](w, w.Keys().Status("web")).Record
			t.Errorf("%s: %d of 6 work: %+v, %+v", name, w.Working("web"), st.Rollout, st.Blocked)
		}
	}
}

// oneBad is bad once when the first canary is up; what follows is good, or the error.
func oneBad(then error) sim.Source {
	told := false
	return func(w *sim.World, _ string) (float64, error) {
		switch {
		case newWorking(w) == 0:
			return 0, nil
		case !told:
			told = true
			return 1, nil
		default:
			return 0, then
		}
	}
}

// A roll that an analysis has stopped continues when an operator says so, and is judged again.
//
// proves ROLL-5
func TestARollThatWasStoppedByAnAnalysisIsRetried(t *testing.T) {
	bad := true
	w := analyzed(func(w *sim.World, _ string) (float64, error) {
		if bad && newWorking(w) > 0 {
			return 1, nil
		}
		return 0, nil
	}, func(g *store.Group) { g.Rollout.AutoRollback = false })
	w.RunUntil(w.Now().Add(10 * time.Minute))
	st := sim.Read[store.Status](w, w.Keys().Status("web")).Record
	if r := st.Rollout; r == nil || r.Blamed != "analysis errors: it is 1, and at most 0.01 is allowed" {
		t.Fatalf("the roll is %+v", r)
	}
	bad = false
	w.Order(store.Request{Kind: store.RequestRetry, Group: "web", By: "ada"})
	w.RunUntil(w.Now().Add(20 * time.Minute))
	if n := newWorking(w); n != 6 {
		t.Errorf("%d of 6 have the new template", n)
	}
}
