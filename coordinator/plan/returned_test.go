package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// returns makes an agent say hello from a new boot of its machine. It has not reported yet.
func (w *world) returns(id, boot string) {
	v := read[store.Alive](w, w.keys.Alive(id))
	v.Record.Schema, v.Record.Instance, v.Record.Replica = store.Schema, id, "r1"
	v.Record.State, v.Record.BootID, v.Record.Since = store.StreamOpen, boot, w.now
	v.Record.Epoch++
	w.agents[id].refuses = true // the test speaks for it from here on
	w.put(v.Key, v.Record)
}

// reports makes an agent report from a boot.
func (w *world) reports(id, boot string, healthy bool) {
	w.put(w.keys.Report(id), store.Report{
		Schema: store.Schema, Instance: id, BootID: boot, Healthy: healthy,
		Why: "checks",
	})
}

// An original that is back from a new boot has proved nothing by its hello, nor by what it reported
// from the boot before: its healthy replacement stays. Only its report decides.
//
// proves HEAL-6
func TestOriginalThatReturnedProvesItselfFirst(t *testing.T) {
	for _, c := range []struct {
		name    string
		reports func(*world)
		goes    string
	}{
		{"no report but of the boot before", func(*world) {}, "HEAL-2 -a"},
		{"no report at all", func(w *world) { w.drop(w.keys.Report("a")) }, "HEAL-2 -a"},
		{"unhealthy", func(w *world) { w.reports("a", "boot2", false) }, "HEAL-2 -a"},
		{"healthy", func(w *world) { w.reports("a", "boot2", true) }, "HEAL-6 -b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size = 1 })
			w.place("a", 0, store.Running)
			w.place("b", 0, store.Running, replaces("a"))
			w.returns("a", "boot2")
			c.reports(w)
			if got := w.briefly(); got != c.goes {
				t.Errorf("planned %q, want %q", got, c.goes)
			}
			// The journal says nothing that is not so.
			for _, a := range Compute(w.snapshot(), w.now).Actions {
				if strings.Contains(a.Why, "lost too often") {
					t.Errorf("%s of %s: %s; it was lost once at most", a.What(), a.Instance, a.Why)
				}
			}
		})
	}
}

// While the agent of one of two is on its way to another replica, neither goes: the other cannot
// rely on it, and it has done nothing wrong.
//
// proves HEAL-6, DET-8
func TestNobodyIsDecidedOnWhileItsAgentMoves(t *testing.T) {
	for _, mover := range []string{"a", "b"} {
		t.Run(mover, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size = 1 })
			w.place("a", 0, store.Running)
			w.place("b", 0, store.Running, replaces("a"))
			says := func(state store.StreamState) string {
				v := read[store.Alive](w, w.keys.Alive(mover))
				v.Record.State = state
				w.put(v.Key, v.Record)
				return w.briefly()
			}
			if got := says(store.StreamMoved); got != "" {
				t.Errorf("planned %q while it moves", got)
			}
			if got := says(store.StreamOpen); got != "HEAL-6 -b" {
				t.Errorf("planned %q once it has arrived", got)
			}
		})
	}
}

// A replacement that is not healthy yet is not enough reason to let an original go that is back,
// and no other is made.
//
// proves HEAL-6
func TestOriginalThatReturnedIsLeftAloneBesideAnUnfinishedReplacement(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 1 })
	w.place("a", 0, store.Running)
	w.place("b", 0, store.Booting, replaces("a"))
	w.returns("a", "boot2")
	if got := w.briefly(); got != "" {
		t.Errorf("planned %q before it is known how the original is", got)
	}
	w.reports("a", "boot2", true)
	if got := w.briefly(); got != "HEAL-6 -b" {
		t.Errorf("planned %q once the original is healthy", got)
	}
}

// Nor does a replacement take the place by what it reported from the boot before.
//
// proves HEAL-6
func TestReplacementThatReturnedDoesNotTakeThePlaceUnproved(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 1 })
	w.place("a", 0, store.Running)
	w.place("b", 0, store.Running, replaces("a"))
	w.turn("a", false)
	w.returns("b", "boot2")
	if got := w.briefly(); got != "" {
		t.Errorf("planned %q on the word of a boot that is over", got)
	}
	w.pass(time.Second)
	w.reports("b", "boot2", true)
	if got := w.briefly(); got != "HEAL-2 -a" {
		t.Errorf("planned %q once the replacement is healthy", got)
	}
}
