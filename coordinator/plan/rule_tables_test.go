package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// How old an instance may become, by its group, by the shard and by what it is. A share of up to a
// tenth keeps a group that was born together from dying together.
//
// proves EXP-1, EXP-2, SPOT-3, REC-2, SAFE-13
func TestWhoIsTooOld(t *testing.T) {
	const year = 365 * 24 * time.Hour
	now := epoch.Add(10 * year)
	age := func(d time.Duration) *store.Duration { return new(store.Duration(d)) }
	eligible := func(d time.Duration) func(*draft) { return func(d2 *draft) { d2.spec.Expiry.EligibleAge = age(d) } }
	forced := func(d time.Duration) func(*draft) { return func(d2 *draft) { d2.spec.Expiry.ForcedAge = age(d) } }
	both := func(e, f time.Duration) func(*draft) {
		return func(d *draft) { eligible(e)(d); forced(f)(d) }
	}
	for name, test := range map[string]struct {
		set    func(d *draft)
		is     func(m *member) // managed, and running, if nothing else is said
		aged   time.Duration
		rule   string
		forced bool
	}{
		"no limit":                   {nil, nil, year, "", false},
		"eligible":                   {eligible(time.Hour), nil, time.Hour, "EXP-1", false},
		"not yet eligible":           {eligible(time.Hour), nil, 53 * time.Minute, "", false},
		"forced":                     {forced(time.Hour), nil, time.Hour, "EXP-1", true},
		"not yet forced":             {forced(time.Hour), nil, 53 * time.Minute, "", false},
		"eligible, not yet forced":   {both(time.Hour, 2*time.Hour), nil, time.Hour, "EXP-1", false},
		"eligible and forced":        {both(time.Hour, 2*time.Hour), nil, 2 * time.Hour, "EXP-1", true},
		"of an age that is a moment": {both(1, 0), nil, 1, "EXP-1", false},
		"born at a time that is not known": {
			both(time.Hour, time.Hour), func(m *member) { m.Born = time.Time{} }, year,
			"", false,
		},
		"being deleted": {
			both(time.Hour, time.Hour), func(m *member) { m.phase = store.Deleting },
			year, "", false,
		},
		"finished": {
			both(time.Hour, time.Hour), func(m *member) { m.phase = store.Finished },
			year, "", false,
		},
		"the shard's eligible age": {
			func(d *draft) { d.s.Shard.Record.Settings.EligibleAge = *age(time.Hour) },
			nil, time.Hour, "EXP-1", false,
		},
		"the shard's forced age": {
			func(d *draft) { d.s.Shard.Record.Settings.ForcedAge = *age(time.Hour) },
			nil, time.Hour, "EXP-1", true,
		},
		"the shard's, which the group has switched off": {func(d *draft) {
			d.s.Shard.Record.Settings.ForcedAge = *age(time.Hour)
			forced(0)(d)
		}, nil, year, "", false},
		"on demand": {
			func(d *draft) { d.spec.OnDemandAge = *age(time.Hour) },
			func(m *member) { m.Record.Managed = false }, time.Hour, "REC-2", true,
		},
		"not long enough on demand": {
			func(d *draft) { d.spec.OnDemandAge = *age(time.Hour) },
			func(m *member) { m.Record.Managed = false }, time.Hour - 1, "", false,
		},
		"on demand, whatever the group's age": {
			both(time.Hour, time.Hour),
			func(m *member) { m.Record.Managed = false }, year, "", false,
		},
		"in a group, whatever the age on demand": {
			func(d *draft) { d.spec.OnDemandAge = *age(time.Hour) }, nil, year,
			"", false,
		},
		"spot": {func(d *draft) {
			d.spec.Spot.Enabled, d.spec.Spot.MaxLifetime = true, *age(time.Hour)
		}, nil, time.Hour, "SPOT-3", true},
		"not yet, of spot": {func(d *draft) {
			d.spec.Spot.Enabled, d.spec.Spot.MaxLifetime = true, *age(time.Hour)
		}, nil, 54 * time.Minute, "", false},
		"no spot": {
			func(d *draft) { d.spec.Spot.MaxLifetime = *age(time.Hour) }, nil,
			year, "", false,
		},
		"spot, and too old otherwise": {func(d *draft) {
			d.spec.Spot.Enabled, d.spec.Spot.MaxLifetime = true, *age(year)
			forced(time.Hour)(d)
		}, nil, time.Hour, "EXP-1", true},
		"in grace": {func(d *draft) {
			forced(time.Hour)(d)
			d.s.GraceEnd = now.Add(time.Minute)
		}, nil, year, "", false},
		"no spec": {func(d *draft) { d.spec = nil }, nil, year, "", false},
	} {
		d := &draft{s: &Snapshot{}, g: &Group{}, now: now, spec: &store.Group{}}
		if test.set != nil {
			test.set(d)
		}
		in := &Instance{Born: now.Add(-test.aged)}
		in.Record.ID, in.Record.Managed = "web-0-bbbbbb", true
		m := &member{Instance: in, phase: store.Running}
		if test.is != nil {
			test.is(m)
		}
		got := d.ageOf(m)
		if got.rule != test.rule || got.forced != test.forced || (got.why == "") != (test.rule == "") {
			t.Errorf("%s: %+v, want %s, forced %t", name, got, test.rule, test.forced)
		}
		waits := strings.HasPrefix(name, "not ") || name == "in grace" || name == "eligible, not yet forced" ||
			name == "spot, and too old otherwise"
		if d.next.After(now) != waits {
			t.Errorf("%s: looked at again at %s", name, d.next)
		}
	}
	low, high := time.Hour, time.Duration(0)
	for i := range 500 { // when the first and the last of many are
		d := &draft{s: &Snapshot{}, g: &Group{}, now: now, spec: &store.Group{}}
		forced(time.Hour)(d)
		in := &Instance{Born: now}
		in.Record.ID, in.Record.Managed = fmt.Sprint("web-", i), true
		d.ageOf(&member{Instance: in, phase: store.Running})
		low, high = min(low, d.next.Sub(now)), max(high, d.next.Sub(now))
	}
	if low < 54*time.Minute || low > 55*time.Minute || high < 59*time.Minute || high > time.Hour {
		t.Errorf("of 500 the first is too old after %s, the last after %s", low, high)
	}
}

// old has an instance made so long ago.
func old(d time.Duration) func(*store.Instance) {
	return func(r *store.Instance) { r.Created = r.Created.Add(-d) }
}

// oldAndNew places an instance that is too old, and the replacement that is being made for it.
func (w *world) oldAndNew(problem string) {
	w.place("a", 0, store.Running, old(2*time.Hour))
	w.place("b", 1, store.Running)
	w.place("c", 0, store.Creating, replaces("a"))
	w.see("c", func(in *Instance) { in.Calls.Problem = problem })
}

// Who is too old gets a replacement first. Where that is forced it waits for room alone; else it
// waits until all of the group is well and settled, and one is replaced at a time, the oldest
// first.
//
// proves EXP-1, EXP-2, REC-13, FLAP-2, HEAL-7
func TestHowTheOldAreReplaced(t *testing.T) {
	hour := store.Duration(time.Hour)
	eligible := func(size, expansion int) func(*store.Group) {
		return func(g *store.Group) { g.Size, g.Budget.MaxExpansion, g.Expiry.EligibleAge = size, expansion, &hour }
	}
	forced := func(size, expansion int) func(*store.Group) {
		return func(g *store.Group) { g.Size, g.Budget.MaxExpansion, g.Expiry.ForcedAge = size, expansion, &hour }
	}
	forcedOut := func(g *store.Group) {
		forced(2, 1)(g)
		g.Budget.MaxUnavailable = new(1)
	}
	two := func(w *world) {
		w.place("a", 0, store.Running, old(2*time.Hour))
		w.place("b", 1, store.Running, old(3*time.Hour))
	}
	for _, c := range []struct {
		name  string
		spec  func(*store.Group)
		world func(*world)
		want  string
		waits string // a rule that something waits for
	}{
		{"eligible: one at a time, the oldest first", eligible(2, 2), two, "EXP-1 +1", ""},
		{"forced: as many as there is room for, the oldest first", forced(2, 1), two, "EXP-1 +1", "EXP-1"},
		{"forced: with room for all", forced(2, 2), two, "EXP-1 +1, EXP-1 +0", ""},
		{
			"young ones stay", eligible(2, 2),
			func(w *world) { w.place("a", 0, store.Running); w.place("b", 1, store.Running) }, "", "",
		},
		{
			"eligible: not while another is unhealthy", eligible(2, 3), func(w *world) { two(w); w.turn("a", false) },
			"HEAL-2 +0", "EXP-1",
		},
		{
			"forced: also while another is unhealthy", forced(2, 3), func(w *world) { two(w); w.turn("a", false) },
			"EXP-1 +1, HEAL-2 +0", "",
		},
		{
			"forced: before healing, with room for one", forced(2, 1), func(w *world) { two(w); w.turn("a", false) },
			"EXP-1 +1", "HEAL-2",
		},
		{"eligible: not while one drains", eligible(2, 3), func(w *world) {
			two(w)
			w.place("c", 2, store.Draining, func(r *store.Instance) {
				r.Drain = &store.Drain{Token: "t", Timer: store.Timer{Start: w.now, For: hour}}
			})
		}, "", "EXP-1"},
		{
			"eligible: not while one is being deleted", eligible(2, 3),
			func(w *world) { two(w); w.place("c", 2, store.Deleting) }, "", "EXP-1",
		},
		{"eligible: not while a dead one is being deleted", eligible(2, 3), func(w *world) {
			two(w)
			w.place("c", 2, store.Deleting, func(r *store.Instance) { r.Dead = true })
		}, "", "EXP-1"},
		{
			"eligible: not while another has a replacement", eligible(2, 3),
			func(w *world) { two(w); w.place("c", 0, store.Booting, replaces("a")) }, "", "EXP-1",
		},
		{"eligible: not while a slot is empty", eligible(3, 3), two, "REC-3 +2", "EXP-1"},
		{
			"the protected stay, and hold up nobody", forced(2, 2), func(w *world) { two(w); w.change("b", protected) },
			"EXP-1 +0", "REC-13",
		},
		{
			"eligible: the protected hold up nobody", eligible(2, 2), func(w *world) { two(w); w.change("b", protected) },
			"EXP-1 +0", "REC-13",
		},
		{"no room ever", forced(2, 0), two, "", "EXP-2"},
		{
			"no room now", forced(2, 1), func(w *world) { two(w); w.place("c", 0, store.Booting, replaces("a")) }, "",
			"EXP-1",
		},
		{
			"max_creating is used up", func(g *store.Group) { forced(2, 3)(g); g.Budget.MaxCreating = 1 },
			func(w *world) { two(w); w.place("c", 0, store.Booting, replaces("a")) }, "", "HEAL-7",
		},
		{"its slot flaps, and holds up nobody", forced(2, 2), func(w *world) {
			two(w)
			w.put(w.keys.Slot(w.group, 1),
				store.Slot{
					Schema: store.Schema, Group: w.group, Number: 1, Flapping: 1,
					Retry: &store.Timer{Start: w.now, For: hour},
				})
		}, "EXP-1 +0", "FLAP-2"},
		{"the failures of its slot are forgotten first", forced(1, 1), func(w *world) {
			w.place("a", 0, store.Running, old(2*time.Hour))
			w.see("a", func(in *Instance) { in.PhaseStart = w.now.Add(-time.Hour) })
			w.put(w.keys.Slot(w.group, 0), store.Slot{
				Schema: store.Schema, Group: w.group, Failures: []store.Failure{{At: w.now.Add(-time.Hour)}},
			})
		}, "", ""},
		{"forced: not while the replacement is being made", forcedOut, func(w *world) { w.oldAndNew("") }, "", ""},
		{
			"forced: without one, when it cannot be made", forcedOut, func(w *world) { w.oldAndNew("no room") }, "EXP-1 -a", "",
		},
		{"only those that run", forced(2, 2), func(w *world) {
			two(w)
			w.change("b", func(r *store.Instance) { r.Phase = store.Checking })
			w.turn("b", false)
		}, "EXP-1 +0", ""},
		{
			"who was ordered to go, goes for that", forced(2, 2),
			func(w *world) { two(w); w.change("b", condemned(false)) }, "EXP-1 +0, REC-16 +1", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(c.spec)
			c.world(w)
			w.pass(0)
			w.planIsSound()
			if got := w.briefly(); got != c.want {
				t.Errorf("planned %q, want %q", got, c.want)
			}
			var rules []string
			for _, b := range w.blockedBy() {
				rules = append(rules, b.Rule)
			}
			if n := strings.Count(" "+strings.Join(rules, " ")+" ", " "+c.waits+" "); c.waits != "" && n != 1 {
				t.Errorf("what waits, waits for %q, want %s once: for the others as well", rules, c.waits)
			}
		})
	}
}

// blockedBy is what the next plan says is not done.
func (w *world) blockedBy() []store.Blocked {
	for _, a := range Compute(w.snapshot(), w.now).Actions {
		for _, op := range a.Writes {
			if op.Key == w.keys.Status(w.group) && !op.Delete {
				v, err := store.Decode[store.Status](store.KV{Key: op.Key, Value: op.Value})
				if err != nil {
					w.t.Fatalf("%v", err)
				}
				return v.Record.Blocked
			}
		}
	}
	return read[store.Status](w, w.keys.Status(w.group)).Record.Blocked
}

// A failure is counted once against its slot, with what it was. From flap.failures within the
// window on each makes the slot wait, for longer each time, until it is given up.
//
// proves FLAP-1, FLAP-2, FLAP-3, SAFE-2
func TestWhatAFailureDoesToItsSlot(t *testing.T) {
	now := time.Unix(10_000, 0)
	minute := store.Duration(time.Minute)
	recent := func(n int) (list []store.Failure) {
		for i := range n {
			list = append(list, store.Failure{At: now.Add(-time.Second), Instance: fmt.Sprint(i)})
		}
		return list
	}
	flap := store.FlapSpec{Failures: 3, Window: 5 * minute, MinDelay: minute, MaxDelay: 16 * minute}
	lostAt := now.Add(-20 * time.Second)
	for name, test := range map[string]struct {
		slot   store.Slot
		flap   func(*store.FlapSpec)
		is     func(*member)
		wait   bool
		counts bool
		delay  time.Duration // 0: none is begun
		giveUp time.Duration // 0: none is begun
		err    bool
	}{
		"the first":  {counts: true},
		"the second": {slot: store.Slot{Failures: recent(1)}, counts: true},
		"the third": {
			slot: store.Slot{Failures: recent(2)}, counts: true, wait: true,
			delay: time.Minute,
		},
		"the third, others long ago": {slot: store.Slot{Failures: []store.Failure{
			{At: now.Add(-time.Hour)},
			{At: now.Add(-time.Hour)},
		}}, counts: true},
		"one more in a slot that flaps": {
			slot: store.Slot{Flapping: 2}, counts: true, wait: true,
			delay: 4 * time.Minute,
		},
		"the third, the time is bounded": {
			slot: store.Slot{Failures: recent(2)},
			flap: func(f *store.FlapSpec) { f.GiveUpTime = 60 * minute }, counts: true, wait: true, delay: time.Minute,
			giveUp: time.Hour,
		},
		"one more, the time is bounded": {
			slot: store.Slot{Flapping: 1},
			flap: func(f *store.FlapSpec) { f.GiveUpTime = 60 * minute }, counts: true, wait: true,
			delay: 2 * time.Minute,
		},
		"the third, and that is the most": {
			slot: store.Slot{Failures: recent(2)},
			flap: func(f *store.FlapSpec) { f.GiveUpAfter = 3 }, counts: true, wait: true, delay: time.Minute,
		},
		"one more than the most": {
			slot: store.Slot{Flapping: 1},
			flap: func(f *store.FlapSpec) { f.GiveUpAfter = 3 }, counts: true, wait: true, err: true,
		},
		"more than any, and no most": {
			slot: store.Slot{Flapping: 50}, counts: true, wait: true,
			delay: 16 * time.Minute,
		},
		"counted already": {
			slot: store.Slot{Failures: recent(2)},
			is:   func(m *member) { m.Record.Counted = true },
		},
		"counted already, the slot waits": {
			slot: store.Slot{Flapping: 1, Retry: &store.Timer{Start: now, For: minute}},
			is: func(m *member) {
				m.Record.Counted = true
			}, wait: true,
		},
		"counted already, the slot is given up": {
			slot: store.Slot{Errored: "no"},
			is:   func(m *member) { m.Record.Counted = true }, wait: true,
		},
		"ordered to go": {
			slot: store.Slot{Failures: recent(2)},
			is:   func(m *member) { m.Record.Condemned = &store.Condemned{} },
		},
		"doomed": {
			slot: store.Slot{Failures: recent(2)},
			is:   func(m *member) { m.doom.rule = "SPOT-2" },
		},
		"as many as are remembered": {
			slot: store.Slot{Failures: recent(99)}, counts: true, wait: true,
			delay: time.Minute,
		},
		"one more than are remembered": {
			slot: store.Slot{Failures: recent(100)}, counts: true, wait: true,
			delay: time.Minute,
		},
		"lost": {is: func(m *member) {
			m.judgment.Verdict, m.AliveGone = store.Lost, lostAt
		}, counts: true},
		"lost, in a slot of an earlier template": {
			slot: store.Slot{Template: "before"},
			is:   func(m *member) { m.judgment.Verdict, m.AliveGone = store.Lost, lostAt }, counts: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := store.Group{Flap: flap}
			if test.flap != nil {
				test.flap(&spec.Flap)
			}
			d := &draft{s: &Snapshot{}, g: &Group{Name: "web"}, now: now, spec: &spec, hash: "wanted"}
			sl := &slot{}
			sl.Record = test.slot
			if test.slot.Retry != nil {
				sl.retry = now.Add(test.slot.Retry.For.D())
			}
			m := &member{
				Instance: &Instance{}, phase: store.Running,
				judgment: Judgment{Verdict: store.Unhealthy, Why: "it fails"},
			}
			m.Record.ID, m.Record.Template = "web-0-bbbbbb", "made from"
			if test.is != nil {
				test.is(m)
			}
			before := slices.Clone(test.slot.Failures)
			if wait := d.fail(sl, m); wait != test.wait {
				t.Errorf("it waits: %t", wait)
			}
			rec := &sl.Record
			if !slices.Equal(test.slot.Failures, before) {
				t.Error("the snapshot's failures were changed")
			}
			if !test.counts {
				if len(rec.Failures) != len(before) || rec.Flapping != test.slot.Flapping ||
					rec.Retry != test.slot.Retry {
					t.Errorf("it is counted: %+v", rec)
				}
				return
			}
			last := rec.Failures[len(rec.Failures)-1]
			want := store.Failure{
				At: now.UTC(), Instance: "web-0-bbbbbb", Verdict: m.judgment.Verdict, Why: "it fails",
				Template: "made from",
			}
			if m.judgment.Verdict == store.Lost {
				want.LostSince = lostAt.UTC()
			}
			if last != want || rec.Template != "wanted" || len(rec.Failures) != min(100, len(before)+1) ||
				len(before) > 0 && len(before) < 100 && rec.Failures[0] != before[0] {
				t.Errorf("%d failures, the last %+v, want %+v, on template %s", len(rec.Failures), last, want,
					rec.Template)
			}
			if flapping := rec.Flapping > test.slot.Flapping; flapping != test.wait {
				t.Errorf("flapping is %d", rec.Flapping)
			}
			if (rec.Errored != "") != test.err {
				t.Errorf("given up: %q", rec.Errored)
			}
			if test.delay > 0 && (rec.Retry == nil || rec.Retry.For.D() != test.delay || !rec.Retry.Start.Equal(now) ||
				!sl.retry.Equal(now.Add(test.delay))) {
				t.Errorf("it waits for %+v, until %s, want %s", rec.Retry, sl.retry, test.delay)
			}
			if test.delay == 0 && (rec.Retry != nil || !sl.retry.IsZero()) {
				t.Errorf("it waits for %+v, until %s", rec.Retry, sl.retry)
			}
			if (rec.GiveUp != nil) != (test.giveUp > 0) || rec.GiveUp != nil &&
				(rec.GiveUp.For.D() != test.giveUp || !rec.GiveUp.Start.Equal(now)) {
				t.Errorf("it is given up after %+v, want %s", rec.GiveUp, test.giveUp)
			}
			if len(d.blocked) != 0 != test.wait {
				t.Errorf("told is %+v", d.blocked)
			}
		})
	}
}

// A slot that has flapped for flap.give_up_time is given up, unless somebody in it is well. Then it
// waits for an operator alone.
//
// proves FLAP-3
func TestWhichSlotsAreGivenUp(t *testing.T) {
	giveUp := func(ago time.Duration) func(*world, *store.Slot) {
		return func(w *world, s *store.Slot) {
			s.Flapping, s.Retry = 3, &store.Timer{Start: w.now, For: store.Duration(time.Minute)}
			s.GiveUp = &store.Timer{Start: w.now.Add(-ago), For: store.Duration(time.Hour)}
		}
	}
	for name, test := range map[string]struct {
		slot  func(*world, *store.Slot)
		well  bool
		given bool
	}{
		"its time is over":                  {giveUp(time.Hour), false, true},
		"its time is nearly over":           {giveUp(time.Hour - 1), false, false},
		"its time is over, and one is well": {giveUp(time.Hour), true, false},
		"it has no time":                    {func(w *world, s *store.Slot) { s.Flapping = 3 }, false, false},
		"it has been given up": {func(w *world, s *store.Slot) {
			giveUp(time.Hour)(w, s)
			s.Errored = "before"
		}, false, false},
		"it flapped on a template of the past": {func(w *world, s *store.Slot) {
			giveUp(time.Hour)(w, s)
			s.Template = "before"
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size, g.Flap.GiveUpTime = 1, store.Duration(time.Hour) })
			w.place("a", 0, store.Running, func(r *store.Instance) { r.Counted = !test.well })
			w.turn("a", test.well)
			rec := store.Slot{Schema: store.Schema, Group: w.group, Template: w.instance("a").Record.Template}
			test.slot(w, &rec)
			w.put(w.keys.Slot(w.group, 0), rec)
			w.leaderChange()
			w.noGrace = true
			w.listDue()
			var got *Action
			p := Compute(w.snapshot(), w.now)
			for _, a := range p.Actions {
				if a.Rule == "FLAP-3" && a.What == "slot given up" {
					got = &a
				}
			}
			if (got != nil) != test.given {
				t.Fatalf("given up: %+v", got)
			}
			if got == nil {
				if name == "its time is nearly over" && !p.Due[w.group].Equal(w.now.Add(1)) {
					t.Errorf("looked at again at %s", p.Due[w.group])
				}
				return
			}
			w.comparesAll(t, *got, w.keys.Slot(w.group, 0), w.keys.Group(w.group))
			after, err := store.Decode[store.Slot](store.KV{Key: got.Writes[0].Key, Value: got.Writes[0].Value})
			if err != nil || after.Record.Errored == "" || after.Record.Retry != nil || after.Record.GiveUp != nil ||
				got.Group != w.group || got.Counterfactual == "" {
				t.Errorf("%+v writes %+v, %v", got, after.Record, err)
			}
			w.commit(got.Conditions, got.Writes, 1)
			if b := w.blockedBy(); !slices.ContainsFunc(b, func(b store.Blocked) bool { return b.Rule == "FLAP-3" }) {
				t.Errorf("what waits is told as %+v", b)
			}
		})
	}
}

// The least that brings an instance up to date: a live update for checks and for variables that no
// running program has seen, a restart of the workload for its command, its arguments and its
// environment, another machine for the template. An operator may ask for more, never for less.
//
// proves ROLL-1, ROLL-2
func TestTheLeastThatBringsUpToDate(t *testing.T) {
	run := []string{"./web", "--greet=${greeting}"}
	checks := []store.Check{{Name: "up"}}
	base := func() *store.Group {
		g := store.DefaultGroup()
		g.Name, g.Provider = "web", "cloud"
		g.Workload.Run, g.Vars = run, map[string]string{"greeting": "hello", "color": "red"}
		g.Secrets = map[string]string{"TOKEN": "web/token"}
		g.Checks = checks
		return &g
	}
	for name, test := range map[string]struct {
		now  func(g *store.Group)
		was  func(r *store.Instance)
		want string
		why  string
	}{
		"nothing": {func(*store.Group) {}, nil, store.ActionLiveUpdate, ""},
		"the template": {
			func(g *store.Group) { g.Template.InstanceType = "large" }, nil,
			store.ActionRecreate, "template",
		},
		"the provider": {
			func(g *store.Group) { g.Provider = "else" }, nil,
			store.ActionRecreate, "template",
		},
		"the command": {
			func(g *store.Group) { g.Workload.Run = []string{"./web"} }, nil,
			store.ActionRestart, "workload.run",
		},
		"a variable that nobody's command has": {
			func(g *store.Group) { g.Vars["color"] = "blue" }, nil,
			store.ActionLiveUpdate, "vars",
		},
		"a variable that its command has": {
			func(g *store.Group) { g.Vars["greeting"] = "bye" }, nil,
			store.ActionRestart, "vars",
		},
		"a variable of its command is new": {
			nil,
			func(r *store.Instance) { r.Spec.Vars = map[string]string{"color": "red"} }, store.ActionRestart, "vars",
		},
		"a variable of its command is gone": {
			func(g *store.Group) { delete(g.Vars, "greeting") }, nil,
			store.ActionRestart, "vars",
		},
		"a variable of its command was empty, and is not set": {
			func(g *store.Group) { delete(g.Vars, "greeting") },
			func(r *store.Instance) {
				r.Spec.Vars = map[string]string{"color": "red", "greeting": ""}
			}, store.ActionRestart, "vars",
		},
		"a variable is gone that nobody's command has": {
			func(g *store.Group) { delete(g.Vars, "color") }, nil,
			store.ActionLiveUpdate, "vars",
		},
		"a secret": {
			func(g *store.Group) { g.Secrets["TOKEN"] = "web/other" }, nil,
			store.ActionRestart, "secrets",
		},
		"a check": {
			func(g *store.Group) { g.Checks = []store.Check{{Name: "down"}} }, nil,
			store.ActionLiveUpdate, "checks",
		},
		"one more check": {func(g *store.Group) {
			g.Checks = append(slices.Clone(checks), store.Check{Name: "more"})
		}, nil, store.ActionLiveUpdate, "checks"},
		"its first check": {
			nil, func(r *store.Instance) { r.Spec.Checks = nil },
			store.ActionLiveUpdate, "checks",
		},
		"its only check is gone": {
			func(g *store.Group) { g.Checks = nil }, nil, store.ActionLiveUpdate,
			"checks",
		},
		"the command and the template": {func(g *store.Group) {
			g.Workload.Run, g.Template.InstanceType = nil, "large"
		}, nil, store.ActionRecreate, "template, workload.run"},
		"the template and a check": {func(g *store.Group) {
			g.Template.InstanceType, g.Checks = "large", nil
		}, nil, store.ActionRecreate, "template, checks"},
		"nobody knows what it was": {
			func(*store.Group) {},
			func(r *store.Instance) { r.Template = templateUnknown }, store.ActionRecreate,
			"nobody knows what it was made from",
		},
		"a relaunch by a restart": {func(g *store.Group) {
			g.Relaunch = store.Relaunch{Number: 1, Action: store.ActionRestart}
		}, nil, store.ActionRestart, "relaunch 1"},
		"a relaunch by another machine": {func(g *store.Group) {
			g.Relaunch = store.Relaunch{Number: 1, Action: store.ActionRecreate}
		}, nil, store.ActionRecreate, "relaunch 1"},
		"a relaunch that it has been through": {func(g *store.Group) {
			g.Relaunch = store.Relaunch{Number: 1, Action: store.ActionRecreate}
		}, func(r *store.Instance) { r.Relaunch = 1 }, store.ActionLiveUpdate, ""},
		"a relaunch by a restart, and another template": {func(g *store.Group) {
			g.Relaunch, g.Template.InstanceType = store.Relaunch{Number: 1, Action: store.ActionRestart}, "large"
		}, nil, store.ActionRecreate, "template, relaunch 1"},
		"an operator wants a restart": {func(g *store.Group) {
			g.Checks, g.Rollout.MinimalAction = nil, store.ActionRestart
		}, nil, store.ActionRestart, "checks"},
		"an operator wants another machine": {func(g *store.Group) {
			g.Checks, g.Rollout.MinimalAction = nil, store.ActionRecreate
		}, nil, store.ActionRecreate, "checks"},
		"an operator wants less than it takes": {func(g *store.Group) {
			g.Template.InstanceType, g.Rollout.MinimalAction = "large", store.ActionLiveUpdate
		}, nil, store.ActionRecreate, "template"},
		"an operator wants a restart, and it takes more": {func(g *store.Group) {
			g.Template.InstanceType, g.Rollout.MinimalAction = "large", store.ActionRestart
		}, nil, store.ActionRecreate, "template"},
	} {
		was, now := base(), base()
		if test.now != nil {
			test.now(now)
		}
		m := &member{Instance: &Instance{}}
		m.Record.Spec, m.Record.Template, m.Record.Managed = was.InstanceSpec(), was.InstanceSpec().TemplateHash(), true
		if test.was != nil {
			test.was(&m.Record)
			if m.Record.Template != templateUnknown {
				m.Record.Template = m.Record.Spec.TemplateHash()
			}
		}
		d := &draft{spec: now, hash: now.InstanceSpec().TemplateHash()}
		action, why := d.change(m)
		if action != test.want || why.Text != test.why || why.Kind != store.CauseOutdated {
			t.Errorf("%s: %s, %s, want %s for %s", name, action, why, test.want, test.why)
		}
		if outdated := d.outdated(m); outdated != (test.why != "") {
			t.Errorf("%s: outdated %t", name, outdated)
		}
	}
	for _, test := range []struct {
		run      []string
		was, now map[string]string
		want     bool
	}{
		{[]string{"a", "${x}"}, map[string]string{"x": "1"}, map[string]string{"x": "2"}, true},
		{[]string{"${x}", "b"}, map[string]string{"x": "1"}, map[string]string{"x": "2"}, true},
		{[]string{"pre${x}post"}, map[string]string{"x": "1"}, map[string]string{"x": "2"}, true},
		{[]string{"$x", "{x}", "x"}, map[string]string{"x": "1"}, map[string]string{"x": "2"}, false},
		{[]string{"${x}"}, map[string]string{"x": "1"}, map[string]string{"x": "1"}, false},
		{[]string{"${x}"}, map[string]string{"x": ""}, nil, true},
		{[]string{"${x}"}, nil, map[string]string{"x": ""}, true},
		{[]string{"${x}"}, map[string]string{"x": "1", "y": "1"}, map[string]string{"x": "1", "y": "2"}, false},
		{[]string{"${x}"}, nil, nil, false},
	} {
		if got := runUses(test.run, test.was, test.now); got != test.want {
			t.Errorf("%q, from %v to %v: %t", test.run, test.was, test.now, got)
		}
	}
}
