package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/store"
	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

// behind is why a cache is stale.
var behind = store.Cause{Kind: store.CauseShardMissing}

func lostSlot(w *world, id string, slot int, seen store.Revision) store.Damaged {
	return store.Damaged{
		Key: w.keys.Instance(id), Instance: id, Slot: &slot, What: store.DamageLost,
		Cause: store.Cause{Kind: store.CauseRecordLost, Name: id, Revision: 5},
		Since: w.now, Last: 5, Seen: seen,
	}
}

// Two damaged records hold the shard before anything else; one, or what an operator has
// acknowledged, does not.
//
// proves SAFE-15
func TestTwoDamagedRecordsHoldTheShard(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 4 })
	two := []store.Damaged{lostSlot(w, "web-0-b", 0, 7), lostSlot(w, "web-1-c", 1, 8)}
	unknown := []store.Damaged{{Key: w.keys.Instance("(web, unknown 1)"), What: store.DamageLost, Seen: 7}}
	for _, c := range []struct {
		name    string
		damaged []store.Damaged
		shard   func(*store.Shard)
		holds   bool
	}{
		{"one", two[:1], func(*store.Shard) {}, false},
		{"two", two, func(*store.Shard) {}, true},
		{"one during an operator's hold", two[:1], func(s *store.Shard) { s.Hold = &store.Hold{By: "ada"} }, false},
		{"an unknown one", unknown, func(*store.Shard) {}, false},
		{
			"an unknown one during an operator's hold", unknown,
			func(s *store.Shard) { s.Hold = &store.Hold{By: "ada"} }, true,
		},
		{"two during an operator's hold", two, func(s *store.Shard) { s.Hold = &store.Hold{By: "ada"} }, true},
		{"two that are counted", two, func(s *store.Shard) {
			s.Hold = &store.Hold{By: "leasehold", Damage: 2, Seen: 8}
		}, false},
		{
			"one more during the hold", two,
			func(s *store.Shard) { s.Hold = &store.Hold{By: "leasehold", Damage: 2, Seen: 7} }, true,
		},
		{
			"two that were acknowledged", two, func(s *store.Shard) { s.Reviewed = &store.Reviewed{Damage: 2, Seen: 8} },
			false,
		},
		{
			"one after another was acknowledged", two,
			func(s *store.Shard) { s.Reviewed = &store.Reviewed{Damage: 1, Seen: 7} }, false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := w.snapshot()
			c.shard(&s.Shard.Record)
			s.Damaged, s.Groups[0].Damaged = c.damaged, c.damaged
			p := Compute(s, w.now)
			held := len(p.Actions) == 1 && p.Actions[0].Rule == "SAFE-15" && p.Actions[0].Writes[0].Key == s.Shard.Key
			if held != c.holds || held && len(p.Calls) > 0 {
				t.Errorf("planned %+v, calls %+v", p.Actions, p.Calls)
			}
		})
	}
}

// A group that has shrunk has instances in slots beyond its size. They go back there as long as the
// group is not complete without them, or while their own lost record holds the slot.
//
// proves SAFE-17
func TestAdoptionBeyondTheSize(t *testing.T) {
	for _, c := range []struct {
		name    string
		size    int
		damaged []int
		letter  string
		ordered bool
		slot    int // -1: on demand; -2: refused
	}{
		{"the group lacks one", 2, nil, "x", false, 9},
		{"the group is complete", 1, nil, "x", false, -1},
		{"its own record is lost", 2, []int{9}, "x", false, 9},
		{"more records are lost than the size", 2, []int{1, 2, 9}, "x", false, 9},
		{"records of others are lost", 2, []int{1}, "x", false, -1},
		{"its own record is lost, and its slot ordered", 2, []int{9}, "x", true, 9},
		{"the record of another is lost that had its slot", 2, []int{9}, "y", false, -1},
		{"the record of another is lost that had the slot ordered", 2, []int{9}, "y", true, -2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size = c.size })
			w.place("web-0-a", 0, store.Running)
			s := w.snapshot()
			s.Shard.Record.Hold = &store.Hold{By: "leasehold", Damage: 3, Seen: s.Revision}
			for _, n := range c.damaged {
				s.Damaged = append(s.Damaged, lostSlot(w, fmt.Sprintf("web-%d-%s", n, c.letter), n, 1))
			}
			s.Groups[0].Damaged = s.Damaged
			s.Groups[0].Extras = []Extra{{
				Instance: "web-9-x", Group: w.group, Provider: cloud, Zone: "a", Since: w.now,
				Claim: &store.Claim{Instance: "web-9-x", Group: w.group, Slot: 9, Managed: true},
			}}
			r := store.Request{ID: "r", Kind: store.RequestAdopt, Instance: "web-9-x", By: "ada"}
			if c.ordered {
				r.Slot = new(9)
			}
			s.Groups[0].Requests = []store.Versioned[store.Request]{{Key: w.keys.Request("r"), Modified: 1, Record: r}}
			got := -2
			for _, a := range Compute(s, w.now).Actions {
				if a.Instance != "web-9-x" || a.To != store.Booting {
					continue
				}
				if got = -1; a.Slot != nil {
					got = *a.Slot
				}
			}
			if got != c.slot {
				t.Errorf("adopted into %d, wanted %d", got, c.slot)
			}
		})
	}
}

// A machine takes its old slot back from an instance that only an older copy of etcd's data knows:
// no agent speaks for it, and no list shows its machine. Anything else in the slot keeps it.
//
// proves SAFE-17, REC-8
func TestAdoptionInPlaceOfAStaleRecord(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Instance, *Extra)
		taken  bool
	}{
		{"nothing speaks for it", func(*Instance, *Extra) {}, true},
		{"its agent has a session", func(in *Instance, _ *Extra) { in.Alive.Modified = 3 }, false},
		{"its machine is listed", func(in *Instance, _ *Extra) { in.Sighting.Listed = true }, false},
		{"its machine has crashed", func(in *Instance, _ *Extra) { in.Sighting.Listed, in.Sighting.Down = true, true }, true},
		{
			"its machine has crashed, says one list",
			func(in *Instance, _ *Extra) {
				in.Sighting = Sighting{Begun: in.Sighting.Begun, Listed: true, Down: true, Times: 1}
			}, false,
		},
		{"one list proves nothing", func(in *Instance, _ *Extra) { in.Sighting.Times = 1 }, false},
		{"it is being created", func(in *Instance, _ *Extra) { in.Record.Phase = store.Creating }, false},
		{"the machine had another slot", func(_ *Instance, x *Extra) { x.Claim.Slot = 1 }, false},
		{"no seal proves the slot", func(_ *Instance, x *Extra) { x.Claim = nil }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size = 2 })
			w.place("web-0-old", 0, store.Running)
			zero := 0
			s := w.snapshot()
			s.Shard.Record.Hold = &store.Hold{By: "leasehold"}
			in := &s.Groups[0].Instances[0]
			in.Alive.Modified, in.Sighting = 0, Sighting{Begun: w.now, Times: 2}
			s.Groups[0].Extras = []Extra{{
				Instance: "web-0-new", Group: w.group, Provider: cloud, Zone: "a", Since: w.now,
				Claim: &store.Claim{Instance: "web-0-new", Group: w.group, Slot: 0, Managed: true},
			}}
			c.change(in, &s.Groups[0].Extras[0])
			r := store.Request{ID: "r", Kind: store.RequestAdopt, Instance: "web-0-new", By: "ada", Slot: &zero}
			s.Groups[0].Requests = []store.Versioned[store.Request]{{Key: w.keys.Request("r"), Modified: 1, Record: r}}
			taken := false
			for _, a := range Compute(s, w.now).Actions {
				if a.Instance != "web-0-new" || a.To != store.Booting {
					continue
				}
				taken = true
				v, err := store.Decode[store.Instance](store.KV{Key: a.Writes[0].Key, Value: a.Writes[0].Value})
				if err != nil || v.Record.Slot != 0 || v.Record.Replaces != "web-0-old" {
					t.Errorf("%v: %+v", err, v.Record)
				}
			}
			if taken != c.taken {
				t.Errorf("taken: %t, wanted %t", taken, c.taken)
			}
		})
	}
}

// A damaged slot makes no other one superfluous: the instance in it may have been leaving. What is
// above the size without it goes.
//
// proves SAFE-15
func TestADamagedSlotMakesNoOtherSuperfluous(t *testing.T) {
	for size, removed := range map[int]int{1: 1, 2: 0, 3: 0} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = size })
		w.place("web-1-b", 1, store.Running)
		w.place("web-2-c", 2, store.Running)
		s := w.snapshot()
		s.Damaged = []store.Damaged{lostSlot(w, "web-0-a", 0, 7)}
		s.Groups[0].Damaged = s.Damaged
		n := 0
		for _, a := range Compute(s, w.now).Actions {
			if a.To == store.Deleting {
				n++
			}
		}
		if n != removed {
			t.Errorf("of two instances and a lost one %d are removed at size %d, wanted %d", n, size, removed)
		}
	}
}

// Whatever else happens in a group: for a damaged slot nothing is created, restarted or deleted,
// and where the slot is not known, nothing in the group is.
//
// proves SAFE-15, SAFE-16
func TestNothingIsDoneForDamagedSlots(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r, calm{})
		size := rapid.IntRange(0, 6).Draw(r, "size")
		w.edit(func(g *store.Group) {
			g.Size, g.Stopped = size, rapid.IntRange(0, 9).Draw(r, "stopped") == 0
			g.Deleting = rapid.IntRange(0, 9).Draw(r, "deleting") == 0
			g.Budget.MaxExpansion = store.Amount(rapid.IntRange(0, 3).Draw(r, "expansion"))
			if rapid.Bool().Draw(r, "restarts") {
				g.Heal.Policy = store.HealRestart
			}
		})
		phases := []store.Phase{
			store.Pending, store.Creating, store.Booting, store.Checking, store.Running,
			store.Running, store.Running, store.Draining, store.Deleting,
		}
		for i := range rapid.IntRange(0, 6).Draw(r, "instances") {
			id := fmt.Sprintf("web-%d-bcdfg%d", i, i)
			w.place(id, rapid.IntRange(0, 4).Draw(r, "slot"), rapid.SampledFrom(phases).Draw(r, "phase"),
				func(in *store.Instance) {
					if rapid.IntRange(0, 3).Draw(r, "condemned") == 0 {
						in.Condemned = &store.Condemned{By: "ada", Now: rapid.Bool().Draw(r, "now")}
					}
					if rapid.IntRange(0, 3).Draw(r, "outdated") == 0 {
						in.Template = "another"
					}
				})
		}
		w.pass(time.Duration(rapid.IntRange(0, 1200).Draw(r, "later")) * time.Second)
		s := w.snapshot()
		damaged := lostSlot(w, "web-9-lost", rapid.IntRange(0, 7).Draw(r, "damaged"), 7)
		if rapid.Bool().Draw(r, "unreadable") {
			damaged.What = store.DamageUnreadable
		}
		if rapid.IntRange(0, 3).Draw(r, "unknown") == 0 {
			damaged.Slot = nil
		}
		for i := range s.Groups[0].Instances {
			in := &s.Groups[0].Instances[i]
			in.Sighting = Sighting{
				Begun: w.now, Listed: rapid.Bool().Draw(r, "listed"),
				Down: rapid.Bool().Draw(r, "down"), Times: 3,
			}
		}
		s.Damaged = []store.Damaged{damaged}
		s.Groups[0].Damaged = s.Damaged
		unlisted := rapid.IntRange(0, 3).Draw(r, "unlisted") == 0
		if unlisted {
			s.Groups[0].Unlisted = cloud
		}
		of := func(slot *int, id string) bool {
			if damaged.Slot == nil || unlisted {
				return true
			}
			for _, in := range s.Groups[0].Instances {
				if in.Record.ID == id {
					return in.Record.Managed && in.Record.Slot == *damaged.Slot
				}
			}
			return slot != nil && *slot == *damaged.Slot
		}
		p := Compute(s, w.now)
		for _, a := range p.Actions {
			changes := a.To == store.Pending || a.From != a.To &&
				(a.To == store.Deleting || a.To == store.Draining || a.To == store.Stopping)
			deletes := len(a.Gone) > 0
			if (changes || deletes) && of(a.Slot, a.Instance) {
				r.Fatalf("%s %s of slot %v: %s, though %+v is damaged", a.Rule, a.Instance, a.Slot, a.What(), damaged)
			}
			for _, op := range a.Writes { // replacements share an action with another instance's
				if v, err := store.Decode[store.Instance](store.KV{Key: op.Key, Value: op.Value}); err == nil &&
					!op.Delete && v.Record.Phase == store.Pending && of(v.Record.Place(), v.Record.ID) {
					r.Fatalf("%s creates %s, though %+v is damaged", a.Rule, v.Record.ID, damaged)
				}
			}
		}
		for _, c := range p.Calls {
			if of(nil, c.Instance) {
				r.Fatalf("%s of %s is asked for, though %+v is damaged", c.Kind, c.Instance, damaged)
			}
		}
	})
}

// Every record that an action deletes has its note, with the revision that the action compares.
//
// proves SAFE-15
func TestDeletionsLeaveNotes(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 3 })
	for range 20 {
		w.step()
		w.pass(time.Second)
	}
	w.edit(func(g *store.Group) { g.Deleting = true })
	deleted := map[string]bool{}
	for range 200 {
		_, done := w.step()
		for _, a := range done {
			for _, op := range a.Writes {
				if !op.Delete || !noted(w.keys, op.Key) {
					continue
				}
				kind, _, _ := w.keys.Split(op.Key)
				deleted[kind] = true
				i := slices.IndexFunc(a.Gone, func(g GoneNote) bool { return g.Key == w.keys.Gone(op.Key) })
				if i < 0 || a.Gone[i].Note.Revision == 0 || a.Gone[i].Note.Rule == "" {
					t.Errorf("%s %s deletes %s and notes %+v", a.Rule, a.What(), op.Key, a.Gone)
				}
			}
		}
		w.pass(time.Second)
	}
	for _, kind := range []string{store.KindInstances, store.KindSlots, store.KindStatus, store.KindGroups} {
		if !deleted[kind] {
			t.Errorf("nothing below %s was deleted: the test tried nothing", kind)
		}
	}
}

// What cannot be read of an agent's stream is not known: it is suspect, and nothing is done for
// that. Without a lease the key goes, once no agent can hold it.
//
// proves SAFE-16
func TestUnreadableAlive(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 1 })
	w.place("a", 0, store.Running)
	for _, c := range []struct {
		after time.Duration
		lease store.LeaseID
		goes  bool
	}{{time.Second, 0, false}, {time.Hour, 7, false}, {time.Hour, 0, true}} {
		s := w.snapshot()
		in := &s.Groups[0].Instances[0]
		in.Alive.Record, in.Alive.Lease = store.Alive{}, c.lease
		in.AliveUnreadable, in.AliveSpoiled = "garbage", w.now
		p := Compute(s, w.now.Add(c.after))
		if v := p.Judgments.Of("a"); v.Verdict != store.Suspect || v.Rule != "SAFE-16" {
			t.Errorf("judged %+v", v)
		}
		goes := slices.ContainsFunc(p.Actions, func(a Action) bool {
			return a.Rule == "SAFE-16" && a.Writes[0].Delete && a.Writes[0].Key == w.keys.Alive("a") &&
				a.Group == w.group && a.Instance == "a" && *a.Slot == 0 &&
				slices.Equal(a.Conditions, []store.Condition{in.Alive.Unchanged(), in.Unchanged()})
		})
		if goes != c.goes || slices.ContainsFunc(p.Actions, func(a Action) bool { return a.To != "" }) {
			t.Errorf("after %s with lease %s: planned %+v", c.after, c.lease, p.Actions)
		}
	}
}

// What is adopted goes into the slot of its claim, or the one that the order names, as what its
// claim says that it is. An order that contradicts the claim is refused.
//
// proves REC-8
func TestAdoptionByClaim(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size, g.Capacity.Spot = 4, 50 })
	w.place("a", 0, store.Running)
	g := w.spec().Record
	spec := g.InstanceSpec()
	made := epoch.Add(-time.Hour)
	three, zero, nine := 3, 0, 9
	for _, c := range []struct {
		name   string
		change func(*store.Claim, *store.Request)
		slot   int // -2: refused
		config bool
	}{
		{"its slot", func(*store.Claim, *store.Request) {}, 2, true},
		{"the order's slot", func(_ *store.Claim, r *store.Request) { r.Slot = &three }, 3, true},
		{"a slot that is taken", func(_ *store.Claim, r *store.Request) { r.Slot = &zero }, -2, false},
		{"its slot is taken", func(c *store.Claim, _ *store.Request) { c.Slot = 0 }, 1, true},
		{"its slot is beyond the size", func(c *store.Claim, _ *store.Request) { c.Slot = 9 }, 9, true},
		{
			"its slot is beyond the size, and ordered",
			func(c *store.Claim, r *store.Request) { c.Slot, r.Slot = 9, &nine }, 9, true,
		},
		{"another slot is beyond the size", func(_ *store.Claim, r *store.Request) { r.Slot = &nine }, -2, false},
		{"on demand", func(c *store.Claim, _ *store.Request) { c.Slot = -1 }, -1, true},
		{
			"on demand, and a group is named", func(c *store.Claim, r *store.Request) { c.Slot, r.Group = -1, w.group }, 1,
			true,
		},
		{"a spot machine", func(c *store.Claim, _ *store.Request) { c.Spot = true }, 2, true},
		{"on demand for want of spot", func(c *store.Claim, _ *store.Request) { c.Fallback = true }, 2, true},
		{"another group", func(_ *store.Claim, r *store.Request) { r.Group = "api" }, -2, false},
		{"outdated", func(c *store.Claim, _ *store.Request) { c.Template = "another" }, 2, false},
		{"another configuration", func(c *store.Claim, _ *store.Request) { c.Config = "another" }, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			claim := store.Claim{
				Instance: "x", Group: w.group, Slot: 2, Managed: true, Template: spec.TemplateHash(),
				Config: spec.ConfigHash(), Relaunch: 3, Created: made,
			}
			r := store.Request{ID: "r", Kind: store.RequestAdopt, Instance: "x", By: "ada"}
			c.change(&claim, &r)
			s := w.snapshot()
			s.Shard.Record.Hold = &store.Hold{By: "leasehold", Damage: 2, Seen: s.Revision}
			s.Groups[0].Extras = []Extra{{
				Instance: "x", Group: w.group, Provider: cloud, Zone: "a", Since: w.now,
				Claim: &claim,
			}}
			s.Groups[0].Requests = []store.Versioned[store.Request]{{Key: w.keys.Request("r"), Modified: 1, Record: r}}
			p := Compute(s, w.now)
			i := slices.IndexFunc(p.Actions, func(a Action) bool { return a.Instance == "x" && a.To == store.Booting })
			if i < 0 || c.slot == -2 {
				if i >= 0 || c.slot != -2 || !slices.ContainsFunc(p.Actions,
					func(a Action) bool { return a.Rule == "REC-16" && a.Instance == "x" }) {
					t.Fatalf("planned %+v", p.Actions)
				}
				return
			}
			a := p.Actions[i]
			v, err := store.Decode[store.Instance](store.KV{Key: a.Writes[0].Key, Value: a.Writes[0].Value})
			rec := v.Record
			if err != nil || rec.Slot != c.slot || rec.Managed != (c.slot >= 0) || rec.Template != claim.Template ||
				rec.Spec.Spot != claim.Spot || rec.Fallback != claim.Fallback || rec.Relaunch != 3 || !rec.Created.Equal(made) {
				t.Errorf("%v: %+v", err, rec)
			}
			if (rec.Config != "") != c.config {
				t.Errorf("its agent is to apply %q", rec.Config)
			}
			for _, key := range []string{w.keys.Stray("x"), w.keys.Extra("x"), w.keys.Gone(w.keys.Instance("x"))} {
				if !slices.ContainsFunc(a.Writes, func(op store.Write) bool { return op.Delete && op.Key == key }) {
					t.Errorf("%s stays", key)
				}
			}
		})
	}
}

// A group that no leader has counted makes nothing and counts nothing before its provider has
// listed its machines, and its status says so.
//
// proves SAFE-15
func TestAnUncountedGroupWaitsForItsMachines(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 3 })
	w.place("web-0-bcdfgh", 0, store.Pending)
	status := func(p Plan) (st store.Status) {
		for _, a := range p.Actions {
			if a.To == store.Pending && a.From != a.To {
				t.Errorf("%s %s", a.What(), a.Instance)
			}
			if a.Writes[0].Key == w.keys.Status(w.group) {
				v, err := store.Decode[store.Status](store.KV{
					Key: a.Writes[0].Key, Value: a.Writes[0].Value,
					Modified: 1,
				})
				if err != nil {
					t.Fatal(err)
				}
				st = v.Record
			}
		}
		return st
	}
	s := w.snapshot()
	s.Groups[0].Unlisted = cloud
	p := Compute(s, w.now)
	st := status(p)
	waits := slices.ContainsFunc(st.Blocked, func(b store.Blocked) bool {
		return b.Rule == "SAFE-15" && b.What == "all changes" && b.Until == "provider cloud lists its machines"
	})
	if !waits || st.Records != nil || st.Counted != 0 || len(p.Calls) > 0 {
		t.Errorf("blocked %+v, records %v, calls %+v", st.Blocked, st.Records, p.Calls)
	}
	s.Groups[0].Status = store.Versioned[store.Status]{Key: w.keys.Status(w.group), Modified: s.Revision, Record: st}
	if again := status(Compute(s, w.now)); again.Schema != 0 {
		t.Errorf("the status is written again: %+v", again)
	}
	s.Groups[0].Unlisted = ""
	if st := status(Plan{Actions: slices.DeleteFunc(Compute(s, w.now).Actions, func(a Action) bool {
		return a.To == store.Pending
	})}); st.Records == nil || *st.Records != 1 {
		t.Errorf("counted %v", st.Records)
	}
}
