package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/store"
	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

// chance is a fate drawn by rapid, so that a failing run can be repeated and made smaller.
type chance struct {
	t     *rapid.T
	quiet bool // nothing goes wrong
	// hundred are the numbers below 100, to be drawn from evenly: rapid's ranges prefer their ends.
	hundred []int
}

func (c *chance) happens(what string, percent int) bool {
	return !c.quiet && rapid.SampledFrom(c.hundred).Draw(c.t, what) >= 100-percent
}

func (c *chance) wait(what string, most time.Duration) time.Duration {
	if c.quiet {
		return 0
	}
	return most * time.Duration(rapid.SampledFrom([]int{0, 1, 2, 3, 4}).Draw(c.t, what)) / 4
}

// trial is one run of a world in which much goes wrong.
type trial struct {
	*world
	chance *chance
	log    []string
}

// proves SAFE-3, SAFE-4, SAFE-8, SAFE-12, HEAL-2, HEAL-6, HEAL-7, REC-7, REC-13, REC-16
//
// rapid prints how to repeat a failing run: -rapid.failfile or -rapid.seed.
func TestNothingGoesWrongAndAllComesRight(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := &chance{t: rt}
		for i := range 100 {
			c.hundred = append(c.hundred, i)
		}
		tr := &trial{world: newWorld(rt, c), chance: c}
		tr.onCommit = tr.meanwhile
		tr.told = func(a Action) { tr.note("  %s %s %s: %s", a.Rule, a.Instance, a.What(), a.Why) }
		tr.edit(tr.drawSpec)
		tr.hookFor = time.Duration(rapid.SampledFrom([]int{0, 1, 10}).Draw(rt, "hook takes")) * time.Second
		c.quiet = rapid.Bool().Draw(rt, "begins well")
		for range 10 {
			tr.turnOver(time.Second)
		}
		c.quiet = false
		for range rapid.SampledFrom([]int{5, 20, 40}).Draw(rt, "events") {
			tr.event()
			tr.turnOver(time.Duration(rapid.SampledFrom([]int{1, 1, 2, 5, 20}).Draw(rt, "seconds")) * time.Second)
		}
		tr.comesRight()
	})
}

// drawSpec draws how a group is to be kept.
func (tr *trial) drawSpec(g *store.Group) {
	rt := tr.chance.t
	g.Size = rapid.IntRange(1, 5).Draw(rt, "size")
	g.Budget.MaxExpansion = store.Amount(rapid.IntRange(0, 3).Draw(rt, "max_expansion"))
	g.Budget.MaxUnavailable = new(store.Amount(rapid.IntRange(0, 2).Draw(rt, "max_unavailable")))
	if g.Budget.MaxExpansion == 0 {
		g.Budget.MaxUnavailable = new(max(1, *g.Budget.MaxUnavailable)) // else only dead instances are healed (HEAL-3)
	}
	g.Budget.MaxCreating = rapid.IntRange(0, 3).Draw(rt, "max_creating")
	g.Budget.MaxDeleting = rapid.IntRange(0, 3).Draw(rt, "max_deleting")
	g.RegistrationTimeout, g.MaxChecking = store.Duration(40*time.Second), store.Duration(40*time.Second)
	g.Flap = store.FlapSpec{
		Failures: rapid.IntRange(1, 4).Draw(rt, "flap.failures"), Window: store.Duration(3 * time.Minute),
		MinDelay: store.Duration(5 * time.Second),
		MaxDelay: store.Duration(time.Minute), Reset: store.Duration(time.Minute),
		GiveUpAfter: rapid.SampledFrom([]int{0, 0, 3}).Draw(rt, "flap.give_up_after"),
	}
	g.Heal.Policy = rapid.SampledFrom([]string{store.HealRecreate, store.HealRestart}).Draw(rt, "heal.policy")
	if rapid.Bool().Draw(rt, "runs a workload") {
		g.Workload.Run = []string{"./web"}
	}
	if rapid.Bool().Draw(rt, "drains") {
		g.Drain.Hook, g.Drain.Timeout = []string{"./drain"}, store.Duration(20*time.Second)
	}
	g.Rollout.MinimalAction = rapid.SampledFrom([]string{
		store.ActionLiveUpdate, store.ActionLiveUpdate,
		store.ActionRestart, store.ActionRecreate,
	}).Draw(rt, "minimal_action")
	g.Rollout.StartupDuration = rapid.SampledFrom([]store.Duration{0, 0, store.Duration(5 * time.Second)}).Draw(rt,
		"startup_duration")
	if rapid.IntRange(0, 3).Draw(rt, "expires") == 3 {
		g.Expiry.EligibleAge, g.Expiry.ForcedAge = new(store.Duration(time.Minute)), new(store.Duration(3*time.Minute))
	}
}

func (tr *trial) note(format string, args ...any) {
	line := fmt.Sprintf("%7s ", tr.now.Sub(epoch)) + fmt.Sprintf(format, args...)
	tr.log = append(tr.log, line)
	tr.chance.t.Log(line)
}

// turnOver lets time pass, and plans until nothing more is to be done at once.
func (tr *trial) turnOver(d time.Duration) {
	tr.pass(d)
	for range 4 {
		tr.planIsSound()
		if _, done := tr.step(); len(done) == 0 {
			return
		}
	}
}

// meanwhile comes between a plan and an action of it: whatever it changes, the action must be safe
// or not happen.
func (tr *trial) meanwhile(s *Snapshot, p *Plan, a *Action) {
	if tr.chance.happens("something comes in between", 4) {
		tr.note("(before %s of %s)", a.What(), a.Instance)
		tr.event()
	}
	tr.actionIsSound(s, p, a)
}

// event is one thing that happens to the world.
func (tr *trial) event() {
	rt := tr.chance.t
	kinds := []string{
		"nothing", "nothing", "kill", "kill", "cut off", "freeze", "unhealthy", "unhealthy", "return", "return",
		"healthy", "healthy",
		"leader", "outage", "size", "pause", "resume", "hold", "release", "replace", "delete", "budget", "template",
		"full", "room", "spoil", "mend", "stale", "fresh",
		"broken", "broken", "notice", "evacuating", "shutdown", "restart", "restart", "drain", "drained", "protect",
		"unprotect", "create", "retry", "vars", "run", "relaunch",
		"evacuate", "reopen", "refuses",
	}
	kind := rapid.SampledFrom(kinds).Draw(rt, "event")
	id := ""
	switch kind {
	case "kill", "cut off", "freeze", "unhealthy", "return", "healthy", "replace", "delete", "broken", "notice",
		"evacuating", "shutdown", "restart", "drain",
		"drained", "protect", "unprotect", "refuses":
		ids := tr.names(store.KindInstances)
		if len(ids) == 0 {
			return
		}
		id = rapid.SampledFrom(ids).Draw(rt, "instance")
	}
	tr.note("%s %s", strings.ToUpper(kind), id)
	switch kind {
	case "nothing":
	case "kill":
		tr.kill(id)
	case "cut off":
		tr.silence(id, true)
	case "freeze":
		tr.silence(id, false)
	case "return":
		tr.comeBack(id)
	case "unhealthy", "healthy":
		tr.turn(id, kind == "healthy")
	case "leader":
		tr.leaderChange()
	case "outage":
		tr.outage()
	case "replace", "delete", "restart", "drain", "drained":
		tr.order(store.Request{Kind: store.RequestKind(kind), Instance: id})
	case "protect", "unprotect":
		mode := map[string]string{"protect": store.ProtectHeal, "unprotect": store.ProtectOff}[kind]
		tr.order(store.Request{Kind: store.RequestProtect, Instance: id, Mode: mode})
	case "create", "retry":
		tr.order(store.Request{Kind: store.RequestKind(kind), Group: tr.group})
	case "evacuate", "reopen":
		tr.order(store.Request{Kind: map[string]store.RequestKind{
			"evacuate": store.RequestEvacuate,
			"reopen":   store.RequestReturn,
		}[kind], Zone: "a"})
	case "broken":
		if a := tr.agents[id]; a != nil {
			a.ails = "machine"
			tr.turn(id, false)
		}
	case "notice":
		tr.notice(id, "30s", 30*time.Second)
	case "evacuating", "shutdown":
		tr.leave(id, store.Goodbye(kind))
	case "refuses":
		if a := tr.agents[id]; a != nil {
			a.refuses = true
		}
	case "full", "room":
		tr.noRoom["a"] = kind == "full"
	case "stale", "fresh":
		tr.stale = map[string]string{"stale": "the watch is behind"}[kind]
	case "hold", "release":
		tr.editShard(func(s *store.Shard) {
			s.Hold = nil
			if kind == "hold" {
				s.Hold = &store.Hold{By: "op", Why: "test", At: tr.now}
			}
		})
	case "spoil":
		tr.spoil()
	case "mend":
		tr.repairSpec()
	default:
		tr.operate(kind)
	}
}

func (tr *trial) order(r store.Request) {
	r.Schema, r.ID, r.By, r.At = store.Schema, fmt.Sprintf("r%06d", tr.rev), "op", tr.now
	tr.put(tr.keys.Request(r.ID), r)
}

// spoil leaves a spec that cannot be in force.
func (tr *trial) spoil() {
	if !read[store.Status](tr.world, tr.keys.Status(tr.group)).Present() || !tr.spec().Present() {
		return // nothing was accepted yet
	}
	if rapid.Bool().Draw(tr.chance.t, "vanishes") {
		tr.drop(tr.keys.Group(tr.group))
		return
	}
	tr.edit(func(g *store.Group) { g.Lifecycle = "nonsense" })
}

// repairSpec puts a right spec in the place of a spoiled one.
func (tr *trial) repairSpec() {
	accepted := read[store.Status](tr.world, tr.keys.Status(tr.group)).Record.Accepted
	if accepted != nil && (!tr.spec().Present() || tr.spec().Record.Lifecycle == "nonsense") {
		tr.put(tr.keys.Group(tr.group), *accepted)
	}
}

func (tr *trial) operate(kind string) {
	rt := tr.chance.t
	if !tr.spec().Present() {
		return
	}
	tr.edit(func(g *store.Group) {
		switch kind {
		case "size":
			g.Size = rapid.IntRange(0, 6).Draw(rt, "size")
		case "pause", "resume":
			g.Paused = kind == "pause"
		case "budget":
			g.Budget.MaxExpansion = store.Amount(rapid.IntRange(1, 3).Draw(rt, "max_expansion"))
			g.Budget.MaxDeleting = rapid.IntRange(0, 2).Draw(rt, "max_deleting")
		case "vars":
			g.Vars = map[string]string{"greeting": rapid.SampledFrom([]string{"hello", "bye"}).Draw(rt, "greeting")}
		case "run":
			g.Workload.Run = []string{"./web", rapid.SampledFrom([]string{"-a", "-b"}).Draw(rt, "flag")}
		case "relaunch":
			g.Relaunch = store.Relaunch{
				Number: g.Relaunch.Number + 1,
				Action: rapid.SampledFrom([]string{store.ActionRestart, store.ActionRecreate}).Draw(rt, "action"),
			}
		case "template":
			g.Template.InstanceType = rapid.SampledFrom([]string{"small", "large"}).Draw(rt, "type")
		}
	})
}

// comesRight ends all troubles: within bounded time the group is as wanted, and stays so.
func (tr *trial) comesRight() {
	tr.chance.quiet = true
	tr.note("NOTHING GOES WRONG ANY MORE")
	tr.repairSpec()
	tr.noRoom, tr.stale = map[string]bool{}, ""
	for _, a := range tr.agents {
		a.refuses = false
	}
	tr.editShard(func(s *store.Shard) { s.Hold, s.Evacuated = nil, nil })
	tr.edit(func(g *store.Group) { g.Paused, g.Expiry = false, store.ExpirySpec{} })
	for _, v := range tr.instances() {
		if v.Record.Protected != "" {
			tr.order(store.Request{Kind: store.RequestProtect, Instance: v.Record.ID, Mode: store.ProtectOff})
		}
	}
	tr.order(store.Request{Kind: store.RequestRetry, Group: tr.group})
	deleted := rapid.IntRange(0, 5).Draw(tr.chance.t, "group is deleted at last") == 5
	if deleted {
		tr.edit(func(g *store.Group) { g.Deleting = true })
	}
	end := tr.now.Add(patience)
	for {
		missing := tr.converged()
		if missing == "" {
			break
		}
		if tr.now.After(end) {
			tr.chance.t.Fatalf("after %s of calm: %s\n%s", patience, missing, tr.describe())
		}
		tr.turnOver(5 * time.Second)
		if tr.givenUp() {
			tr.order(store.Request{Kind: store.RequestRetry, Group: tr.group}) // an operator knows better
		}
	}
	tr.turnOver(time.Second)
	if _, done := tr.step(); len(done) > 0 && !deleted {
		for _, a := range done {
			if a.From != a.To && a.To != "" {
				tr.chance.t.Fatalf("all is as wanted, yet: %s %s", a.Instance, a.What())
			}
		}
	}
}

// givenUp reports whether nothing more happens without an operator: a template is blamed, or a slot
// is given up, because what ails a machine that was made before the calm is cured by no restart.
func (tr *trial) givenUp() bool {
	status := read[store.Status](tr.world, tr.keys.Status(tr.group)).Record
	return status.Rollout != nil && status.Rollout.Blamed != "" ||
		slices.ContainsFunc(tr.snapshot().Groups[0].Slots,
			func(s store.Versioned[store.Slot]) bool { return s.Record.Errored != "" })
}

// describe shows the group's instances.
func (tr *trial) describe() string {
	var b strings.Builder
	s := tr.snapshot()
	p := Compute(s, tr.now)
	for _, in := range s.Groups[0].Instances {
		fmt.Fprintf(&b, "%s slot %d %s %s: %s, sighting %+v, calls %+v\n", in.Record.ID, in.Record.Slot,
			in.Record.Phase, p.Judgments.Of(in.Record.ID).Verdict, p.Judgments.Of(in.Record.ID).Cause.Kind, in.Sighting,
			in.Calls)
	}
	fmt.Fprintf(&b, "size %d, blocked %+v, next %s\n", tr.spec().Record.Size, s.Groups[0].Status.Record.Blocked,
		p.Wake.Sub(tr.now))
	return b.String()
}
