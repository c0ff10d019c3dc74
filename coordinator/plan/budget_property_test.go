package plan

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/store"
	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

// However a group stands, and however much of a plan for it happens, in whatever order: no budget
// is exceeded.
//
// proves HEAL-3, HEAL-5, HEAL-7, HEAL-10, REC-5
func TestBudgetsHoldHoweverMuchOfAPlanHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tr := &trial{world: newWorld(rt, calm{}), chance: &chance{t: rt, quiet: true}}
		tr.edit(tr.drawSpec)
		size := tr.spec().Record.Size
		for i := range rapid.IntRange(0, 2*size+2).Draw(rt, "instances") {
			tr.drawInstance(fmt.Sprintf("i%02d", i), rapid.IntRange(0, size).Draw(rt, "slot"))
		}
		if rapid.IntRange(0, 9).Draw(rt, "zone is evacuated") == 9 {
			tr.editShard(func(s *store.Shard) { s.Evacuated = map[string]store.Evacuation{"a": {By: "op"}} })
		}
		if rapid.IntRange(0, 4).Draw(rt, "spec changes") == 4 {
			tr.edit(tr.drawSpec)
		}
		tr.pass(time.Duration(rapid.SampledFrom([]int{0, 30, 300}).Draw(rt, "seconds")) * time.Second)
		s := tr.snapshot()
		p := Compute(s, tr.now)
		for _, in := range s.Groups[0].Instances {
			tr.chance.t.Logf("%s slot %d %s %s, outdated %t, condemned %+v, doomed %+v", in.Record.ID, in.Record.Slot,
				in.Record.Phase, p.Judgments.Of(in.Record.ID).Verdict,
				in.Record.Template == "t0", in.Record.Condemned, in.Record.Doomed)
		}
		tr.chance.t.Logf("size %d, %+v: %q", size, tr.spec().Record.Budget, told(&p))
		tr.planIsSound()
		for range 4 {
			happens := map[int]bool{}
			for i := range p.Actions {
				happens[i] = rapid.Bool().Draw(rt, "happens")
			}
			if problem := audit(&s, &s.Groups[0], &p,
				tr.now).overBudget(func(i int) bool { return happens[i] }); problem != "" {
				rt.Fatalf("%s\nof %v only this happens: %v", problem, told(&p), happens)
			}
		}
	})
}

func told(p *Plan) (out []string) {
	for _, a := range p.Actions {
		out = append(out, a.Rule+" "+a.Instance+" "+a.What())
	}
	return out
}

// drawInstance puts an instance in any phase, with any trouble.
func (tr *trial) drawInstance(id string, slot int) {
	rt := tr.chance.t
	phase := rapid.SampledFrom([]store.Phase{
		store.Running, store.Running, store.Running, store.Running, store.Pending, store.Creating, store.Booting,
		store.Checking, store.Stopping, store.Starting,
		store.Draining, store.Deleting,
	}).Draw(rt, "phase")
	mark := rapid.SampledFrom([]string{
		"", "", "", "outdated", "condemned", "condemned now", "noticed",
		"protected",
	}).Draw(rt, "mark")
	tr.place(id, slot, phase, func(r *store.Instance) {
		switch mark {
		case "outdated":
			outdated(r)
		case "condemned", "condemned now":
			condemned(mark == "condemned now")(r)
		case "noticed":
			r.Doomed = &store.Doom{Rule: "SPOT-2", Why: "a notice", At: tr.now}
		case "protected":
			protected(r)
		}
		if phase == store.Stopping || phase == store.Starting {
			r.Restart = &store.Restart{
				Level: store.RestartMachine, Rule: "HEAL-1", Token: "t", Boot: "boot-" + id,
				Heals: true,
			}
		}
		if phase == store.Draining {
			r.Drain = &store.Drain{
				Token: "t", Rule: "HEAL-2", Why: "it failed",
				Timer: store.Timer{Start: tr.now, For: store.Duration(time.Minute)},
			}
		}
	})
	if phase == store.Stopping && rapid.Bool().Draw(rt, "restarted") {
		tr.see(id, func(in *Instance) { in.Calls.Restarted = "t" })
	}
	switch rapid.SampledFrom([]string{"", "", "unhealthy", "dead", "silent", "stuck", "crashed", "ended"}).Draw(rt,
		"trouble") {
	case "unhealthy":
		tr.turn(id, false)
	case "dead":
		tr.kill(id)
	case "silent":
		tr.silence(id, true)
	case "crashed": // and its stream seems open
		tr.silence(id, false)
		if m := tr.machines[id]; m != nil {
			m.down = true
		}
	case "ended":
		tr.exit(id, 1)
	case "stuck":
		tr.stuck(id)
	}
}
