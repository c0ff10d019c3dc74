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

// An instance whose restart the provider has not carried out does not show that its template fails:
// the last good template stays in use for whatever is created beside a roll.
//
// proves ROLL-9, FLAP-5
func TestAProviderThatRestartsNothingLeavesTheGoodTemplateInUse(t *testing.T) {
	for name, c := range map[string]struct {
		restarted, unwell, unlisted, fails bool
	}{
		"it is not restarted":                  {},
		"it could not be asked for before":     {unlisted: true},
		"it is restarted, and never registers": {restarted: true, fails: true},
		"it is not, and another is unhealthy":  {unwell: true, fails: true},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 2 })
		w.place("a", 0, store.Stopping, outdated, func(r *store.Instance) {
			r.Restart = &store.Restart{Level: store.RestartMachine, Rule: "HEAL-1", Token: "t", At: w.now, Heals: true}
			if c.restarted {
				r.Phase = store.Starting
			}
			if c.unlisted {
				r.Restart.Listed = "b"
			}
		})
		w.see("a", func(in *Instance) {
			if in.PhaseStart = w.now.Add(-time.Hour); c.unlisted {
				in.Sighting = Sighting{}
			}
		})
		if c.unwell {
			w.place("b", 1, store.Running, outdated)
			w.agents["b"].healthy = false
			w.report("b")
		}
		w.noGrace = true
		d := w.drafted()
		if d.members[0].judgment.Verdict != store.Stuck {
			t.Fatalf("%s: it is %s", name, d.members[0].judgment.Verdict)
		}
		if got := d.templates.fails("t0"); got != c.fails {
			t.Errorf("%s: its template fails: %t", name, got)
		}
		if blames := d.members[0].blames() != ""; blames != c.restarted {
			t.Errorf("%s: its failure counts against its template: %t", name, blames)
		}
	}
}
