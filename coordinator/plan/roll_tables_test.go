package plan

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// drafted is the draft of the group that is spoken of, judged, before anything is decided.
func (w *world) drafted() *draft {
	s := w.snapshot()
	i := 0
	for s.Groups[i].Name != w.group {
		i++
	}
	d := newDraft(&s, &s.Groups[i], w.now)
	d.judgeAll()
	d.storms.follow(d.storms.tally)
	d.roll.track()
	d.templates.choose()
	return d
}

// spotted is an instance of which a notice says that it will end.
func spotted(r *store.Instance) {
	r.Doomed = &store.Doom{Rule: "SPOT-2", Why: "the provider wants it back"}
}

// What a roll or a rebalance has made and is not healthy yet gives way to healing, as long as the
// one that it is to replace works and has nothing else against it.
//
// proves HEAL-8, REC-17, FLAP-5
func TestWhatIsThereForARollAlone(t *testing.T) {
	old := func(edit func(*store.Instance)) func(*world) { return func(w *world) { w.change("old", edit) } }
	made := func(edit func(*store.Instance)) func(*world) { return func(w *world) { w.change("new", edit) } }
	current := func(w *world) func(*store.Instance) {
		g := w.spec().Record
		return func(r *store.Instance) { r.Template = g.InstanceSpec().TemplateHash() }
	}
	rebalances := made(func(r *store.Instance) { r.Rebalances = true })
	for name, c := range map[string]struct {
		do   func(*world)
		want bool
	}{
		"the replacement of a roll": {nil, true},
		"it runs": {func(w *world) {
			made(func(r *store.Instance) { r.Phase = store.Running })(w)
		}, false},
		"it drains":                   {made(func(r *store.Instance) { r.Phase = store.Draining }), false},
		"it has failed":               {func(w *world) { w.stuck("new") }, false},
		"it is protected":             {made(protected), false},
		"it was ordered to go":        {made(condemned(false)), false},
		"it is outdated itself":       {made(outdated), false},
		"the old one is not outdated": {func(w *world) { w.change("old", current(w)) }, false},
		"the replacement of a rebalance": {
			func(w *world) { w.change("old", current(w)); rebalances(w) }, true,
		},
		"the replacement of a rebalance of another": {func(w *world) {
			w.change("old", current(w))
			rebalances(w)
			made(func(r *store.Instance) { r.Replaces = "another" })(w)
		}, false},
		"the old one is not healthy":    {func(w *world) { w.turn("old", false) }, false},
		"the old one was ordered to go": {old(condemned(false)), false},
		"a notice dooms the old one":    {old(spotted), false},
		"the old one has grown too old": {func(w *world) {
			w.edit(func(g *store.Group) { g.Expiry.ForcedAge = new(store.Duration(1)) })
			w.now = w.now.Add(1)
		}, false},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 1 })
		w.place("old", 0, store.Running, outdated)
		w.place("new", 0, store.Checking, replaces("old"))
		w.turn("new", false)
		if c.do != nil {
			c.do(w)
		}
		d := w.drafted()
		if got := d.roll.rolls(d.find("new"), d.find("old")); got != c.want || d.roll.rolls(d.find("old"), d.find("new")) {
			t.Errorf("%s: it is there for the roll alone: %t", name, got)
		}
	}
	for name, c := range map[string]struct {
		phase  store.Phase
		leaves store.Purpose
		drain  string // by a release before
		last   string // the rule of the last step
		want   bool
	}{
		"drains for healing":            {store.Draining, store.PurposeRoom, "", "HEAL-8", true},
		"drains for healing since":      {store.Draining, "", "HEAL-8", "HEAL-8", true},
		"is deleted for healing":        {store.Deleting, store.PurposeRoom, "", "HEAL-8", true},
		"is deleted for healing since":  {store.Deleting, "", "", "HEAL-8", true},
		"drains for another reason":     {store.Draining, store.PurposeHeal, "", "HEAL-1", false},
		"is deleted for another reason": {store.Deleting, store.PurposeSpare, "", "HEAL-1", false},
		"is deleted for one since":      {store.Deleting, "", "", "HEAL-1", false},
		"stays":                         {store.Running, "", "HEAL-8", "HEAL-8", false},
	} {
		m := &member{Instance: &Instance{}}
		m.Record.Phase, m.Record.Leaves, m.Record.Last.Rule = c.phase, c.leaves, c.last
		if c.drain != "" {
			m.Record.Drain = &store.Drain{Rule: c.drain}
		}
		if m.leavesForRoom() != c.want {
			t.Errorf("%s: it gives way already: %t", name, !c.want)
		}
	}
}

// A roll takes no room in a plan that has done something for a slot without a working instance.
//
// proves HEAL-8
func TestARollWaitsForTheStepsOfHealing(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(*world)
		steps func(*member)
		want  bool
	}{
		"a step for an unhealthy one": {
			func(w *world) { w.turn("a", false) }, func(m *member) { m.touched = true }, true,
		},
		"a step for its slot": {
			func(w *world) { w.turn("a", false) }, func(m *member) { m.slot.touched = true }, true,
		},
		"no step": {func(w *world) { w.turn("a", false) }, func(*member) {}, false},
		"a step for a dead one": {
			func(w *world) { w.kill("a"); w.pass(0) }, func(m *member) { m.touched = true }, true,
		},
		"a step for one that comes up": {
			func(w *world) { w.change("a", func(r *store.Instance) { r.Phase = store.Checking }) },
			func(m *member) { m.touched = true }, false,
		},
		"a step for one beside another that works": {
			func(w *world) { w.turn("a", false); w.place("c", 0, store.Running) }, func(m *member) { m.touched = true }, false,
		},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 2 })
		w.place("a", 0, store.Running)
		w.place("b", 1, store.Running)
		c.do(w)
		d := w.drafted()
		c.steps(d.find("a"))
		if d.roll.healsFirst() != c.want {
			t.Errorf("%s: the roll waits: %t", name, !c.want)
		}
	}
}

// Where nothing is healed a roll begins with those that have failed, unless a storm may bring them
// back, or something else is to be done about them.
//
// proves ROLL-1, HEAL-1, SAFE-2
func TestWhoIsNeverHealed(t *testing.T) {
	lost := func(m *member) { m.judgment.Verdict = store.Lost }
	for name, c := range map[string]struct {
		policy string
		storm  bool
		is     func(*member)
		want   bool
	}{
		"unhealthy":                {store.HealNone, false, func(*member) {}, true},
		"unhealthy, in a storm":    {store.HealNone, true, func(*member) {}, true},
		"unhealthy, and healed":    {store.HealRecreate, false, func(*member) {}, false},
		"unhealthy, and restarted": {store.HealRestart, false, func(*member) {}, false},
		"healthy": {
			store.HealNone, false, func(m *member) { m.judgment.Verdict = store.Live }, false,
		},
		"dead": {
			store.HealNone, false, func(m *member) { m.judgment.Verdict = store.Dead }, false,
		},
		"lost":                         {store.HealNone, false, lost, true},
		"lost, in a storm":             {store.HealNone, true, lost, false},
		"unhealthy, and ordered to go": {store.HealNone, false, func(m *member) { condemned(false)(&m.Record) }, false},
		"unhealthy, and doomed":        {store.HealNone, false, func(m *member) { m.doom.rule = "DRAIN-3" }, false},
		"unhealthy, and drains":        {store.HealNone, false, func(m *member) { m.phase = store.Draining }, false},
	} {
		spec := store.DefaultGroup()
		spec.Heal.Policy = c.policy
		d := draftWith(func(d *draft) { d.spec = &spec })
		if c.storm {
			d.storms.storm = &store.Storm{}
		}
		m := &member{Instance: &Instance{}, phase: store.Running, judgment: Judgment{Verdict: store.Unhealthy}}
		c.is(m)
		if d.roll.neverHealed(m) != c.want {
			t.Errorf("%s: never healed: %t", name, !c.want)
		}
	}
}

// Instances that are updated before their turn: where the update costs nothing, and where it may
// heal.
//
// proves ROLL-2, ROLL-1, ROLL-9, REC-13
func TestWhoIsUpdatedFirst(t *testing.T) {
	coming := func(w *world) {
		w.change("a", func(r *store.Instance) { r.Phase = store.Checking })
		w.turn("a", false)
	}
	opportunistic := func(w *world) {
		coming(w)
		w.edit(func(g *store.Group) { g.Rollout.Strategy = store.StrategyOpportunistic })
	}
	also := func(do func(*world), edit func(*store.Instance)) func(*world) {
		return func(w *world) { do(w); w.change("a", edit) }
	}
	unwell := func(w *world) { w.turn("a", false) }
	for name, c := range map[string]struct {
		do   func(*world)
		want bool
	}{
		"healthy":                       {func(*world) {}, false},
		"unhealthy":                     {unwell, true},
		"coming up":                     {coming, true},
		"unhealthy, and protected":      {also(unwell, protected), false},
		"unhealthy, and ordered to go":  {also(unwell, condemned(false)), false},
		"coming up, and doomed":         {also(coming, spotted), false},
		"coming up, its stream is lost": {func(w *world) { coming(w); w.silence("a", true) }, false},
		"coming up, its lease ended": {
			func(w *world) { coming(w); w.drop(w.keys.Alive("a")) }, false,
		},
		"unhealthy, but a restart is needed": {
			func(w *world) { unwell(w); w.edit(func(g *store.Group) { g.Workload.Run = []string{"./other"} }) }, false,
		},
		"unhealthy, on what is wanted": {
			func(w *world) { unwell(w); w.edit(func(g *store.Group) { g.Checks = nil }) }, false,
		},
		"boots": {
			func(w *world) { w.change("a", func(r *store.Instance) { r.Phase = store.Booting }) }, false,
		},
		"opportunistic: coming up":         {opportunistic, false},
		"opportunistic: never got healthy": {func(w *world) { opportunistic(w); w.stuck("a") }, true},
		"opportunistic: coming up beside another": {
			func(w *world) { opportunistic(w); w.place("b", 0, store.Running) }, true,
		},
		"coming up, on what is known to work": {
			func(w *world) {
				coming(w)
				w.edit(func(g *store.Group) { g.Template.InstanceType = "large" })
				g := w.spec().Record
				rec := w.instance("a").Record
				good := store.GoodSpec{Template: rec.Template, Spec: rec.Spec}
				w.edit(func(g *store.Group) { g.Template.InstanceType = "" })
				w.put(w.keys.Status(w.group), store.Status{Schema: store.Schema, Group: w.group, LastGood: &good, Accepted: &g})
			}, false,
		},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 1 })
		w.place("a", 0, store.Running)
		w.edit(func(g *store.Group) {
			c := store.DefaultCheck()
			c.Name, c.TCP = "up", &store.TCPCheck{Port: "8080"}
			g.Checks = []store.Check{c}
		})
		c.do(w)
		d := w.drafted()
		if got := d.roll.updatedFirst(d.find("a")); got != c.want {
			t.Errorf("%s: it is updated first: %t", name, got)
		}
	}
}

// One that waits for room in a budget keeps a roll from taking it, also where nothing but
// max_unavailable is given.
//
// proves HEAL-8
func TestWhoHoldsUpARoll(t *testing.T) {
	for name, c := range map[string]struct {
		expansion, unavailable int
		want                   string
	}{
		"max_unavailable 1": {0, 1, "b"}, "max_expansion 1": {1, 0, "b"}, "no budget": {0, 0, ""},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) {
			g.Size, g.Budget.MaxExpansion, g.Budget.MaxUnavailable = 3, store.Amount(c.expansion),
				new(store.Amount(c.unavailable))
		})
		w.place("a", 0, store.Deleting)
		w.place("b", 1, store.Running)
		w.place("c", 2, store.Running, outdated)
		if c.expansion > 0 {
			w.place("d", 0, store.Booting)
		}
		w.turn("b", false)
		got := ""
		for _, b := range w.blockedBy() {
			if b.Rule == "HEAL-8" && b.Work == store.WorkRoll {
				got = b.Of.Other
			}
		}
		if got != c.want {
			t.Errorf("%s: the roll waits for %q, want %q", name, got, c.want)
		}
	}
}

// A roll takes down no healthy instance while as many as max_unavailable are not healthy, whatever
// the reason: those that run and fail their checks count too, and nothing heals them here.
//
// proves ROLL-1, REC-18
func TestARollCountsTheUnhealthy(t *testing.T) {
	for name, c := range map[string]struct {
		unwell int // of the three that have the template
		most   store.Amount
		want   string
	}{
		"all are well":           {0, 1, "ROLL-1 -d"},
		"one is not":             {1, 1, ""},
		"one of two is not":      {1, 2, "ROLL-1 -d"},
		"both of two are not":    {2, 2, ""},
		"more than its budget":   {3, 2, ""},
		"three of three are not": {3, 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) {
				g.Size, g.Budget.MaxExpansion, g.Budget.MaxUnavailable, g.Heal.Policy = 4, 0, &c.most, store.HealNone
				g.Template.InstanceType = "large"
			})
			for i, id := range []string{"a", "b", "c"} {
				w.place(id, i, store.Running)
				w.turn(id, i >= c.unwell)
			}
			w.place("d", 3, store.Running, func(r *store.Instance) {
				r.Template, r.Spec.Template.InstanceType = "t0", "small"
			})
			if got := w.briefly(); got != c.want {
				t.Errorf("planned %q, want %q: %+v", got, c.want, w.blockedBy())
			}
		})
	}
}

// A restart is over when the provider or agent that was asked says so, or another boot is seen; the
// entry says what was seen.
//
// proves HEAL-1, SAFE-8
func TestWhenARestartHasHappened(t *testing.T) {
	for name, c := range map[string]struct {
		level string
		is    func(*Instance)
		why   string // "": it has not
	}{
		"asked of the agent": {store.RestartWorkload, func(*Instance) {}, ""},
		"by its agent": {
			store.RestartWorkload, func(in *Instance) { in.Report.Record.Restarted = "t" },
			"its agent has restarted the workload",
		},
		"by its agent, another time": {
			store.RestartWorkload, func(in *Instance) { in.Report.Record.Restarted = "s" }, "",
		},
		"by its agent, which is gone": {
			store.RestartWorkload, func(in *Instance) { in.Report.Record.Restarted, in.Alive.Modified = "t", 0 }, "",
		},
		"its workload, by the provider": {
			store.RestartWorkload, func(in *Instance) { in.Calls.Restarted = "t" }, "",
		},
		"its workload, another boot reports": {
			store.RestartWorkload, func(in *Instance) { in.Alive.Record.BootID = "b2" }, "another boot of it reports",
		},
		"its workload, another boot is listed": {
			store.RestartWorkload, func(in *Instance) { in.Sighting.BootID = "p2" }, "",
		},
		"asked of the provider": {store.RestartMachine, func(*Instance) {}, ""},
		"by the provider": {
			store.RestartMachine, func(in *Instance) { in.Calls.Restarted = "t" }, "the provider has restarted it",
		},
		"by the cloud, another time": {
			store.RestartMachine, func(in *Instance) { in.Calls.Restarted = "s" }, "",
		},
		"its machine, says its agent": {
			store.RestartMachine, func(in *Instance) { in.Report.Record.Restarted = "t" }, "",
		},
		"another boot reports": {
			store.RestartMachine, func(in *Instance) { in.Alive.Record.BootID = "b2" }, "another boot of it reports",
		},
		"no report": {
			store.RestartMachine, func(in *Instance) { in.Alive = store.Versioned[store.Alive]{} }, "",
		},
		"another boot, of none before": {
			store.RestartMachine, func(in *Instance) { in.Record.Restart.Boot = "" }, "",
		},
		"another boot is listed": {
			store.RestartMachine, func(in *Instance) { in.Sighting.BootID = "p2" }, "the provider lists another boot of it",
		},
		"no boot is listed": {
			store.RestartMachine, func(in *Instance) { in.Sighting.BootID = "" }, "",
		},
		"a boot is listed, and none before": {
			store.RestartMachine, func(in *Instance) { in.Record.Restart.Listed, in.Sighting.BootID = "", "p2" }, "",
		},
		"nothing is recorded": {
			store.RestartMachine, func(in *Instance) { in.Record.Restart = nil }, "",
		},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 1 })
		w.place("a", 0, store.Stopping, func(r *store.Instance) {
			r.Restart = &store.Restart{Level: c.level, Token: "t", Listed: "p", Rule: "HEAL-1"}
		})
		s := w.snapshot()
		in := &s.Groups[0].Instances[0]
		r := *in.Record.Restart // others share what a snapshot points to
		r.Boot = w.bootID("a")
		in.Record.Restart = &r
		in.Sighting = Sighting{Begun: w.now, Listed: true, BootID: "p", Times: 1}
		c.is(in)
		why := ""
		for _, a := range Compute(s, w.now).Actions {
			if a.Instance == "a" {
				why = a.Why
				if a.To != store.Starting || a.Rule != "HEAL-1" || len(a.Facts) != 1 || a.Facts[0] != streamSays(in) {
					t.Errorf("%s: %+v", name, a)
				}
			}
		}
		if why != c.why {
			t.Errorf("%s: %q, want %q", name, why, c.why)
		}
	}
}

// A restart at the next level has a time of its own, and only one of the machine brings a
// configuration along that its agent has not applied yet.
//
// proves HEAL-1, ROLL-2
func TestWhatARestartRecords(t *testing.T) {
	for name, c := range map[string]struct {
		restart *store.Restart // before
		run     []string
		config  string
		level   string
		renews  bool
	}{
		"the workload first":          {nil, []string{"./web"}, "", store.RestartWorkload, false},
		"the workload, a new config":  {nil, []string{"./web"}, "new", store.RestartWorkload, false},
		"no workload, so the machine": {nil, nil, "new", store.RestartMachine, false},
		"the machine then": {
			&store.Restart{Level: store.RestartWorkload, Token: "t", Heals: true},
			[]string{"./web"},
			"", store.RestartMachine, false,
		},
		"the machine then, a new config": {
			&store.Restart{Level: store.RestartWorkload, Token: "t", Heals: true},
			[]string{"./web"},
			"new", store.RestartMachine, true,
		},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size, g.Heal.Policy, g.Workload.Run = 1, store.HealRestart, c.run })
		began := w.now
		w.place("a", 0, store.Running, func(r *store.Instance) {
			if r.Restart = c.restart; c.restart != nil {
				r.Phase = store.Stopping
			}
		})
		w.turn("a", false)
		if c.config != "" {
			w.agents["a"].refuses = true
			w.change("a", func(r *store.Instance) { r.Config = c.config })
		}
		w.now = w.now.Add(time.Hour)
		a, next := w.decided("a")
		r := next.Restart
		if a.To != store.Stopping || r == nil || r.Level != c.level || !r.Heals || r.Renews != c.renews ||
			r.Rule != "HEAL-1" ||
			!r.At.Equal(w.now) || r.Boot != w.bootID("a") {
			t.Errorf("%s: %s %s records %+v", name, a.Rule, a.What(), r)
		}
		if !next.Since.Equal(w.now) || next.Since.Equal(began) {
			t.Errorf("%s: it stops since %s", name, next.Since)
		}
	}
}
