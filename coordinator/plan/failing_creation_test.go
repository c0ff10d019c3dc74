package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A creation that keeps failing holds the room that others need for their healing, but not for
// longer than DET-10 gives.
//
// proves HEAL-13
func TestCreationThatKeepsFailingIsWithdrawn(t *testing.T) {
	const limit = 7 * time.Minute
	for _, c := range []struct {
		name   string
		age    time.Duration
		change func(*world)
		want   string
		look   time.Duration // when to look again at the latest; 0: that is not tried
	}{
		{"fails for a while", limit - time.Second, nil, "", time.Second},
		{"fails for too long", limit, nil, "HEAL-13 -b", 0},
		{
			"a call is under way, which may be the one that works", limit,
			func(w *world) { w.see("b", func(in *Instance) { in.Calls.Busy = true }) }, "", 0,
		},
		{
			"slow, but nothing has failed", time.Hour,
			func(w *world) { w.see("b", func(in *Instance) { in.Calls.Problem = "" }) }, "", 0,
		},
		{"no limit is set: registration_timeout", 5 * time.Minute, func(w *world) {
			v := w.instance("b")
			v.Record.Spec.MaxChecking = 0
			w.put(v.Key, v.Record)
		}, "HEAL-13 -b", 0},
		{"no room to delete", limit, func(w *world) {
			w.edit(func(g *store.Group) { g.Budget.MaxDeleting = 1 })
			w.place("x", 5, store.Deleting)
		}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size, g.MaxChecking = 3, store.Duration(limit) })
			for slot, id := range []string{"a", "c", "ok"} {
				w.place(id, slot, store.Running)
			}
			w.turn("a", false)
			w.turn("c", false)
			w.place("b", 0, store.Creating, replaces("a"))
			w.see("b", func(in *Instance) { in.Calls.Problem = "500 internal error" })
			w.see("b", func(in *Instance) { in.PhaseStart = w.now.Add(-c.age) })
			if c.change != nil {
				c.change(w)
			}
			if got := w.briefly(); got != c.want {
				t.Errorf("planned %q, want %q", got, c.want)
			}
			if p := Compute(w.snapshot(), w.now); c.look != 0 && (p.Wake.IsZero() || p.Wake.After(w.now.Add(c.look))) {
				t.Errorf("to be looked at again at %s, want within %s", p.Wake, c.look)
			}
		})
	}
}

// It is no failure of the slot, and healing goes on as soon as it is proved that there is no
// machine.
//
// proves HEAL-13, REC-18
func TestWithdrawnCreationGivesItsRoomAway(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 3 })
	for slot, id := range []string{"a", "c", "ok"} {
		w.place(id, slot, store.Running)
	}
	w.turn("a", false)
	w.turn("c", false)
	w.place("b", 0, store.Creating, replaces("a"))
	w.see("b", func(in *Instance) { in.Calls.Problem = "500 internal error" })
	w.see("b", func(in *Instance) { in.PhaseStart = w.now.Add(-time.Hour) })
	w.step()
	if got := w.instance("b").Record.Phase; got != store.Deleting {
		t.Fatalf("it is %s", got)
	}
	if slot := read[store.Slot](w, w.keys.Slot(w.group, 0)).Record; len(slot.Failures) != 0 {
		t.Errorf("counted as failures of the slot: %+v", slot.Failures)
	}
	for range 60 { // an abandoned call may still make its machine
		if !w.instance("b").Present() {
			break
		}
		w.pass(time.Second)
		w.step()
	}
	replaced := slices.ContainsFunc(w.instances(),
		func(v store.Versioned[store.Instance]) bool { return v.Record.Replaces != "" })
	if got := w.briefly(); !replaced && !strings.HasPrefix(got, "HEAL-2 +") {
		t.Errorf("planned %q, want another replacement", got)
	}
}
