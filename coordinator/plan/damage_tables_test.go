package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// What a hold for damage says: how many records, which, and since which revision, so that its
// release acknowledges what was shown. An operator's own hold stays theirs, with the count.
//
// proves SAFE-15
func TestWhatAHoldForDamageSays(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 4 })
	two := []store.Damaged{lostSlot(w, "web-0-b", 0, 7), lostSlot(w, "web-1-c", 1, 8)}
	unknown := []store.Damaged{{Key: "unknown", What: store.DamageLost, Seen: 7}}
	const advice = " lost or cannot be read, and not deleted on purpose: "
	for _, c := range []struct {
		name    string
		damaged []store.Damaged
		hold    *store.Hold
		review  *store.Reviewed
		what    string
		by, why string // the beginning
		damage  int
	}{
		{
			"of its own", two, nil, nil, "shard put on hold",
			"leasehold", "2 records are" + advice + two[0].Key + ", " + two[1].Key, 2,
		},
		{
			"more in a hold of its own", two, &store.Hold{By: "leasehold", Why: "before", Damage: 1, Seen: 7}, nil,
			"more damage during the hold", "leasehold", "2 records are" + advice, 2,
		},
		{
			"one of which nothing is known", unknown, &store.Hold{By: "leasehold", Why: "before"}, nil,
			"more damage during the hold", "leasehold", "1 record is" + advice, 1,
		},
		{
			"in an operator's hold", two, &store.Hold{By: "ada", Why: "maintenance", At: epoch}, nil,
			"more damage during the hold", "ada", "maintenance", 2,
		},
		{
			"what was acknowledged is not counted again", append(slices.Clone(two), lostSlot(w, "web-2-d", 2, 9)), nil,
			&store.Reviewed{Damage: 1, Seen: 7}, "shard put on hold", "leasehold",
			"2 records are" + advice + two[1].Key + ", ", 2,
		},
	} {
		s := w.snapshot()
		s.Damaged, s.Shard.Record.Hold, s.Shard.Record.Reviewed = c.damaged, c.hold, c.review
		a, ok := holdForDamage(&s, w.now)
		if !ok {
			t.Errorf("%s: nothing is planned", c.name)
			continue
		}
		v, err := store.Decode[store.Shard](store.KV{Key: a.Writes[0].Key, Value: a.Writes[0].Value})
		if err != nil {
			t.Fatal(err)
		}
		h := v.Record.Hold
		if a.What() != c.what || h.By != c.by || !strings.HasPrefix(h.Why, c.why) || h.Damage != c.damage ||
			h.Seen != s.Revision {
			t.Errorf("%s: %s, %+v", c.name, a.What(), h)
		}
		if !slices.Equal(a.Conditions, []store.Condition{s.Shard.Unchanged()}) || a.Rule != "SAFE-15" ||
			a.Counterfactual != store.UnlessDamaged || !strings.HasPrefix(a.Why, "1 record is") &&
			!strings.HasPrefix(a.Why, "2 records are") {
			t.Errorf("%s: %+v", c.name, a)
		}
		if c.hold == nil && !h.At.Equal(w.now) || c.hold != nil && !h.At.Equal(c.hold.At) {
			t.Errorf("%s: held since %s", c.name, h.At)
		}
	}
}

// A lost record of an instance on demand is reported, and stops nothing in the group: it had no
// slot.
//
// proves SAFE-15, REC-2
func TestALostInstanceOnDemandHasItsOwnEntry(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 2 })
	w.place("a", 0, store.Running)
	s := w.snapshot()
	s.Damaged = []store.Damaged{{
		Key: w.keys.Instance("web-x-b"), Instance: "web-x-b", OnDemand: true, What: store.DamageLost, Why: "it is gone",
		Last: 5,
		Seen: 7,
	}}
	s.Groups[0].Damaged = s.Damaged
	p := Compute(s, w.now)
	made := slices.ContainsFunc(p.Actions, func(a Action) bool { return a.Rule == "REC-3" && *a.Slot == 1 })
	held := p.Held[w.group]
	if !made || len(held) != 1 || held[0].Rule != "SAFE-15" || held[0].Instance != "web-x-b" ||
		held[0].Work != store.WorkInstance || held[0].Of.Cause.Text != "it is gone" {
		t.Errorf("slot 1 is filled: %t; what waits: %+v", made, held)
	}
}

// Work that waits for a damaged slot names the slot and the instance that was lost; that for a
// frozen group names what froze it first.
//
// proves SAFE-15
func TestWhatDamageBlocks(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 2 })
	w.place("a", 0, store.Running)
	s := w.snapshot()
	s.Groups[0].Damaged = []store.Damaged{lostSlot(w, "web-1-b", 1, 7)}
	held := Compute(s, w.now).Held[w.group]
	if len(held) != 1 || held[0].Instance != "web-1-b" || held[0].Of.Slot != 1 ||
		held[0].Of.Cause.Kind != store.CauseRecordLost || held[0].Kind != store.BlockedByDamage ||
		held[0].Work != store.WorkSlot {
		t.Errorf("of a slot: %+v", held)
	}
	s.Groups[0].Damaged = []store.Damaged{
		{Key: "unknown", What: store.DamageLost, Why: "one is missing", Seen: 7},
		{Key: "unknown 2", What: store.DamageLost, Why: "another is missing", Seen: 7},
	}
	s.Groups[0].Unlisted = cloud
	held = Compute(s, w.now).Held[w.group]
	if len(held) != 1 || held[0].Kind != store.BlockedByDamage || held[0].Of.Cause.Text != "one is missing" ||
		held[0].Work != store.WorkAll {
		t.Errorf("of the group: %+v", held)
	}
}

// Whatever is decided for a damaged slot, or in a frozen group, is left out again if it creates,
// restarts or removes anything. What only follows from the facts stays, and so does an adoption.
//
// proves SAFE-15
func TestWhatIsLeftOutForDamage(t *testing.T) {
	keys := store.KeysOf("test")
	slot := func(n int) *int { return &n }
	step := func(from, to store.Phase) Action { return Action{Slot: slot(0), From: from, To: to} }
	writes := func(op store.Write, conditions ...store.Condition) Action {
		return Action{
			Slot: slot(0), From: store.Running, To: store.Running, Writes: []store.Write{op},
			Conditions: conditions,
		}
	}
	of := keys.Instance("web-0-b")
	for name, c := range map[string]struct {
		action Action
		stays  bool
	}{
		"is requested":             {step("", store.Pending), false},
		"is restarted":             {step(store.Running, store.Stopping), false},
		"drains":                   {step(store.Running, store.Draining), false},
		"is deleted":               {step(store.Running, store.Deleting), false},
		"is deleted, has drained":  {step(store.Draining, store.Deleting), false},
		"is draining still":        {step(store.Draining, store.Draining), true},
		"is stopping still":        {step(store.Stopping, store.Stopping), true},
		"is healthy":               {step(store.Checking, store.Running), true},
		"is checked again":         {step(store.Running, store.Checking), true},
		"its record ends":          {writes(store.Delete(of), store.At(of, 3)), false},
		"the slot's record ends":   {writes(store.Delete(keys.Slot("web", 0))), false},
		"its alive key is removed": {writes(store.Delete(keys.Alive("web-0-b"))), true},
		"gets a replacement":       {writes(store.Put(of, nil), store.Absent(of)), false},
		"its record changes":       {writes(store.Put(of, nil), store.At(of, 3)), true},
		"its slot is written": {
			writes(store.Put(keys.Slot("web", 0), nil), store.Absent(keys.Slot("web", 0))), true,
		},
		"is adopted": {Action{Rule: "REC-8", Slot: slot(0), To: store.Pending}, true},
	} {
		frozen := func(d *draft) { d.damage.frozen = store.BlockedByDamage }
		damaged := func(d *draft) { d.damage.damaged, d.slot(0).damaged = 1, &store.Damaged{} }
		other := func(d *draft) { d.damage.damaged, d.slot(1).damaged = 1, &store.Damaged{} }
		for where, is := range map[string]struct {
			set   func(*draft)
			stays bool
		}{
			"in a frozen group": {
				frozen, c.stays,
			}, "in a damaged slot": {damaged, c.stays}, "beside a damaged slot": {other, true},
		} {
			d := newDraft(&Snapshot{Keys: keys}, &Group{Name: "web"}, epoch)
			is.set(d)
			d.actions = []Action{c.action}
			d.damage.spareDamaged()
			if stays := len(d.actions) == 1; stays != is.stays {
				t.Errorf("%s, %s: is left as it was decided: %t", name, where, stays)
			}
		}
	}
}

// A status counts the records that there are, or should be: those that are lost or unreadable count
// until an operator has acknowledged a loss. While it is not known which are missing the old count
// stays, since nothing else tells of them.
//
// proves SAFE-15
func TestHowManyRecordsAStatusCounts(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 3 })
	w.place("a", 0, store.Running)
	lost, older := lostSlot(w, "web-1-b", 1, 7), lostSlot(w, "web-1-b", 1, 3)
	never, unreadable := lost, older
	never.Last, unreadable.What = 0, store.DamageUnreadable
	unknown := store.Damaged{Key: "unknown", What: store.DamageLost, Why: "one is missing", Last: 5, Seen: 7}
	old := new(9)
	var most []store.Damaged
	for range maxDamaged + 1 {
		most = append(most, lost)
	}
	for name, c := range map[string]struct {
		damaged  []store.Damaged
		before   *int
		unlisted string
		want     *int
		named    int
	}{
		"none is damaged":            {nil, old, "", new(1), 0},
		"one is lost":                {[]store.Damaged{lost}, old, "", new(2), 1},
		"one was never read":         {[]store.Damaged{never}, old, "", new(1), 1},
		"a loss is acknowledged":     {[]store.Damaged{older}, old, "", new(1), 1},
		"one is unreadable":          {[]store.Damaged{unreadable}, old, "", new(2), 1},
		"it is not known which":      {[]store.Damaged{lost, unknown}, old, "", old, 1},
		"never counted before":       {[]store.Damaged{unknown, lost}, nil, "", new(2), 1},
		"its machines are not known": {nil, old, cloud, old, 0},
		"more than are named":        {most, old, "", new(maxDamaged + 2), maxDamaged},
	} {
		s := w.snapshot()
		s.Shard.Record.Reviewed = &store.Reviewed{Seen: 5}
		g := &s.Groups[0]
		g.Damaged, g.Unlisted, g.Status.Record.Records, g.Status.Record.Counted = c.damaged, c.unlisted, c.before, 4
		var st store.Status
		newDraft(&s, g, w.now).status.countRecords(&st)
		counted := s.Revision
		if c.want == c.before {
			counted = 4
		}
		if st.Records == nil || *st.Records != *c.want || st.Counted != counted || len(st.Damaged) != c.named {
			t.Errorf("%s: %v records, counted at %d, %d named", name, st.Records, st.Counted, len(st.Damaged))
		}
	}
}

// The machines without a record that are removed: which are known to be unwanted, once they were
// seen for orphan_grace, by a leader that has no reason to wait.
//
// proves REC-8, REC-13, SAFE-1
func TestWhichExtrasAreRemoved(t *testing.T) {
	const grace = 10 * time.Minute
	now := epoch.Add(24 * time.Hour)
	for name, c := range map[string]struct {
		extra  func(*Extra)
		s      func(*Snapshot)
		goes   bool
		next   time.Duration // 0: nothing but a change is waited for
		group  string
		reason string
	}{
		"its record was deleted": {nil, nil, true, 0, "web", "its record was deleted on purpose"},
		"its slot has another": {
			func(x *Extra) { x.Gone, x.Replaced = false, true }, nil, true, 0, "web", "another instance has its slot",
		},
		"its group was deleted": {
			func(x *Extra) { x.Gone, x.GroupGone = false, true }, nil, true, 0, "web", "its group was deleted on purpose",
		},
		"its tag names no group": {func(x *Extra) { x.Group = "" }, nil, true, 0, nobodys, "its record was deleted"},
		"nothing is known":       {func(x *Extra) { x.Gone = false }, nil, false, 0, "", ""},
		"nothing is known, seen just now": {
			func(x *Extra) { x.Gone, x.Since = false, now }, nil, false, 90 * time.Second, "", "",
		},
		"its agent speaks":   {func(x *Extra) { x.Stray = true }, nil, false, 0, "", ""},
		"its record is lost": {func(x *Extra) { x.Damaged = true }, nil, false, 0, "", ""},
		"its group is paused": {
			func(x *Extra) { x.Paused = true }, nil, false, 0, "", "",
		},
		"its group is paused, seen just now": {
			func(x *Extra) { x.Paused, x.Since = true, now.Add(-30*time.Second) }, nil, false, time.Minute, "", "",
		},
		"seen a moment too short": {func(x *Extra) { x.Since = now.Add(1 - grace) }, nil, false, 1, "", ""},
		"seen for a minute": {
			func(x *Extra) { x.Since = now.Add(-time.Minute) }, nil, false, 30 * time.Second, "", "",
		},
		"seen for two minutes": {
			func(x *Extra) { x.Since = now.Add(-2 * time.Minute) }, nil, false, 8 * time.Minute, "", "",
		},
		"agents may return": {
			nil, func(s *Snapshot) { s.GraceEnd = now.Add(time.Second) }, false, time.Second, "", "",
		},
		"a hold was released": {
			nil, func(s *Snapshot) { s.Shard.Record.Reviewed = &store.Reviewed{At: now.Add(time.Minute - grace)} },
			false, time.Minute, "", "",
		},
		"a hold was released long ago": {
			nil, func(s *Snapshot) { s.Shard.Record.Reviewed = &store.Reviewed{At: now.Add(-grace)} }, true, 0, "web",
			"its record",
		},
		"a hold was released, says a clock ahead of ours": {
			nil, func(s *Snapshot) { s.Shard.Record.Reviewed = &store.Reviewed{At: now.Add(time.Hour)} }, false, grace, "", "",
		},
		"there may be agents without a note": {
			func(x *Extra) { x.Gone, x.GroupGone = false, true }, func(s *Snapshot) { s.UnnotedUntil = now.Add(time.Second) },
			false, time.Second, "", "",
		},
		"and its record was deleted, so that its agent is told to stop": {
			nil, func(s *Snapshot) { s.UnnotedUntil = now.Add(time.Second) }, true, 0, "web",
			"its record was deleted on purpose",
		},
	} {
		s := Snapshot{Keys: store.KeysOf("test"), Revision: 9}
		s.Shard.Key, s.Shard.Modified = s.Keys.Shard(), 3
		settings := &s.Shard.Record.Settings
		settings.OrphanGrace, settings.ProviderPoll = store.Duration(grace), store.Duration(30*time.Second)
		x := Extra{
			Instance: "m1", Group: "web", Provider: cloud, Zone: "b", Ref: "ref-1", Since: now.Add(-time.Hour), Gone: true,
		}
		if c.extra != nil {
			c.extra(&x)
		}
		if c.s != nil {
			c.s(&s)
		}
		s.Extras = []Extra{x}
		actions, next := planExtras(&s, now)
		if goes := len(actions) == 1; goes != c.goes || goes && !next.IsZero() {
			t.Errorf("%s: planned %+v, looked at again at %s", name, actions, next)
		}
		if !c.goes && (c.next == 0 && !next.IsZero() || c.next > 0 && !next.Equal(now.Add(c.next))) {
			t.Errorf("%s: looked at again at %s, want in %s", name, next, c.next)
		}
		if len(actions) == 0 {
			continue
		}
		a := actions[0]
		v, err := store.Decode[store.Instance](store.KV{Key: a.Writes[0].Key, Value: a.Writes[0].Value})
		rec := v.Record
		if err != nil || a.Group != c.group || rec.Group != c.group || rec.Zone != "b" || rec.Ref != "ref-1" || !rec.Called ||
			rec.Managed || rec.Phase != store.Deleting || rec.Spec.Provider != cloud || rec.Slot != -1 ||
			!rec.Since.Equal(now) || !rec.Created.Equal(now) || !rec.Last.At.Equal(now) || rec.Last.Revision != 9 ||
			rec.Last.Rule != "REC-8" || rec.Last.What != a.What() || rec.Last.Why != a.Why ||
			!strings.Contains(a.Why, c.reason) {
			t.Errorf("%s: %v, %+v by %+v", name, err, rec, a)
		}
		if a.Instance != "m1" || a.To != store.Deleting || a.Counterfactual != store.UnlessAdopted ||
			!slices.Equal(reason.Lines(a.Facts), []string{"provider cloud ref ref-1", "orphan_grace 10m0s"}) {
			t.Errorf("%s: %+v", name, a)
		}
		if want := []store.Condition{
			store.Absent(s.Keys.Instance("m1")), store.Absent(s.Keys.Stray("m1")), s.Shard.Unchanged(),
		}; !slices.Equal(a.Conditions, want) {
			t.Errorf("%s: compares %+v", name, a.Conditions)
		}
	}
}

// A deletion is noted with the revision that it compares, and a transaction that deletes nothing
// that is noted needs no lease for notes.
//
// proves SAFE-15
func TestWhatIsNotedOfDeletions(t *testing.T) {
	keys := store.KeysOf("test")
	for key, want := range map[string]bool{
		keys.Instance("a"): true, keys.Slot("web", 0): true, keys.Status("web"): true, keys.Group("web"): true,
		keys.Static("web"): true, keys.Alive("a"): false, keys.Report("a"): false, keys.Request("r"): false,
		keys.Turn("web"): false, keys.Joined("a"): false, keys.Shard(): false,
	} {
		if noted(keys, key) != want {
			t.Errorf("%s is noted: %t", key, !want)
		}
	}
	for revision, conditions := range map[store.Revision][]store.Condition{
		0: {store.Absent("k"), store.Exists("k"), store.CreatedAt("k", 4), store.At("other", 5)},
		1: {store.At("k", 1)},
		7: {store.At("other", 5), store.CreatedAt("k", 4), store.At("k", 7)},
	} {
		if got := revisionOf(&Action{Conditions: conditions}, "k"); got != revision {
			t.Errorf("%+v: revision %d", conditions, got)
		}
	}
	note := GoneNote{Key: "gone/a", Note: store.Gone{Instance: "a", Revision: 7}}
	none, one := Action{}, Action{Gone: []GoneNote{note}}
	if Deletes([]*Action{&none, &none}) || !Deletes([]*Action{&none, &one}) {
		t.Error("who deletes is not told from who does not")
	}
	if got := GoneWrites([]*Action{&none, &one}, 5); len(got) != 1 || got[0].Key != "gone/a" || got[0].Lease != 5 ||
		!slices.Equal(got[0].Value, store.Encode(note.Note)) {
		t.Errorf("the note is %+v", got)
	}
}
