package web_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// changing writes a group in which a roll waits for a window, whose size follows its load, and one
// of whose instances is protected.
func (x *exhibit) changing(name string) {
	x.t.Helper()
	x.group(name, 4)
	least := 2
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Size = name, "mem", 4
	g.Windows = []store.Window{{From: "22:00", For: store.Duration(time.Hour), Allow: []string{store.PlannedRoll}}}
	g.Scale = &store.ScaleSpec{Min: &least, Max: 6, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: 50}}}
	g.Complete()
	numbers := []store.ScaleNumber{{Metric: store.MetricCPU, Value: 90, Target: 50, Fresh: 4, Of: 4, Wish: 8}}
	opens := x.now.Truncate(24 * time.Hour).Add(22 * time.Hour)
	x.put(map[string]any{x.keys.Status(name): store.Status{
		Schema: store.Schema, Group: name, Accepted: &g, AcceptedRevision: 1 << 40, State: store.GroupStarted,
		Health: 100, Healthy: 4, Since: x.now, Phases: map[store.Phase]int{store.Running: 4},
		Breaker: &store.Breaker{Since: x.now.Add(-time.Minute), Count: 3, Limit: 1},
		Rollout: &store.Rollout{
			Template: "t2", Since: x.now.Add(-time.Minute), Progress: x.now, Done: 1, Total: 4, Canary: 2, Canaries: []int{0},
			Stalls: &store.Timer{Start: x.now, For: store.Duration(time.Hour)},
		},
		Scale: &store.Scale{Size: 4, Wish: 6, Asks: 8, Stays: store.ScaleAtMost, Numbers: numbers, At: x.now},
		Blocked: []store.Blocked{{
			Rule: "ROLL-6", Kind: store.BlockedByWindow, Work: store.WorkRoll, Turn: true,
			Of: store.BlockedFacts{Group: name, Opens: opens},
		}},
	}})
	id := name + "-3-a"
	x.put(map[string]any{x.keys.Instance(id): store.Instance{
		Schema: store.Schema, ID: id, Group: name, Slot: 3, Phase: store.Running, Managed: true, Zone: "a", Since: x.now,
		Created: x.now, Spec: store.InstanceSpec{Provider: "mem"}, Template: "t2", Protected: store.ProtectRemoval,
		Protection: &store.Protection{By: "ada", Why: "a dump", Ends: &store.Timer{
			Start: x.now, For: store.Duration(time.Hour),
		}},
	}})
	x.tell(-time.Minute, store.JournalEntry{
		Rule: "AUTO-1", What: "size 4", Group: name,
		Cause: store.Cause{Kind: store.CauseLoad, Count: 3, Limit: 4, Load: &store.CauseNumbers{Numbers: numbers}},
	})
	x.shows("/events?group="+name, "AUTO-1")
	for _, ago := range []time.Duration{2 * time.Minute, time.Minute} {
		x.server.Views().Sample(x.now.Add(-ago))
	}
}

// proves WEB-1: a roll, windows, scaling and what is left alone are shown as pictures, with their
// numbers in the text beside them
func TestPageShowsChange(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.changing("api")
	_, body, _ := x.get("/g/api")
	for what, want := range map[string]string{
		"the breaker":           "BREAKER: held",
		"the canaries":          "1 of 2 canaries, slot 0",
		"a bar of the roll":     `<rect class="done"`,
		"what waits":            "no window that allows it is open",
		"work without a window": "not by its windows",
		"who protects":          "by ada until",
		"bounds of the size":    "size <b>4</b>, from 2 to 6; load asks for <b>8</b>: scale.max is 6",
		"the last change":       "3 → 4: cpu 90%",
		"a line of the size":    `<polyline class="size"`,
		"the bounds as lines":   "bounds, 2 and 6",
		"the roll as a band":    `<rect class="stretch rolling"`,
		"the breaker as a band": `<rect class="stretch breaker"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s: %q is not on the page", what, want)
		}
	}
	if raw := regexp.MustCompile(`>[^<>]*\b\d{4}-\d\d-\d\dT[^<>]*`).FindString(body); raw != "" {
		t.Errorf("a time that is written as records have it: %s", raw)
	}
	// The page reads the wall clock: a week that begins within a window ends within one, too.
	if !regexp.MustCompile(`aria-label="[78] times in a week"`).MatchString(body) {
		t.Error("when windows are open is not on the page")
	}
	if t.Failed() {
		t.Log(body[strings.Index(body, `id="standing"`):strings.Index(body, `id="table"`)])
	}
}

// storm begins a storm in a group, or ends it.
func (x *exhibit) storm(name string, size int, storm *store.Storm) {
	x.t.Helper()
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Size = name, "mem", size
	g.Complete()
	x.put(map[string]any{x.keys.Status(name): store.Status{
		Schema: store.Schema, Group: name, Accepted: &g, AcceptedRevision: 1 << 40, State: store.GroupStarted,
		Health: 50, Healthy: size / 2, Since: x.now.Add(-time.Minute), Phases: map[store.Phase]int{store.Running: size},
		Storm: storm,
	}})
}
