package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// playOf plays a scenario with a group of six that is changed before.
func playOf(t *testing.T, change func(*store.Group), text string) *Result {
	t.Helper()
	s := setting()
	change(&s.Groups[0])
	s.Groups[0].Complete()
	sc, err := Read("s.yaml", strings.NewReader(text), s)
	if err != nil {
		t.Fatal(err)
	}
	res := sc.Play(t.Context(), func(time.Duration) {})
	for _, b := range res.Broken {
		t.Errorf("what must never happen did: %s", b)
	}
	return res
}

// An agent that receives a restart when its machine comes up carries it out, as real agents do.
func TestARollByRestartEndsWhereNoWorkloadRanBefore(t *testing.T) {
	res := play(t, "length: 20m\nevents:\n- {at: 5m, roll: {action: restart}}\n")
	if e := res.Events[0]; e.Converged == nil || *e.Converged > 300 || res.Machines.Created != 6 {
		t.Errorf("six restarts: %+v, %+v", e, res.Machines)
	}
}

// What age alone brings about is no consequence of an event that was over long before, and a group
// whose instances are always being replaced for their age is as wanted meanwhile.
func TestPlannedReplacementsDoNotCountAgainstAnEvent(t *testing.T) {
	for name, change := range map[string]func(*store.Group){
		"expiry": func(g *store.Group) { g.Expiry.ForcedAge = new(store.Duration(time.Hour)) },
		"spot":   func(g *store.Group) { g.Spot.Enabled, g.Spot.MaxLifetime = true, store.Duration(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			res := playOf(t, change, "length: 2h30m\nevents:\n- {at: 10m, kill: {}}\nexpect: {converged_within: 2m}\n")
			if e := res.Events[0]; e.Converged == nil || *e.Converged < 10 || *e.Converged > 120 || !res.Met ||
				res.Machines.Created < 13 {
				t.Errorf("as wanted after %+v, expectations met: %t, %+v", e, res.Met, res.Machines)
			}
			if g := res.Groups[0]; !g.Whole || g.Availability != 83 {
				t.Errorf("got %+v", g)
			}
		})
	}
}

// A failed replacement for age is noticed as soon as no instance in its slot is healthy.
func TestAPlannedReplacementHidesNoLoss(t *testing.T) {
	res := playOf(t, func(g *store.Group) { g.Expiry.ForcedAge = new(store.Duration(time.Hour)) },
		"length: 1h30m\nevents:\n- {at: 50m, no_capacity: {}}\n- {at: 1h10m, kill: {percent: "+
			"100}}\nexpect: {converged: false}\n")
	if e := res.Events[1]; e.Converged != nil || res.Whole || e.Worst != 0 {
		t.Errorf("all were killed, and none can be made: %+v", e)
	}
}

// The event says how many instances it affected, not how many were asked for.
func TestEventTextCountsAffectedInstances(t *testing.T) {
	for event, want := range map[string]string{
		"kill: {count: 50}":           "6 machines (50 wanted) killed",
		"kill: {count: 5}":            "5 machines killed",
		"kill: {slot: 9}":             "no machine in slot 9 killed",
		"kill: {percent: 50}":         "50% of all machines killed",
		"drained: {}":                 "order: no instance to be declared drained",
		"freeze: {count: 9, for: 2m}": "6 agents (9 wanted) frozen",
		"workload_exits: {count: 7}":  "6 workloads (7 wanted) exited with 1",
	} {
		res := play(t, "length: 10m\nevents:\n- {at: 4m, "+event+"}\nexpect: {converged: false}\n")
		told := []string{strings.TrimSuffix(res.Events[0].What, " for 2m")}
		for _, e := range res.Timeline {
			if e.Source == Happens || e.Source == Over {
				told = append(told, strings.TrimSuffix(strings.TrimPrefix(e.What, "over: "), " for 2m"))
			}
		}
		for _, what := range told {
			if what != want {
				t.Errorf("%s: told as %q, want %q", event, what, want)
			}
		}
	}
}

// A group that was never complete has no worst since it was: it meets no expectation of
// availability.
func TestAGroupThatWasNeverCompleteMeetsNoAvailability(t *testing.T) {
	res := play(t,
		"length: 10m\nprovider: {zones: {a: 2, b: 2}}\nexpect: {worst_availability: 100%, "+
			"worst_serving: 1%, converged: false}\n")
	if g := res.Groups[0]; !g.Never || g.Best != 4 || g.Availability != 0 || g.Serving != 0 {
		t.Errorf("room for four of six: %+v", g)
	}
	for _, k := range res.Checks {
		if k.Met || !strings.Contains(k.Got, "web was never complete (4 of 6 at best)") {
			t.Errorf("got %+v", k)
		}
	}
	if res := play(t, "length: 10m\nevents:\n- {at: 0s, stop: web}\nexpect: {worst_availability: 100%}\n"); !res.Met ||
		res.Groups[0].Never {
		t.Errorf("of a stopped group nothing is wanted: %+v", res.Groups[0])
	}
}

// A check finds out when it is done next, and its verdict changes after as many results as its
// threshold says.
func TestIntervalsAndThresholdsOfChecksArePlayed(t *testing.T) {
	after := func(interval time.Duration, threshold int) (sick, well time.Duration) {
		res := playOf(t, func(g *store.Group) {
			c := store.DefaultCheck()
			c.Name, c.HTTP, c.Interval, c.UnhealthyThreshold, c.HealthyThreshold = "web", &store.HTTPCheck{Port: "80"},
				store.Duration(interval), threshold, threshold
			g.Checks = []store.Check{c}
			g.Heal.Policy = store.HealNone
		}, "length: 20m\nevents:\n- {at: 10m, unhealthy: {slot: 2, for: 5m}}\n")
		for _, e := range res.Timeline {
			switch {
			case e.Source == Verdict && e.What == "is unhealthy":
				sick = e.At - 10*time.Minute
			case e.Source == Verdict && sick > 0 && (e.What == "is live" || e.What == "is healthy again"):
				well = e.At - 15*time.Minute
			}
		}
		return sick, well
	}
	for _, c := range []struct {
		interval  time.Duration
		threshold int
	}{{2 * time.Second, 2}, {30 * time.Second, 4}} {
		least, most := time.Duration(c.threshold-1)*c.interval, time.Duration(c.threshold)*c.interval+time.Second
		if sick, well := after(c.interval, c.threshold); sick < least || sick > most || well < least || well > most {
			t.Errorf("every %s, %d times: unhealthy after %s and well after %s, want %s to %s", c.interval, c.threshold,
				sick, well, least, most)
		}
	}
}
