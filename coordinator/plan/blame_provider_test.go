package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A restart that the provider does not carry out says nothing about the template that it brings.
//
// proves ROLL-5
func TestAProviderThatRestartsNothingBlamesNoTemplate(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 8 })
	for i := range 4 {
		id := fmt.Sprintf("i%d", i)
		w.place(id, i, store.Stopping, func(r *store.Instance) {
			r.Restart = &store.Restart{Level: store.RestartMachine, Rule: "ROLL-2", Token: "t", At: w.now}
		})
		w.see(id, func(in *Instance) { in.PhaseStart = w.now.Add(-time.Hour) })
	}
	for i := range 4 {
		w.place(fmt.Sprintf("g%d", i), 4+i, store.Running, func(r *store.Instance) { r.Template = "good" })
	}
	w.noGrace = true
	d := w.drafted()
	for _, m := range d.members[:8] {
		t.Log(m.ID(), m.phase, m.judgment.Verdict, m.judgment.Why(), m.updating())
	}
	if got := d.healing.failsBeside("good"); got != 0 {
		t.Errorf("%d count against the template", got)
	}
}
