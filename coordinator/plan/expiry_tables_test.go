package plan

import (
	"fmt"
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
		"a spot machine of a divided group": {func(d *draft) {
			d.spec.Capacity.Spot, d.spec.Spot.MaxLifetime = 50, *age(time.Hour)
		}, func(m *member) { m.Record.Spec.Spot = true }, time.Hour, "SPOT-3", true},
		"on demand in a divided group": {func(d *draft) {
			d.spec.Capacity.Spot, d.spec.Spot.MaxLifetime = 50, *age(time.Hour)
		}, nil, year, "", false},
		"a spot machine left in a group of none": {
			func(d *draft) { d.spec.Spot.MaxLifetime = *age(time.Hour) },
			func(m *member) { m.Record.Spec.Spot = true }, year, "", false,
		},
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
		d := draftWith(func(d *draft) { d.s, d.g, d.now, d.spec = &Snapshot{}, &Group{}, now, &store.Group{} })
		if test.set != nil {
			test.set(d)
		}
		in := &Instance{Born: now.Add(-test.aged)}
		in.Record.ID, in.Record.Managed = "web-0-bbbbbb", true
		m := &member{Instance: in, phase: store.Running}
		if test.is != nil {
			test.is(m)
		}
		got := d.expiry.ageOf(m)
		if got.rule != test.rule || got.forced != test.forced || (got.cause.Kind == "") != (test.rule == "") {
			t.Errorf("%s: %+v, want %s, forced %t", name, got, test.rule, test.forced)
		}
		waits := strings.HasPrefix(name, "not ") || name == "in grace" || name == "eligible, not yet forced" ||
			name == "spot, and too old otherwise"
		if d.next.After(now) != waits {
			t.Errorf("%s: looked at again at %s", name, d.next)
		}
	}
	for _, c := range []struct {
		set           func(*draft)
		limit, spread time.Duration
	}{
		{forced(time.Hour), time.Hour, 6 * time.Minute},
		{func(d *draft) {
			d.spec.Spot.Enabled, d.spec.Spot.MaxLifetime = true, *age(24 * time.Hour)
		}, 24 * time.Hour, 2 * time.Hour},
	} {
		low, high := c.limit, time.Duration(0)
		for i := range 500 { // when the first and the last of many are
			d := draftWith(func(d *draft) { d.s, d.g, d.now, d.spec = &Snapshot{}, &Group{}, now, &store.Group{} })
			c.set(d)
			in := &Instance{Born: now}
			in.Record.ID, in.Record.Managed = fmt.Sprint("web-", i), true
			d.expiry.ageOf(&member{Instance: in, phase: store.Running})
			low, high = min(low, d.next.Sub(now)), max(high, d.next.Sub(now))
		}
		first := c.limit - c.spread
		if low < first || low > first+c.spread/20 || high < c.limit-c.spread/20 || high > c.limit {
			t.Errorf("of 500 the first is too old after %s, the last after %s", low, high)
		}
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

// An instance that is too old gets a replacement first. Where that is forced it waits for room
// alone; else it waits until all of the group is well and settled, and one is replaced at a time,
// the oldest first.
//
// proves EXP-1, EXP-2, REC-13, FLAP-2, HEAL-7
func TestHowTheOldAreReplaced(t *testing.T) {
	hour := store.Duration(time.Hour)
	eligible := func(size, expansion int) func(*store.Group) {
		return func(g *store.Group) {
			g.Size, g.Budget.MaxExpansion, g.Expiry.EligibleAge = size, store.Amount(expansion), &hour
		}
	}
	forced := func(size, expansion int) func(*store.Group) {
		return func(g *store.Group) {
			g.Size, g.Budget.MaxExpansion, g.Expiry.ForcedAge = size, store.Amount(expansion), &hour
		}
	}
	forcedOut := func(g *store.Group) {
		forced(2, 1)(g)
		g.Budget.MaxUnavailable = new(store.Amount(1))
	}
	two := func(w *world) {
		w.place("a", 0, store.Running, old(2*time.Hour))
		w.place("b", 1, store.Running, old(3*time.Hour))
	}
	healNext := func(w *world, id string) {
		w.put(w.keys.Status(w.group), store.Status{Schema: store.Schema, Group: w.group, HealNext: id})
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
		{
			"forced: after healing that it has gone before once", forced(2, 1), func(w *world) {
				two(w)
				w.turn("a", false)
				healNext(w, "a")
			}, "HEAL-2 +0", "REC-5",
		},
		{
			"forced: at once where what comes next has recovered", forced(2, 1),
			func(w *world) { two(w); healNext(w, "a") }, "EXP-1 +1", "EXP-1",
		},
		{
			"forced: not while healing that comes next has too little room",
			func(g *store.Group) { forced(3, 3)(g); g.Budget.Heal.MaxExpansion = new(store.Amount(1)) }, func(w *world) {
				two(w)
				w.turn("a", false)
				w.place("c", 2, store.Running, old(4*time.Hour))
				w.place("d", 2, store.Booting, replaces("c"), func(r *store.Instance) { r.Purpose = store.PurposeAge })
				healNext(w, "a")
			}, "", "REC-5",
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
			"the protected stay, and hold up no others", forced(2, 2), func(w *world) { two(w); w.change("b", protected) },
			"EXP-1 +0", "REC-13",
		},
		{
			"eligible: the protected hold up no others", eligible(2, 2), func(w *world) { two(w); w.change("b", protected) },
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
		{"its slot flaps, and holds up no others", forced(2, 2), func(w *world) {
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
