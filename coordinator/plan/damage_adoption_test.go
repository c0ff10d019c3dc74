package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

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
