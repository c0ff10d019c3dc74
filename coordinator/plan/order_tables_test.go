package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// What becomes of an order: it is carried out or refused, with the reason, and gone in the same
// transaction; or it stays until it can be carried out.
//
// proves REC-16, REC-2, REC-11, REC-13, DRAIN-3
func TestWhatBecomesOfAnOrder(t *testing.T) {
	of := func(kind store.RequestKind, id string) store.Request { return store.Request{Kind: kind, Instance: id} }
	mode := func(m string) store.Request {
		return store.Request{Kind: store.RequestProtect, Instance: "a", Mode: m}
	}
	neverInForce := func(_ *world, s *Snapshot) { s.Groups[0].Spec = Spec{Modified: 9, Problem: "size: -1"} }
	spec := func(edit func(*store.Group)) func(*world, *Snapshot) {
		return func(_ *world, s *Snapshot) { edit(&s.Groups[0].Spec.Group) }
	}
	in := func(p store.Phase) func(*world, *Snapshot) {
		return func(w *world, s *Snapshot) { s.Groups[0].Instances[0].Record.Phase = p }
	}
	slotOf := func(rec store.Slot) func(*world, *Snapshot) {
		return func(_ *world, s *Snapshot) { s.Groups[0].Slots[0].Record = rec }
	}
	checked := func(w *world, s *Snapshot) {
		in(store.Checking)(w, s)
		s.Groups[0].Instances[0].Report.Record.Healthy = false
	}
	boots := func(w *world, s *Snapshot) {
		in(store.Booting)(w, s)
		s.Groups[0].Instances[0].Alive.Modified = 0
	}
	const onlyRuns = ": only what runs or comes up can be restarted"
	for name, c := range map[string]struct {
		set     func(*world, *Snapshot)
		request store.Request
		want    string // "" if it waits
	}{
		"a group that never was in force": {
			neverInForce, of(store.RequestRetry, ""), "refused: no spec of the group was ever in force",
		},
		"an unknown order to a group": {nil, of("teleport", ""), `refused: this version knows no order "teleport"`},
		"no storm is under way":       {nil, of(store.RequestOverrideStorm, ""), "refused: there is no storm"},
		"create in a stopped group": {
			spec(func(g *store.Group) { g.Stopped = true }), of(store.RequestCreate, ""),
			"refused: the group is stopped, or being deleted",
		},
		"create in a group that goes": {
			spec(func(g *store.Group) { g.Deleting = true }), of(store.RequestCreate, ""),
			"refused: the group is stopped, or being deleted",
		},
		"create in a paused group": {spec(func(g *store.Group) { g.Paused = true }), of(store.RequestCreate, ""), ""},
		"create without zones": {
			func(_ *world, s *Snapshot) {
				s.Shard.Record.Evacuated = map[string]store.Evacuation{"a": {By: "bob"}, "b": {By: "bob"}}
			}, of(store.RequestCreate, ""), "refused: all zones of the group are evacuated",
		},
		"create": {nil, of(store.RequestCreate, ""), "requested on demand"},

		"of an unknown one": {nil, of(store.RequestDelete, "unknown"), "refused: there is no such instance"},
		"of one that goes": {
			in(store.Deleting), of(store.RequestDelete, "a"), "refused: it is being deleted already",
		},
		"an unknown order":             {nil, of("teleport", "a"), `refused: this version knows no order "teleport"`},
		"retry, on demand":             {nil, of(store.RequestRetry, "x"), "refused: it is on demand and is never healed"},
		"retry, nothing to be retried": {nil, of(store.RequestRetry, "a"), "refused: no slot flaps or is given up"},
		"retry, failed once": {
			slotOf(store.Slot{Failures: make([]store.Failure, 1)}), of(store.RequestRetry, "a"), "1 slot to start over",
		},
		"retry, flaps": {
			slotOf(store.Slot{Flapping: 1}), of(store.RequestRetry, "a"), "1 slot to start over",
		},
		"retry, given up": {
			slotOf(store.Slot{Errored: "often"}), of(store.RequestRetry, "a"), "1 slot to start over",
		},
		"retry of the group": {
			slotOf(store.Slot{Errored: "often"}), of(store.RequestRetry, ""), "1 slot to start over",
		},
		"replace, on demand": {
			nil, of(store.RequestReplace, "x"),
			"refused: it is on demand and is never replaced; delete it, and create another",
		},
		"delete, on demand": {nil, of(store.RequestDelete, "x"), "ordered to be deleted"},
		"drain":             {nil, of(store.RequestDrain, "a"), "ordered to be drained"},
		"drain, it drains": {
			in(store.Draining), of(store.RequestDrain, "a"), "refused: it drains already",
		},
		"drained, it does not": {nil, of(store.RequestDrained, "a"), "refused: it does not drain"},
		"drained, nothing is known of its drain": {
			in(store.Draining), of(store.RequestDrained, "a"), "refused: it does not drain",
		},
		"protect":              {nil, mode(store.ProtectRemoval), "protected"},
		"protect from healing": {nil, mode(store.ProtectHeal), "protected, also from healing"},
		"end protection":       {nil, mode(store.ProtectOff), "no longer protected"},
		"protect in another way": {
			nil, mode("glass"), `refused: this version knows no protection "glass"`,
		},
		"restart":                {nil, of(store.RequestRestart, "a"), "restarting its machine"},
		"restart while checked":  {checked, of(store.RequestRestart, "a"), "restarting its machine"},
		"restart while it boots": {boots, of(store.RequestRestart, "a"), "restarting its machine"},
		"restart while it starts": { // it is back: another step first
			in(store.Starting), of(store.RequestRestart, "a"), "",
		},
		"restart while it drains": {
			in(store.Draining), of(store.RequestRestart, "a"), "refused: it is draining" + onlyRuns,
		},
		"restart what is created": {
			in(store.Creating), of(store.RequestRestart, "a"), "refused: it is creating" + onlyRuns,
		},
		"restart what is pending": {
			in(store.Pending), of(store.RequestRestart, "a"), "refused: it is pending" + onlyRuns,
		},
		"restart what has finished": {
			in(store.Finished), of(store.RequestRestart, "a"), "refused: it is finished" + onlyRuns,
		},
		"restart, the group is paused": {
			spec(func(g *store.Group) { g.Paused = true }), of(store.RequestRestart, "a"), "",
		},
		"restart, the group is gone": {
			neverInForce, of(store.RequestRestart, "x"),
			"refused: its group is gone; it can only be deleted: leasehold instance delete x",
		},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 1 })
		w.place("a", 0, store.Running)
		w.place("x", -1, store.Running)
		s := w.snapshot()
		if c.set != nil {
			c.set(w, &s)
		}
		r := c.request
		r.ID, r.By = "r", "ada"
		if r.Instance == "" {
			r.Group = w.group
		}
		key := w.keys.Request("r")
		v := store.Versioned[store.Request]{Key: key, Modified: 5, Record: r}
		s.Groups[0].Requests = []store.Versioned[store.Request]{v}
		var got []string
		for _, a := range Compute(s, w.now).Actions {
			if !slices.Contains(deleted(a), key) {
				continue
			}
			what := a.What()
			if a.Kind == store.EntryRefusal {
				what = strings.TrimPrefix(what, "order to "+string(r.Kind)+" ") + ": " + a.Why
			}
			got = append(got, what)
			told := reason.Follows(&store.JournalEntry{Facts: a.Facts}, "r")
			if !told || !slices.Contains(a.Conditions, v.Unchanged()) || a.Rule != "REC-16" && a.Rule != "REC-2" {
				t.Errorf("%s: told is %+v", name, a)
			}
		}
		if c.want == "" && len(got) > 0 || c.want != "" && !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The end of an order that its giver may repeat is noted in the transaction that ends it, carried
// out or refused; the note stands for no instance.
//
// proves REC-16
func TestTheEndOfAnOrderIsNoted(t *testing.T) {
	for id, noted := range map[string]bool{store.OnceID("eva", "k1"): true, "r": false} {
		for _, stopped := range []bool{false, true} {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size, g.Stopped = 1, stopped })
			w.place("a", 0, store.Running)
			s := w.snapshot()
			key := w.keys.Request(id)
			s.Groups[0].Requests = []store.Versioned[store.Request]{{Key: key, Modified: 5, Record: store.Request{
				ID: id, Kind: store.RequestCreate, Group: w.group, By: "eva",
			}}}
			var notes []GoneNote
			ended := false
			for _, a := range Compute(s, w.now).Actions {
				if slices.Contains(deleted(a), key) {
					ended, notes = true, a.Gone
				}
			}
			found := slices.ContainsFunc(notes, func(n GoneNote) bool {
				return n.Key == w.keys.Gone(key) && n.Note.Group == w.group && n.Note.Instance == "" && n.Note.Revision == 5
			})
			if !ended || found != noted {
				t.Errorf("%s, stopped %t: ended %t, notes %+v", id, stopped, ended, notes)
			}
		}
	}
}

// Of a group of which no spec is in force any more, only what an operator orders to go goes, and
// not in a hold.
//
// proves REC-2, REC-7, SAFE-12, SAFE-3
func TestWhatGoesOfAGroupWithoutASpec(t *testing.T) {
	for name, c := range map[string]struct {
		phase  store.Phase
		change func(*store.Instance)
		s      func(*Snapshot)
		goes   bool
	}{
		"ordered to go":                   {store.Running, condemned(true), nil, true},
		"ordered to be replaced":          {store.Running, condemned(false), nil, true},
		"not ordered":                     {store.Running, nil, nil, false},
		"ordered, and on its way already": {store.Deleting, condemned(true), nil, false},
		"ordered, and drains already":     {store.Draining, draining5m, nil, false},
		"ordered, and the shard is on hold": {
			store.Running, condemned(true), func(s *Snapshot) { s.Shard.Record.Hold = &store.Hold{} }, false,
		},
		"ordered, and the cache is out of date": {
			store.Running, condemned(true), func(s *Snapshot) { s.Stale = behind }, false,
		},
	} {
		w := newTestWorld(t)
		change := c.change
		if change == nil {
			change = func(*store.Instance) {}
		}
		w.place("x", -1, c.phase, change)
		s := w.snapshot()
		s.Groups = []Group{w.groupOf(w.group)}
		if c.s != nil {
			c.s(&s)
		}
		goes := slices.ContainsFunc(Compute(s, w.now).Actions, func(a Action) bool {
			return a.Instance == "x" && a.To == store.Deleting
		})
		if goes != c.goes {
			t.Errorf("%s: it goes: %t", name, goes)
		}
	}
}

// draining5m is an instance that was ordered to go and has five minutes to drain.
func draining5m(r *store.Instance) {
	condemned(true)(r)
	r.Drain = &store.Drain{Token: "t", Timer: store.Timer{Start: epoch, For: store.Duration(5 * time.Minute)}}
}

// A pause says what it keeps from being asked of the cloud, though it was decided before; no call
// is made meanwhile.
//
// proves REC-13
func TestWhatAPauseHolds(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size, g.Paused = 9, true })
	restart := func(r *store.Instance) { r.Restart = &store.Restart{Level: store.RestartMachine, Token: "t"} }
	for i, p := range []store.Phase{
		store.Pending, store.Creating, store.Deleting, store.Stopping, store.Running, store.Creating,
		store.Deleting, store.Deleting,
	} {
		change := func(*store.Instance) {}
		if p == store.Stopping {
			change = restart
		}
		w.place(string(rune('a'+i)), i, p, change)
	}
	w.see("f", func(in *Instance) { in.Calls.Busy = true })
	w.see("g", func(in *Instance) { in.Calls.Deleted = w.now })
	w.change("h", func(r *store.Instance) { r.Called = false })
	text := func() string {
		for _, b := range w.blockedBy() {
			if b.Kind == store.BlockedByPause {
				_, held, _ := strings.Cut(reason.Why(&b), "too: ")
				return held
			}
		}
		return "nothing"
	}
	for _, c := range []struct {
		without string
		want    string
	}{
		{"", "2 creations, 1 removal, 1 restart"},
		{"a", "1 creation, 1 removal, 1 restart"},
		{"c", "1 creation, 1 restart"},
		{"d", "1 creation"},
		{"b", ""},
	} {
		w.see(c.without, func(in *Instance) { in.Calls.Busy = true })
		if got := text(); got != c.want {
			t.Errorf("without %q: a pause holds %q, want %q", c.without, got, c.want)
		}
	}
}

// The last transaction of a group removes what there is of it, and nothing that there is not.
//
// proves REC-7, REC-6
func TestWhatTheEndOfAGroupRemoves(t *testing.T) {
	for name, c := range map[string]struct {
		group, static, status, turn bool
	}{
		"of etcd": {
			true, false, true, true,
		}, "of the file": {false, true, true, true}, "of both": {true, true, true, true},
		"before its first status": {true, false, false, false},
	} {
		w := newTestWorld(t)
		spec := store.DefaultGroup()
		spec.Name, spec.Provider, spec.Deleting = w.group, cloud, true
		spec.Complete()
		g := Group{Name: w.group, Spec: Spec{Key: w.keys.Group(w.group), Static: w.keys.Static(w.group), Group: spec}}
		var want []string
		for _, has := range []struct {
			yes      bool
			key      string
			modified *store.Revision
		}{
			{c.group, g.Spec.Key, &g.Spec.Modified},
			{c.static, g.Spec.Static, &g.Spec.StaticModified},
			{c.status, w.keys.Status(w.group), &g.Status.Modified},
			{c.turn, w.keys.Turn(w.group), &g.Turn},
		} {
			if has.yes {
				*has.modified = 7
				want = append(want, has.key)
			}
		}
		g.Status.Key = w.keys.Status(w.group)
		s := w.snapshot()
		s.Groups = []Group{g}
		for _, a := range Compute(s, w.now).Actions {
			if a.Rule != "REC-7" {
				continue
			}
			if got := deleted(a); !slices.Equal(got, want) || a.NoJournal || a.What() != "group deleted" {
				t.Errorf("%s: %s, %q, want %q", name, a.What(), got, want)
			}
			for _, key := range want {
				if !slices.Contains(a.Conditions, store.At(key, 7)) {
					t.Errorf("%s: %s is not compared", name, key)
				}
			}
			want = nil
		}
		if want != nil {
			t.Errorf("%s: it does not end", name)
		}
	}
}

// The entry of an order for the shard names the operator.
//
// proves DRAIN-3, REC-16
func TestJournalOfAnOrderForTheShard(t *testing.T) {
	w := newTestWorld(t)
	w.put(w.keys.Request("r"), store.Request{
		Schema: store.Schema, ID: "r", Kind: store.RequestEvacuate, Zone: "a", By: "ada", At: w.now,
	})
	p := Compute(w.snapshot(), w.now)
	if len(p.Actions) != 1 || p.Actions[0].What() != "zone a is evacuated" || p.Actions[0].Why != "ordered by ada" ||
		!slices.Equal(reason.Lines(p.Actions[0].Facts), []string{"request r"}) {
		t.Errorf("told is %+v", p.Actions)
	}
}

// What an emptied group waits for is reported once, however many wait.
//
// proves HEAL-7, REC-11
func TestOneReasonThatBlocksManyIsReportedOnce(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size, g.Stopped, g.Budget.MaxDeleting = 4, true, 1 })
	for i, id := range []string{"a", "b", "c", "d"} {
		w.place(id, i, store.Running)
	}
	if got := w.briefly(); got != "REC-11 -a" {
		t.Errorf("planned %q", got)
	}
	if b := w.blockedBy(); len(b) != 1 || b[0].Rule != "HEAL-7" {
		t.Errorf("what waits: %+v", b)
	}
}

// An order to adopt into a slot that another order changes waits for the next plan.
//
// proves REC-8, REC-16
func TestAnAdoptionWaitsForItsSlot(t *testing.T) {
	for slot, adopted := range map[int]bool{0: false, 1: true} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 2 })
		w.waits(0)
		s := w.snapshot()
		s.Groups[0].Extras = []Extra{{Instance: "m1", Group: w.group, Provider: cloud, Zone: "a", Since: w.now}}
		for _, r := range []store.Request{
			{ID: "r1", Kind: store.RequestRetry, Group: w.group, By: "ada"},
			{ID: "r2", Kind: store.RequestAdopt, Instance: "m1", By: "ada", Slot: &slot},
		} {
			s.Groups[0].Requests = append(s.Groups[0].Requests,
				store.Versioned[store.Request]{Key: w.keys.Request(r.ID), Modified: 1, Record: r})
		}
		written := map[string]int{}
		got := false
		for _, a := range Compute(s, w.now).Actions {
			got = got || a.Instance == "m1"
			for _, op := range a.Writes {
				written[op.Key]++
			}
		}
		if got != adopted || written[w.keys.Slot(w.group, 0)] != 1 {
			t.Errorf("into slot %d: adopted %t, written is %v", slot, got, written)
		}
	}
}

// A failure that makes a slot flap, or has it given up, is reported under the rule for it.
//
// proves FLAP-1, FLAP-3
func TestByWhichRuleASlotWaits(t *testing.T) {
	for _, policy := range []string{store.HealRecreate, store.HealRestart} {
		for most, want := range map[int]string{0: "FLAP-1", 3: "FLAP-3"} {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size, g.Heal.Policy, g.Flap.GiveUpAfter = 1, policy, most })
			w.place("a", 0, store.Running)
			w.put(w.keys.Slot(w.group, 0), store.Slot{
				Schema: store.Schema, Group: w.group, Flapping: 1, Template: w.instance("a").Record.Template,
			})
			w.turn("a", false)
			a, next := w.decided("a")
			if a.Rule != want || !next.Counted || next.Phase != store.Running {
				t.Errorf("%s, give_up_after %d: %s %s", policy, most, a.Rule, a.What())
			}
		}
	}
}

// The last good template is given up for what it was refused itself.
//
// proves ROLL-9
func TestWhatIsRefusedOfTheLastGoodTemplate(t *testing.T) {
	for made, want := range map[string]string{"good": "no image", "new": ""} {
		d := draftWith(func(d *draft) { d.templates.fallback, d.roll.rollout = &template{hash: "good"}, &store.Rollout{} })
		m := &member{Instance: &Instance{Calls: Calls{Problem: "no image"}}}
		m.Record.Template = made
		if d.templates.refusedFallback(m); d.roll.rollout.FallbackUnusable != want {
			t.Errorf("made from %s: it is of no use: %q", made, d.roll.rollout.FallbackUnusable)
		}
	}
}

// Slots are found by number, however far the numbers go.
func TestSlotsByNumber(t *testing.T) {
	x := newSlotIndex(2)
	slots := map[int]*slot{0: {}, 1: {}, 2: {}, 1000: {}}
	for n, sl := range slots {
		x.set(n, sl)
	}
	for _, n := range []int{-1, 0, 1, 2, 3, 1000} {
		if x.get(n) != slots[n] {
			t.Errorf("slot %d is another", n)
		}
	}
	for n := range slots {
		if x.set(n, nil); x.get(n) != nil {
			t.Errorf("slot %d is there still", n)
		}
	}
}
