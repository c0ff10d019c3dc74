package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// proves REC-8
func TestExtras(t *testing.T) {
	w := newTestWorld(t)
	x := Extra{Instance: "x", Group: "gone", Provider: cloud, Since: w.now, Gone: true}
	for _, c := range []struct {
		name   string
		change func(*Extra, *Snapshot)
		after  time.Duration
		taken  bool
	}{
		{"young", func(*Extra, *Snapshot) {}, 10*time.Minute - 1, false},
		{"old", func(*Extra, *Snapshot) {}, 10 * time.Minute, true},
		{
			"another has its slot", func(x *Extra, _ *Snapshot) { x.Gone, x.Replaced = false, true }, 10 * time.Minute,
			true,
		},
		{
			"its group was deleted", func(x *Extra, _ *Snapshot) { x.Gone, x.GroupGone = false, true }, 10 * time.Minute,
			true,
		},
		{"why it has no record is unknown", func(x *Extra, _ *Snapshot) { x.Gone = false }, 1000 * time.Hour, false},
		{"its record was lost", func(x *Extra, _ *Snapshot) { x.Replaced, x.Damaged = true, true }, time.Hour, false},
		{"its agent says hello", func(x *Extra, _ *Snapshot) { x.Stray = true }, time.Hour, false},
		{"its agent may be one without a note", func(x *Extra, s *Snapshot) {
			x.Gone, x.Replaced, s.UnnotedUntil = false, true, w.now.Add(time.Hour+1)
		}, time.Hour, false},
		{"no such agents came since", func(x *Extra, s *Snapshot) {
			x.Gone, x.Replaced, s.UnnotedUntil = false, true, w.now.Add(time.Hour)
		}, time.Hour, true},
		{
			"a note would have stopped its agent",
			func(_ *Extra, s *Snapshot) { s.UnnotedUntil = w.now.Add(2 * time.Hour) }, time.Hour, true,
		},
		{"on hold", func(_ *Extra, s *Snapshot) { s.Shard.Record.Hold = &store.Hold{} }, time.Hour, false},
		{"stale", func(_ *Extra, s *Snapshot) { s.Stale = behind }, time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, x := w.snapshot(), x
			s.Groups = nil
			c.change(&x, &s)
			s.Extras = []Extra{x}
			p := Compute(s, w.now.Add(c.after))
			if c.name == "young" && !p.Due[""].Equal(w.now.Add(10*time.Minute)) {
				t.Errorf("the shard is looked at again at %s", p.Due[""])
			}
			if (len(p.Actions) == 1) != c.taken {
				t.Fatalf("planned %+v", p.Actions)
			}
			if c.taken {
				for _, key := range []string{w.keys.Instance("x"), w.keys.Stray("x")} {
					if !slices.Contains(p.Actions[0].Conditions, store.Absent(key)) {
						t.Errorf("does not compare that %s is absent", key)
					}
				}
			}
		})
	}
}

// An extra that was taken up belongs to no slot, and perhaps to an unknown group: it is removed all
// the same.
//
// proves REC-8, SAFE-8
func TestExtraOfAnUnknownGroupIsRemoved(t *testing.T) {
	w := newTestWorld(t)
	w.place("x", -1, store.Deleting, func(r *store.Instance) { r.Spec.Provider = cloud })
	w.pass(CallTimeout + Consistency)
	for range 4 {
		w.planIsSound()
		w.step()
		w.pass(time.Second)
	}
	if len(w.machines) > 0 || len(w.instances()) > 0 {
		t.Errorf("machines %v, records %v", w.machines, w.instances())
	}
	if n := len(w.names(store.KindStatus)); n > 0 {
		t.Errorf("an unknown group has a status")
	}
}

// Instances whose group has vanished with its status are left as they are: a key that vanished
// changes nothing. Whose they are, and what to do, is told once, and forgotten with the last of
// them.
//
// proves SAFE-10, REC-7
func TestInstancesWithoutAGroupAreLeftAlone(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 3 })
	w.place("a", 0, store.Running)
	w.place("b", 1, store.Pending)
	w.place("c", 2, store.Running)
	w.kill("c")
	w.drop(w.keys.Group(w.group))
	w.pass(time.Minute)
	p, done := w.step()
	if len(done) != 1 || len(p.Calls) > 0 || done[0].Rule != "SAFE-10" || done[0].NoJournal ||
		!strings.Contains(done[0].Why,
			"3 instances are left as they are and not healed: a, b, c; apply the group again") {
		t.Fatalf("done %+v, calls %+v", done, p.Calls)
	}
	w.pass(time.Minute)
	if p, done := w.step(); len(done) > 0 || len(p.Calls) > 0 {
		t.Errorf("done %+v, calls %+v", done, p.Calls)
	}
	for _, id := range []string{"a", "b", "c"} {
		key := w.keys.Instance(id)
		gone := store.Gone{Schema: store.Schema, Instance: id, Group: w.group, At: w.now}
		w.write(store.Put(w.keys.Gone(key), store.Encode(gone)), store.Delete(key))
	}
	if w.step(); len(w.names(store.KindStatus)) > 0 {
		t.Error("the status outlives the last instance")
	}
}

// Which provider a machine has is known from who lists it: the group may have moved to another one
// since.
//
// proves REC-8
func TestAdoptedMachineKeepsItsProvider(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 2 })
	w.place("a", 0, store.Running)
	s := w.snapshot()
	g := &s.Groups[0]
	g.Extras = []Extra{{Instance: "x", Group: w.group, Provider: "other", Zone: "a", Since: w.now}}
	g.Requests = []store.Versioned[store.Request]{{
		Key: w.keys.Request("r"), Modified: 1,
		Record: store.Request{ID: "r", Kind: store.RequestAdopt, Instance: "x", By: "ada"},
	}}
	p := Compute(s, w.now)
	for _, a := range p.Actions {
		for _, op := range a.Writes {
			if op.Key != w.keys.Instance("x") {
				continue
			}
			v, err := store.Decode[store.Instance](store.KV{Key: op.Key, Value: op.Value})
			if err != nil || v.Record.Spec.Provider != "other" {
				t.Errorf("adopted as one of provider %q, %v", v.Record.Spec.Provider, err)
			}
			return
		}
	}
	t.Error("not adopted")
}

// With no zone left, a notice has its instance drained, and nothing is made in a zone that no group
// chose.
//
// proves SPOT-2, DRAIN-3
func TestNoticeWithAllZonesEvacuated(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 1 })
	w.place("a", 0, store.Running, func(r *store.Instance) {
		r.Spec.Drain.Timeout = store.Duration(time.Minute)
		r.Doomed = &store.Doom{Rule: "SPOT-2", Why: "a notice", At: w.now}
	})
	w.editShard(func(s *store.Shard) { s.Evacuated = map[string]store.Evacuation{"a": {By: "ada"}, "b": {By: "ada"}} })
	p := Compute(w.snapshot(), w.now)
	drains := slices.ContainsFunc(p.Actions,
		func(a Action) bool { return a.Instance == "a" && a.Rule == "SPOT-2" && a.To == store.Draining })
	if got := w.briefly(); got != "" || !drains {
		t.Errorf("planned: %q, and it drains: %t", got, drains)
	}
}
