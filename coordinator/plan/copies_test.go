package plan

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A machine that was made and given up is removed while its instance lives; a copy of unknown
// origin is told of. A pause keeps both waiting, and of an instance that is deleted all machines go
// at once.
//
// proves PROV-4, REC-13
func TestCopiesOfAnInstance(t *testing.T) {
	spare, foreign := Copy{Ref: "b", Call: "other", Spare: true}, Copy{Ref: "c"}
	for _, c := range []struct {
		name    string
		phase   store.Phase
		paused  bool
		copies  []Copy
		removed string // the machine that is asked to be removed
		blocked string // the reported reason
	}{
		{"none", store.Running, false, nil, "", ""},
		{"made and given up", store.Running, false, []Copy{foreign, spare}, "b", "c"},
		{"paused", store.Running, true, []Copy{spare}, "", ""},
		{"of unknown origin", store.Running, false, []Copy{foreign}, "", "c"},
		{"not registered yet", store.Booting, false, []Copy{foreign}, "", ""},
		{"deleted", store.Deleting, false, []Copy{spare, foreign}, "", ""},
		{"many", store.Running, false, []Copy{{Ref: "1"}, {Ref: "2"}, {Ref: "3"}, {Ref: "4"}}, "", "1, 2, 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size, g.Paused = 1, c.paused })
			w.place("a", 0, c.phase)
			w.see("a", func(in *Instance) {
				in.Sighting.Listed, in.Sighting.Begun, in.Sighting.Copies = true, w.now, c.copies
			})
			p := Compute(w.snapshot(), w.now)
			removed := ""
			for _, call := range p.Calls {
				if call.Kind == CallRemoveCopy {
					removed += call.Copy.Ref
				}
			}
			if removed != c.removed {
				t.Errorf("to be removed: %q, want %q", removed, c.removed)
			}
			w.step()
			blocked := ""
			for _, b := range read[store.Status](w, w.keys.Status(w.group)).Record.Blocked {
				if b.Kind == store.BlockedByCopies {
					blocked += b.Of.Text
				}
			}
			if blocked != c.blocked {
				t.Errorf("told: %q, want %q", blocked, c.blocked)
			}
		})
	}
}
