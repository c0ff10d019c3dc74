package plan

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// onDemand makes an instance one that an operator made beside the group's own.
func onDemand(r *store.Instance) { r.Managed = false }

// proves REC-2
func TestOnDemandInstancesAreNotTheGroups(t *testing.T) {
	size := func(n int) func(*store.Group) { return func(g *store.Group) { g.Size = n } }
	for _, c := range []struct {
		name  string
		spec  func(*store.Group)
		world func(*world)
		want  string
	}{
		{"is not counted", size(2), func(w *world) {
			w.place("a", 0, store.Running)
			w.place("x", 1, store.Running, onDemand)
		}, "REC-3 +1"},
		{"is no surplus", size(1), func(w *world) {
			w.place("a", 0, store.Running)
			w.place("x", 1, store.Running, onDemand)
		}, ""},
		{"is not removed by scale-down, though it failed and is the oldest", size(1), func(w *world) {
			w.place("x", 2, store.Running, onDemand)
			w.turn("x", false)
			w.place("a", 0, store.Running)
			w.place("b", 1, store.Running)
		}, "HEAL-9 -a"},
		{"is left when no other is wanted", size(0), func(w *world) {
			w.place("x", 1, store.Running, onDemand)
			w.place("a", 0, store.Running)
		}, "HEAL-9 -a"},
		{"unhealthy: is not healed", size(0), func(w *world) {
			w.place("x", 0, store.Running, onDemand)
			w.turn("x", false)
		}, ""},
		{"dead: is not healed", size(0), func(w *world) {
			w.place("x", 0, store.Running, onDemand)
			w.kill("x")
			w.pass(time.Second)
		}, ""},
		{"lost: is not healed", size(0), func(w *world) {
			w.place("x", 0, store.Running, onDemand)
			w.silence("x", true)
			w.pass(time.Minute)
			w.pass(time.Minute)
		}, ""},
		{"never registered: is not healed", size(0), func(w *world) {
			w.place("x", 0, store.Booting, onDemand)
			w.see("x", func(in *Instance) { in.PhaseStart = w.now.Add(-time.Hour) })
		}, ""},
		{"fills no slot", size(1), func(w *world) {
			w.place("a", 0, store.Running)
			w.turn("a", false)
			w.place("x", 0, store.Running, onDemand)
		}, "HEAL-2 +0"},
		{"dead in the slot of another: that one is all that fills it", size(1), func(w *world) {
			w.place("a", 0, store.Running)
			w.kill("a")
			w.place("x", 0, store.Running, onDemand)
			w.pass(time.Second)
		}, "DET-4 -a, DET-4 +0"},
		{"uses no expansion", size(1), func(w *world) {
			w.place("a", 0, store.Running)
			w.turn("a", false)
			w.place("x", 1, store.Booting, onDemand)
			w.place("y", 2, store.Running, onDemand)
		}, "HEAL-2 +0"},
		{"does not use up max_creating", func(g *store.Group) { g.Size, g.Budget.MaxCreating = 1, 1 }, func(w *world) {
			w.place("x", -1, store.Booting, onDemand)
		}, "REC-3 +0"},
		{"does not use up max_deleting", func(g *store.Group) { g.Size, g.Budget.MaxDeleting = 0, 1 }, func(w *world) {
			w.place("a", 0, store.Running)
			w.place("x", 1, store.Deleting, onDemand)
		}, "HEAL-9 -a"},
		{"makes no slot available", func(g *store.Group) {
			g.Size, g.Budget.MaxExpansion, g.Budget.MaxUnavailable = 2, 0, new(store.Amount(1))
		}, func(w *world) {
			w.place("a", 0, store.Running)
			w.turn("a", false)
			w.place("b", 1, store.Booting)
			w.place("x", 1, store.Running, onDemand)
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(c.spec)
			c.world(w)
			if got := w.briefly(); got != c.want {
				t.Errorf("planned %q, want %q", got, c.want)
			}
		})
	}
}

// One that is too old goes, unless it is protected; an order overrides that.
//
// proves REC-2, REC-13
func TestOnDemandInstancesGoByAgeOrOrder(t *testing.T) {
	hour := store.Duration(time.Hour)
	for name, c := range map[string]struct {
		change []func(*store.Instance)
		want   string
	}{
		"too old":                      {[]func(*store.Instance){old(2 * time.Hour)}, "REC-2 -x"},
		"not too old":                  {nil, ""},
		"protected":                    {[]func(*store.Instance){old(2 * time.Hour), protected}, ""},
		"protected, and ordered to go": {[]func(*store.Instance){protected, condemned(true)}, "REC-16 -x"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size, g.OnDemandAge = 0, hour })
			w.place("x", -1, store.Running, c.change...)
			if got := w.briefly(); got != c.want {
				t.Errorf("planned %q, want %q", got, c.want)
			}
		})
	}
}

// It takes its course to running all the same, and counts neither for the group's health nor
// against it.
//
// proves REC-2
// proves REC-10
func TestOnDemandInstanceRunsBesideTheGroup(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 2 })
	w.place("a", 0, store.Running)
	w.place("b", 1, store.Running)
	w.place("x", -1, store.Checking)
	w.step()
	if got := w.instance("x").Record.Phase; got != store.Running {
		t.Errorf("it is %s, though it is healthy", got)
	}
	w.turn("b", false)
	w.edit(func(g *store.Group) { g.Paused = true }) // so that b stays
	w.step()
	if st := read[store.Status](w, w.keys.Status(w.group)).Record; st.Health != 50 {
		t.Errorf("one of two is healthy, status %+v", st)
	}
	w.turn("b", true)
	w.turn("x", false)
	w.step()
	if st := read[store.Status](w, w.keys.Status(w.group)).Record; st.Health != 100 {
		t.Errorf("two of two are healthy, status %+v", st)
	}
}
