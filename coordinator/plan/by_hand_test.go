package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

const handToken = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// setUpByHand makes an instance one whose machine people have set up.
func setUpByHand(r *store.Instance) {
	r.Managed, r.Slot, r.Token, r.Spec.Provider = false, -1, handToken, store.ProviderNone
	r.Spec.RegistrationTimeout = store.Duration(time.Hour)
}

func (w *world) order(kind store.RequestKind, instance string, change ...func(*store.Request)) {
	r := store.Request{Schema: store.Schema, ID: "r", Kind: kind, Group: w.group, Instance: instance, By: "ann", At: w.now}
	for _, c := range change {
		c(&r)
	}
	w.put(w.keys.Request(r.ID), r)
}

func (w *world) joined(id string) {
	w.put(w.keys.Joined(id), store.Joined{Schema: store.Schema, Instance: id, Token: handToken})
}

// proves PROV-9, REC-2: an order makes a record that awaits its machine, with the token that the
// operator has
func TestAMachineToBeSetUpByHand(t *testing.T) {
	good := func(r *store.Request) { r.Token, r.Valid, r.Zone = handToken, store.Duration(time.Hour), "rack-1" }
	for name, c := range map[string]struct {
		order   func(*store.Request)
		group   func(*store.Group)
		refused string // why; "": it is carried out
		waits   bool
	}{
		"good":            {order: good},
		"no token":        {order: func(r *store.Request) { good(r); r.Token = "" }, refused: "hash of a join token"},
		"not a hash":      {order: func(r *store.Request) { good(r); r.Token = "../shard" }, refused: "hash of a join token"},
		"no end":          {order: func(r *store.Request) { good(r); r.Valid = 0 }, refused: "validity"},
		"valid for ever":  {order: func(r *store.Request) { good(r); r.Valid *= 24 * 31 }, refused: "validity"},
		"stopped group":   {order: good, group: func(g *store.Group) { g.Stopped = true }, refused: "stopped"},
		"paused group":    {order: good, group: func(g *store.Group) { g.Paused = true }, waits: true},
		"all zones gone":  {order: good, group: func(g *store.Group) { g.Template.Zones = []string{"b"} }},
		"group of others": {order: good, group: func(g *store.Group) { g.Size = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size = 0 })
			w.editShard(func(s *store.Shard) { s.Evacuated = map[string]store.Evacuation{"b": {}} })
			if c.group != nil {
				w.edit(c.group)
			}
			w.order(store.RequestBootstrap, "", c.order)
			p, _ := w.step()
			i := slices.IndexFunc(p.Actions, func(a Action) bool { return a.Token != nil || a.Kind == store.EntryRefusal })
			switch pending := read[store.Request](w, w.keys.Request("r")).Present(); {
			case pending != c.waits:
				t.Fatalf("the order is pending: %t", pending)
			case c.waits:
				return
			case i < 0:
				t.Fatal("the order was dropped")
			}
			a := p.Actions[i]
			if c.refused != "" {
				if a.Kind != store.EntryRefusal || !strings.Contains(a.Why, c.refused) {
					t.Errorf("%s %q, want a refusal for %q", a.What(), a.Why, c.refused)
				}
				return
			}
			rec := w.instance(a.Instance).Record
			if rec.Phase != store.Booting || rec.Managed || !rec.Called || rec.Spec.Provider != store.ProviderNone ||
				rec.Zone != "rack-1" || rec.Token != handToken || rec.Spec.RegistrationTimeout.D() != time.Hour {
				t.Errorf("record %+v", rec)
			}
			if *a.Token != (TokenGrant{Key: w.keys.Token(handToken), Instance: rec.ID, Valid: time.Hour}) {
				t.Errorf("token %+v", *a.Token)
			}
		})
	}
}

// A record whose machine no provider sees ends by the agent's own word, by an operator's, or
// because nothing can join as it: never because nothing is heard.
//
// proves PROV-9: absence proves nothing; the agent's confirmed stop or an operator's word does
// proves SAFE-8
func TestTheEndOfAMachineSetUpByHand(t *testing.T) {
	stopped := func(w *world, of store.Revision) {
		r := read[store.Report](w, w.keys.Report("x")).Record
		r.Instance, r.Stopped = "x", of
		w.put(w.keys.Report("x"), r)
	}
	gone := func(w *world) { w.order(store.RequestGone, "x") }
	for name, c := range map[string]struct {
		phase   store.Phase
		world   func(w *world)
		phases  string // its phases after each of two plans; "": no record
		refused bool
	}{
		"awaits its machine":     {store.Booting, func(*world) {}, "booting booting", false},
		"token not used in time": {store.Booting, func(w *world) { w.pass(61 * time.Minute) }, "deleting ", false},
		"joined, and not heard since": {
			store.Booting, func(w *world) { w.joined("x"); w.pass(61 * time.Minute) },
			"booting booting", false,
		},
		"silent for a day": {
			store.Running,
			func(w *world) { w.joined("x"); w.silence("x", true); w.pass(24 * time.Hour) }, "running running", false,
		},
		"deleted before it joined": {store.Deleting, func(*world) {}, " ", false},
		"deleted, not heard for a day": {
			store.Deleting, func(w *world) { w.joined("x"); w.pass(24 * time.Hour) },
			"deleting deleting", false,
		},
		"its agent has stopped": {store.Deleting, func(w *world) {
			w.joined("x")
			stopped(w, w.instance("x").Modified)
		}, " ", false},
		"its agent stopped for an older record": {store.Deleting, func(w *world) {
			w.joined("x")
			stopped(w, w.instance("x").Modified-1)
		}, "deleting deleting", false},
		"said to be gone while it is deleted": {store.Deleting, func(w *world) { w.joined("x"); gone(w) }, " ", false},
		"said to be gone, and silent": {store.Running, func(w *world) {
			w.joined("x")
			w.silence("x", true)
			w.pass(time.Hour)
			gone(w)
		}, "deleting ", false},
		"said to be gone, and reports": {store.Running, func(w *world) { w.joined("x"); gone(w) }, "running running", true},
		"said to be gone, in a group that is paused": {store.Running, func(w *world) {
			w.edit(func(g *store.Group) { g.Paused = true })
			w.joined("x")
			w.silence("x", true)
			w.pass(time.Hour)
			gone(w)
		}, "running running", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size = 0 })
			w.place("x", -1, c.phase, setUpByHand)
			if c.phase == store.Booting {
				delete(w.agents, "x")
			}
			c.world(w)
			var phases []string
			refused := false
			for range 2 {
				p, _ := w.step()
				if len(p.Calls) > 0 {
					t.Errorf("a provider is asked: %+v", p.Calls)
				}
				for _, a := range p.Actions {
					refused = refused || a.Kind == store.EntryRefusal
				}
				phases = append(phases, string(w.instance("x").Record.Phase))
			}
			if got := strings.Join(phases, " "); got != c.phases || refused != c.refused {
				t.Errorf("phases %q, refused %t; want %q, %t", got, refused, c.phases, c.refused)
			}
		})
	}
}

// proves PROV-9: what only a provider could do is refused, and what waits says for what
func TestAMachineSetUpByHandHasNoProvider(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 0 })
	w.place("x", -1, store.Running, setUpByHand)
	w.place("y", -1, store.Deleting, setUpByHand)
	w.joined("y")
	w.order(store.RequestRestart, "x")
	p, _ := w.step()
	if !slices.ContainsFunc(p.Actions, func(a Action) bool {
		return a.Kind == store.EntryRefusal && strings.Contains(a.Why, "restart it there")
	}) {
		t.Errorf("a restart is not refused: %+v", p.Actions)
	}
	blocked := read[store.Status](w, w.keys.Status(w.group)).Record.Blocked
	if !slices.ContainsFunc(blocked, func(b store.Blocked) bool {
		return b.Kind == store.BlockedByAgentStop && b.Instance == "y" && b.Command == "leasehold instance delete --gone y"
	}) {
		t.Errorf("blocked: %+v", blocked)
	}
	w.place("z", 0, store.Running)
	w.order(store.RequestGone, "z")
	if p, _ = w.step(); !slices.ContainsFunc(p.Actions, func(a Action) bool { return a.Kind == store.EntryRefusal }) {
		t.Error("a machine that a provider keeps ends by an operator's word")
	}
}

// A group that was deleted leaves its instances on demand behind. Orders and time end them all the
// same.
//
// proves PROV-9, REC-7
func TestMachinesSetUpByHandOutliveTheirGroup(t *testing.T) {
	for name, c := range map[string]struct {
		phase  store.Phase
		world  func(w *world)
		phases string
	}{
		"token not used in time": {store.Booting, func(w *world) { w.pass(61 * time.Minute) }, "deleting "},
		"said to be gone": {store.Running, func(w *world) {
			w.joined("x")
			w.silence("x", true)
			w.pass(time.Hour)
			w.order(store.RequestGone, "x")
		}, "deleting "},
		"said to be gone, on hold": {store.Running, func(w *world) {
			w.joined("x")
			w.silence("x", true)
			w.pass(time.Hour)
			w.editShard(func(s *store.Shard) { s.Hold = &store.Hold{By: "ann"} })
			w.order(store.RequestGone, "x")
		}, "running running"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size = 0 })
			w.place("x", -1, c.phase, setUpByHand)
			if c.phase == store.Booting {
				delete(w.agents, "x")
			}
			w.drop(w.keys.Group(w.group))
			w.drop(w.keys.Status(w.group))
			c.world(w)
			var phases []string
			for range 2 {
				w.step()
				phases = append(phases, string(w.instance("x").Record.Phase))
			}
			if got := strings.Join(phases, " "); got != c.phases {
				t.Errorf("phases %q, want %q", got, c.phases)
			}
		})
	}
}
