package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What counts against size and max_expansion: instances that have a machine or may soon have one.
// The dead do not, nor does one that leaves because a notice says that it will end.
//
// proves REC-18, SPOT-2
func TestWhoStands(t *testing.T) {
	for name, c := range map[string]struct {
		phase   store.Phase
		verdict store.Verdict
		is      func(*store.Instance)
		want    bool
	}{
		"runs":                        {store.Running, store.Live, nil, true},
		"is pending":                  {store.Pending, store.Unborn, nil, true},
		"is lost":                     {store.Running, store.Lost, nil, true},
		"is dead":                     {store.Running, store.Dead, nil, false},
		"runs, and a notice dooms it": {store.Running, store.Doomed, spotted, true},
		"drains":                      {store.Draining, store.Live, nil, true},
		"drains, and is dead":         {store.Draining, store.Dead, nil, false},
		"drains for a notice":         {store.Draining, store.Live, spotted, false},
		"is deleted":                  {store.Deleting, store.Unborn, nil, true},
		"is deleted, never made": {
			store.Deleting, store.Unborn, func(r *store.Instance) { r.Called = false }, false,
		},
		"is deleted, and was dead": {store.Deleting, store.Unborn, func(r *store.Instance) { r.Dead = true }, false},
		"is deleted for a notice":  {store.Deleting, store.Unborn, spotted, false},
	} {
		m := &member{Instance: &Instance{}, phase: c.phase, judgment: Judgment{Verdict: c.verdict}}
		m.Record.Phase, m.Record.Called = c.phase, true
		if c.is != nil {
			c.is(&m.Record)
		}
		if m.countsAsMachine() != c.want {
			t.Errorf("%s: it counts: %t", name, !c.want)
		}
	}
}

// Only a slot that flapped, or was given up, on an earlier template begins on the new one because
// of that; all slots start over.
//
// proves FLAP-7, ROLL-9
func TestWhatANewTemplateForgets(t *testing.T) {
	for name, c := range map[string]struct {
		slot    store.Slot
		over    bool
		flapped bool
	}{
		"of the present template": {
			store.Slot{Template: "new", Flapping: 2, Failures: make([]store.Failure, 3)}, false, false,
		},
		"of none":                 {store.Slot{Flapping: 2, Failures: make([]store.Failure, 3)}, false, false},
		"failed on another":       {store.Slot{Template: "old", Failures: make([]store.Failure, 3)}, true, false},
		"flapped on another":      {store.Slot{Template: "old", Flapping: 1}, true, true},
		"was given up on another": {store.Slot{Template: "old", Errored: "often"}, true, true},
		"waits because of another": {
			store.Slot{Template: "old", Flapping: 2, Retry: &store.Timer{}, GiveUp: &store.Timer{}}, true, true,
		},
	} {
		sl := &slot{retry: epoch, giveUp: epoch}
		sl.Record = c.slot
		draftWith(func(d *draft) { d.spec, d.hash = &store.Group{}, "new" }).resetForNewTemplate(sl)
		r := &sl.Record
		over := len(r.Failures) == 0 && r.Flapping == 0 && r.Retry == nil && r.GiveUp == nil && r.Errored == "" &&
			r.Template == "" && sl.retry.IsZero() && sl.giveUp.IsZero()
		if over != c.over || sl.flapped != c.flapped {
			t.Errorf("%s: it starts over %t, has flapped %t: %+v", name, over, sl.flapped, sl.Record)
		}
	}
}

// A creation may fail for as long as an instance may take to get healthy; where that has no limit,
// to register.
//
// proves DET-10, HEAL-13
func TestHowLongACreationMayFail(t *testing.T) {
	for _, c := range []struct{ checking, registration, want time.Duration }{
		{time.Minute, time.Hour, time.Minute}, {1, time.Hour, 1}, {0, time.Hour, time.Hour},
	} {
		m := &member{Instance: &Instance{}}
		spec := &m.Record.Spec
		spec.MaxChecking, spec.RegistrationTimeout = store.Duration(c.checking), store.Duration(c.registration)
		if got := m.patience(); got != c.want {
			t.Errorf("checking %s, registration %s: %s", c.checking, c.registration, got)
		}
	}
}

// In a storm that goes on a lost instance is not removed before its replacement is there, where one
// may be made besides.
//
// proves SAFE-2
func TestWhomAStormKeeps(t *testing.T) {
	for name, c := range map[string]struct {
		verdict   store.Verdict
		storm     *store.Storm
		expansion int
		want      bool
	}{
		"lost":                    {store.Lost, &store.Storm{}, 1, true},
		"lost, no room ever":      {store.Lost, &store.Storm{}, 0, false},
		"lost, the storm is over": {store.Lost, &store.Storm{Ended: "calm"}, 1, false},
		"lost, no storm":          {store.Lost, nil, 1, false},
		"unhealthy":               {store.Unhealthy, &store.Storm{}, 1, false},
	} {
		d := draftWith(func(d *draft) {
			d.storms.storm = c.storm
			d.spec = &store.Group{Budget: store.Budget{MaxExpansion: store.Amount(c.expansion)}}
		})
		if d.healing.mustKeep(&member{Instance: &Instance{}, judgment: Judgment{Verdict: c.verdict}}) != c.want {
			t.Errorf("%s: it is kept: %t", name, !c.want)
		}
	}
}

// An instance that fills a slot again replaces the one that leaves it, or has left it last.
//
// proves REC-3, REC-18
func TestWhosePlaceIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		place  func(*world)
		vacate *store.Vacated
		want   string
	}{
		"unused":                 {func(*world) {}, nil, ""},
		"of one that drains":     {func(w *world) { w.place("a", 0, store.Draining, draining5m) }, nil, "a"},
		"of one that is deleted": {func(w *world) { w.place("a", 0, store.Deleting) }, nil, "a"},
		"of one that is gone":    {func(*world) {}, &store.Vacated{Instance: "b"}, "b"},
		"of one that leaves last": {
			func(w *world) { w.place("a", 0, store.Deleting) }, &store.Vacated{Instance: "b"}, "a",
		},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size, g.Budget.MaxExpansion = 1, 1 })
		w.put(w.keys.Slot(w.group, 0), store.Slot{Schema: store.Schema, Group: w.group, Vacated: c.vacate})
		c.place(w)
		made := 0
		for _, a := range Compute(w.snapshot(), w.now).Actions {
			for _, op := range a.Writes {
				v, err := store.Decode[store.Instance](store.KV{Key: op.Key, Value: op.Value})
				if a.Rule != "REC-3" || err != nil || v.Record.Phase != store.Pending {
					continue
				}
				if made++; v.Record.Replaces != c.want || !slices.Contains(w.made(&a), v.Record.ID) {
					t.Errorf("%s: it takes the place of %q, want %q", name, v.Record.Replaces, c.want)
				}
			}
		}
		if made != 1 {
			t.Errorf("%s: %d are made", name, made)
		}
	}
}

// The zones of an instance are those that its own template names, or its provider has: of the
// template that is wanted only where both have the same provider. Evacuated ones and those without
// room are left out, the latter only as long as there are others.
//
// proves REC-3, REC-17, DRAIN-3, ROLL-9
func TestWhichZoneIsChosen(t *testing.T) {
	for name, c := range map[string]struct {
		provider  string
		zones     []string // of the instance's template
		wanted    []string // of the group's
		evacuated string
		full      []string
		want      string
	}{
		"all of the provider":         {cloud, nil, nil, "", nil, "a"},
		"the template's":              {cloud, []string{"c", "b"}, []string{"c", "b"}, "", nil, "b"},
		"those that are still wanted": {cloud, nil, []string{"b", "c"}, "", nil, "b"},
		"none is wanted any more":     {cloud, []string{"a"}, []string{"b"}, "", nil, "a"},
		"of another provider":         {"other", nil, []string{"z"}, "", nil, "y"},
		"evacuated":                   {cloud, nil, nil, "a", nil, "b"},
		"no room":                     {cloud, nil, nil, "", []string{"a"}, "b"},
		"no room anywhere":            {cloud, nil, nil, "", []string{"a", "b", "c"}, "a"},
		"nowhere":                     {cloud, []string{"a"}, []string{"a"}, "a", nil, ""},
	} {
		s := &Snapshot{Zones: map[string][]string{cloud: {"c", "a", "b"}, "other": {"z", "y"}}}
		if c.evacuated != "" {
			s.Shard.Record.Evacuated = map[string]store.Evacuation{c.evacuated: {}}
		}
		s.Full = map[Market]map[string]time.Time{{Provider: cloud}: {}}
		for _, z := range c.full {
			s.Full[Market{Provider: cloud}][z] = epoch.Add(1)
		}
		spec := store.Group{Provider: cloud, Template: store.Template{Zones: c.wanted}}
		d := draftWith(func(d *draft) { d.s, d.g, d.now, d.spec = s, &Group{}, epoch, &spec })
		of := store.InstanceSpec{Provider: c.provider, Template: store.Template{Zones: c.zones}}
		if got := d.zoning.zoneFor(nil, &of); got != c.want {
			t.Errorf("%s: zone %q, want %q", name, got, c.want)
		}
	}
}

// A creation whose zone has no room moves only to where there may be some.
//
// proves REC-3, HEAL-12, DRAIN-3
func TestWhereACreationMoves(t *testing.T) {
	for name, c := range map[string]struct {
		full, evacuated []string
		want            string // "": it stays
	}{
		"the other zone has room":      {[]string{"a"}, nil, "b"},
		"no zone has":                  {[]string{"a", "b"}, nil, ""},
		"its own has again":            {nil, nil, ""},
		"the other one is evacuated":   {[]string{"a"}, []string{"b"}, ""},
		"all are evacuated, and there": {[]string{"a"}, []string{"a", "b"}, ""},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 1 })
		w.place("a", 0, store.Creating)
		w.see("a", func(in *Instance) { in.Calls = Calls{NoRoom: true, Problem: "no room"} })
		w.full[cloud] = map[string]time.Time{}
		for _, z := range c.full {
			w.full[cloud][z] = w.now.Add(time.Minute)
		}
		w.evacuate(c.evacuated...)
		a, next := w.decided("a")
		if next.Zone != c.want || (a.Rule == "") != (c.want == "") ||
			c.want != "" && (a.Rule != "REC-3" || !slices.Equal(a.Facts, inWords("no room"))) {
			t.Errorf("%s: it moves to %q by %s, want %q", name, next.Zone, a.Rule, c.want)
		}
	}
}

// The last good template is used only as long as machines of it can be had.
//
// proves ROLL-9
func TestWhenTheLastGoodTemplateIsUsed(t *testing.T) {
	for name, c := range map[string]struct {
		good      func(*store.GoodSpec)
		evacuated string
		rollout   func(*store.Rollout)
		want      bool
	}{
		"it can be had": {func(*store.GoodSpec) {}, "", func(*store.Rollout) {}, true},
		"its provider is gone": {
			func(g *store.GoodSpec) { g.Spec.Provider = "gone" }, "", func(*store.Rollout) {}, false,
		},
		"its only zone is evacuated": {
			func(g *store.GoodSpec) { g.Spec.Template.Zones = []string{"a"} }, "a", func(*store.Rollout) {}, false,
		},
		"one of its zones is": {func(*store.GoodSpec) {}, "a", func(*store.Rollout) {}, true},
		"it was refused": {
			func(*store.GoodSpec) {}, "", func(r *store.Rollout) { r.FallbackUnusable = "no image" }, false,
		},
		"the new one is proved": {func(*store.GoodSpec) {}, "", func(r *store.Rollout) { r.Proved = true }, false},
		"the new one is blamed": {
			func(*store.GoodSpec) {}, "", func(r *store.Rollout) { r.Proved, r.Blamed = true, "it fails" }, true,
		},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 1 })
		g := w.spec().Record
		good := store.GoodSpec{Revision: 3, Spec: g.InstanceSpec()}
		c.good(&good)
		good.Template = good.Spec.TemplateHash()
		w.edit(func(g *store.Group) { g.Template.InstanceType = "large" })
		if c.evacuated != "" {
			w.evacuate(c.evacuated)
		}
		s := w.snapshot()
		s.Groups[0].Status.Record.LastGood = &good
		d := newDraft(&s, &s.Groups[0], w.now)
		d.roll.rollout = &store.Rollout{Template: d.hash}
		c.rollout(d.roll.rollout)
		d.templates.choose()
		if used := d.templates.fallback != nil; used != c.want ||
			used && (d.templates.fallback.hash != good.Template || d.roll.rollout.Fallback != good.Template) {
			t.Errorf("%s: %+v is used, and recorded as %q", name, d.templates.fallback, d.roll.rollout.Fallback)
		}
	}
}

// What becomes of a storm, by how many are lost in the group and in the shard.
//
// proves SAFE-2
func TestWhatBecomesOfAStorm(t *testing.T) {
	now := epoch.Add(time.Hour)
	calm := func(ago time.Duration) *store.Timer {
		return &store.Timer{Start: now.Add(-ago), For: store.Duration(time.Minute)}
	}
	many, few := Tally{Lost: 3, Now: 3, Of: 6, Groups: 1}, Tally{Lost: 1, Now: 1, Of: 6, Groups: 1}
	everywhere := Tally{Lost: 9, Now: 9, Of: 20, Groups: 2}
	under := func(edit func(*store.Storm)) *store.Storm {
		s := &store.Storm{Since: epoch, Lost: 3, Of: 6}
		if edit != nil {
			edit(s)
		}
		return s
	}
	over := func(by string, ago time.Duration) *store.Storm {
		return under(func(s *store.Storm) { s.Ended, s.By, s.Resume = "calm", by, calm(ago) })
	}
	for name, c := range map[string]struct {
		before       *store.Storm
		group, shard Tally
		want         string // "": there is none
		since        time.Time
		lost         int
		calm         bool
		next         time.Duration // 0: nothing is waited for
	}{
		"few":  {nil, few, few, "", time.Time{}, 0, false, 0},
		"many": {nil, many, many, "on", now, 3, false, 5 * time.Second},
		"many are silent, none lost": {
			nil, Tally{Lost: 3, Of: 6, Groups: 1}, everywhere, "", time.Time{}, 0, false, 0,
		},
		"few here, many everywhere": {nil, few, everywhere, "shard", now, 1, false, 5 * time.Second},
		"more": {
			under(nil), Tally{Lost: 4, Now: 4, Of: 6}, many, "on", epoch, 4, false, 5 * time.Second,
		},
		"as many, calm was counted": {
			under(func(s *store.Storm) { s.Calm = calm(0) }), many, many, "on", epoch, 3, false, 5 * time.Second,
		},
		"fewer": {under(nil), few, few, "on", epoch, 3, true, 5 * time.Second},
		"few for nearly a minute": {
			under(func(s *store.Storm) { s.Calm = calm(time.Minute - 1) }), few, few, "on", epoch, 3, true, 5 * time.Second,
		},
		"few for a minute": {
			under(func(s *store.Storm) { s.Calm = calm(time.Minute) }), few, few, "over", epoch, 3, false, 5 * time.Second,
		},
		"of the shard, few here": {
			under(func(s *store.Storm) { s.Shard = true }), few, everywhere, "shard", epoch, 3, false, 5 * time.Second,
		},
		"of the shard, few everywhere": {
			under(func(s *store.Storm) { s.Shard = true }), few, few, "shard", epoch, 3, true, 5 * time.Second,
		},
		"of the group, many everywhere": {under(nil), few, everywhere, "on", epoch, 3, true, 5 * time.Second},
		"over, few":                     {over("", 0), few, few, "over", epoch, 3, false, time.Minute},
		"over for long":                 {over("", time.Minute), few, few, "", time.Time{}, 0, false, 0},
		"over, and many again":          {over("", 0), many, many, "on", now, 3, false, 5 * time.Second},
		"overridden, still many":        {over("ada", 0), many, many, "over", epoch, 3, false, time.Minute},
		"overridden long ago, still many": {
			over("ada", time.Minute), many, many, "over", epoch, 3, false, 5 * time.Second,
		},
		"overridden long ago, few": {over("ada", time.Minute), few, few, "", time.Time{}, 0, false, 0},
	} {
		spec := store.Group{Storm: store.StormSpec{
			Min: 3, Percent: 50, Window: store.Duration(time.Minute), Cooldown: store.Duration(time.Minute),
		}}
		d := draftWith(func(d *draft) {
			d.s, d.now, d.spec, d.storms.tally = &Snapshot{}, now, &spec, c.group
			d.g = &Group{Name: "web", Due: Due{}}
		})
		d.g.Status.Record.Storm = c.before
		if b := c.before; b != nil {
			for timer, t := range map[string]*store.Timer{store.TimerStorm: b.Calm, store.TimerResume: b.Resume} {
				if t != nil {
					d.g.Due[timer] = t.Start.Add(t.For.D())
				}
			}
		}
		d.storms.follow(c.shard)
		got, s := "", d.storms.storm
		switch {
		case s == nil:
			s = &store.Storm{}
		case s.Ended != "":
			got = "over"
		case s.Shard:
			got = "shard"
		default:
			got = "on"
		}
		if got != c.want || !s.Since.Equal(c.since) || s.Lost != c.lost || s.Calm != nil != c.calm ||
			s.Resume != nil != (got == "over") {
			t.Errorf("%s: %q, %+v", name, got, s)
		}
		if c.next == 0 && !d.next.IsZero() || c.next > 0 && !d.next.Equal(now.Add(c.next)) {
			t.Errorf("%s: looked at again in %s, want %s", name, d.next.Sub(now), c.next)
		}
		if told := got == "over" && c.before.Ended == "" || got != "" && s.Since.Equal(now); len(d.notes) == 1 != told {
			t.Errorf("%s: told is %+v", name, d.notes)
		}
	}
}

// What a storm keeps from being replaced says how long it will: as long as there are many, or until
// its turn comes once the storm is over.
//
// proves SAFE-2
func TestWhatAStormSays(t *testing.T) {
	spec := store.Group{Storm: store.StormSpec{Cooldown: store.Duration(2 * time.Minute)}}
	m := &member{Instance: &Instance{}, judgment: Judgment{Verdict: store.Lost}}
	m.Record.ID = "web-0-b"
	for _, c := range []struct {
		storm store.Storm
		kind  store.BlockedKind
		of    store.BlockedFacts
	}{
		{store.Storm{}, store.BlockedByStorm, store.BlockedFacts{Group: "web", Count: 3, Limit: 6, For: spec.Storm.Cooldown}},
		{
			store.Storm{Ended: "calm", Resume: &store.Timer{Start: epoch, For: store.Duration(time.Minute)}},
			store.BlockedByStormEnd,
			store.BlockedFacts{Group: "web", For: store.Duration(time.Minute)},
		},
	} {
		d := draftWith(func(d *draft) {
			d.s, d.g, d.now, d.spec = &Snapshot{}, &Group{Name: "web"}, epoch, &spec
			d.storms.storm, d.storms.tally = &c.storm, Tally{Now: 3, Of: 6}
		})
		if !d.storms.holdBack(m) || len(d.blocked) != 1 || d.blocked[0].Kind != c.kind || d.blocked[0].Of != c.of ||
			d.blocked[0].Instance != "web-0-b" || d.blocked[0].Rule != "SAFE-2" {
			t.Errorf("what waits: %+v", d.blocked)
		}
	}
}

// One that died in a slot is healed, whatever another instance there leaves for.
//
// proves REC-9
func TestADeadInstanceIsHealedBesideARoll(t *testing.T) {
	left := &member{Instance: &Instance{}, phase: store.Deleting}
	left.Record.Leaves = store.PurposeRoll
	dead := &member{Instance: &Instance{}, phase: store.Running}
	dead.judgment.Verdict = store.Dead
	for name, c := range map[string]struct {
		members []*member
		want    store.Purpose
	}{
		"left":      {[]*member{left}, store.PurposeRoll},
		"died":      {[]*member{left, dead}, store.PurposeHeal},
		"the other": {[]*member{dead, left}, store.PurposeHeal},
		"none":      {nil, store.PurposeSize},
	} {
		if got := (&slot{members: c.members}).filledFor(); got != c.want {
			t.Errorf("%s: made for %q, want %q", name, got, c.want)
		}
	}
}
