package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// ofProvider makes an instance one of another provider, or of another site.
func ofProvider(name, site string) func(*store.Instance) {
	return func(r *store.Instance) { r.Spec.Provider, r.Site, r.Called = name, site, true }
}

// replica writes a coordinator that runs, with the site of each of its providers.
func (w *world) replica(id string, sites map[string]string) {
	r := store.Replica{
		Schema: store.Schema, ID: id, Providers: slices.Sorted(maps.Keys(sites)),
		Capabilities: map[string]store.ProviderCapabilities{},
	}
	for name, site := range sites {
		r.Capabilities[name] = store.ProviderCapabilities{Site: site}
	}
	w.put(w.keys.Replica(id), r)
}

// quiet ends the lease of an instance, and lets the grace of the leader's beginning pass.
func (w *world) quiet(id string) {
	delete(w.agents, id)
	w.drop(w.keys.Alive(id))
}

// proves PROV-10, SAFE-8: an operator's word ends a record only where no coordinator could see its
// machine for orphan_grace, its lease has ended, and no load balancer has it
func TestTheEndOfAMachineWithoutAProvider(t *testing.T) {
	const grace = 11 * time.Minute // orphan_grace, and a little more
	for name, c := range map[string]struct {
		phase          store.Phase
		provider, site string
		world          func(w *world)
		want           string // its phase after three plans, or why the order is refused
		waits          bool   // the order is still there
	}{
		"no coordinator has it": {
			store.Deleting, "old", "", func(w *world) { w.quiet("x"); w.pass(grace) }, "", false,
		},
		"not deleted before": {
			store.Running, "old", "", func(w *world) { w.quiet("x"); w.pass(grace) }, "", false,
		},
		"a coordinator has it": {
			store.Deleting, "old", "",
			func(w *world) { w.replica("r", map[string]string{"old": ""}); w.quiet("x"); w.pass(grace) },
			"its word decides", false,
		},
		"the leader has it": {
			store.Deleting, cloud, "", func(w *world) { w.quiet("x"); w.pass(grace) }, "its word decides", false,
		},
		"at another site": {
			store.Deleting, "old", "berlin",
			func(w *world) { w.replica("r", map[string]string{"old": "madrid"}); w.quiet("x"); w.pass(grace) },
			"", false,
		},
		"at its site": {
			store.Deleting, "old", "berlin",
			func(w *world) { w.replica("r", map[string]string{"old": "berlin"}); w.quiet("x"); w.pass(grace) },
			"its word decides", false,
		},
		"a replica does not say": {
			store.Deleting, "old", "", func(w *world) {
				w.put(w.keys.Replica("r"), store.Replica{Schema: store.Schema, ID: "r", Providers: []string{"new"}})
				w.quiet("x")
				w.pass(grace)
			}, "its word decides", false,
		},
		"a replica cannot be read": {
			store.Deleting, "old", "", func(w *world) {
				w.write(store.Put(w.keys.Replica("r"), []byte("{")))
				w.quiet("x")
				w.pass(grace)
			}, "its word decides", false,
		},
		"for a moment only": {
			store.Deleting, "old", "", func(w *world) { w.quiet("x"); w.pass(2 * time.Minute) }, "deleting", true,
		},
		"a coordinator had it until now": {
			store.Deleting, "old", "", func(w *world) {
				w.replica("r", map[string]string{"old": ""})
				w.quiet("x")
				w.pass(grace)
				w.drop(w.keys.Replica("r"))
				w.pass(5 * time.Minute)
			}, "deleting", true,
		},
		"a coordinator had it long ago": {
			store.Deleting, "old", "", func(w *world) {
				w.replica("r", map[string]string{"old": ""})
				w.quiet("x")
				w.drop(w.keys.Replica("r"))
				w.pass(grace)
			}, "", false,
		},
		"a coordinator whose record could not be read had it until now": {
			store.Deleting, "old", "", func(w *world) {
				w.replica("r", map[string]string{"old": ""})
				w.quiet("x")
				w.write(store.Put(w.keys.Replica("r"), []byte("{")))
				w.leaderChange()
				w.pass(grace)
				w.drop(w.keys.Replica("r"))
				w.pass(5 * time.Minute)
			}, "deleting", true,
		},
		"a coordinator that did not say it had it until now": {
			store.Deleting, "old", "berlin", func(w *world) {
				w.put(w.keys.Replica("r"), store.Replica{Schema: store.Schema, ID: "r", Providers: []string{"old"}})
				w.quiet("x")
				w.pass(grace)
				w.drop(w.keys.Replica("r"))
				w.pass(5 * time.Minute)
			}, "deleting", true,
		},
		"a coordinator that could not be read is gone for long": {
			store.Deleting, "old", "", func(w *world) {
				w.write(store.Put(w.keys.Replica("r"), []byte("{")))
				w.quiet("x")
				w.pass(grace)
				w.drop(w.keys.Replica("r"))
				w.pass(grace)
			}, "", false,
		},
		"its agent reports": {
			store.Running, "old", "", func(w *world) { w.pass(grace) }, "the machine is there", false,
		},
		"its lease has not ended": {
			store.Running, "old", "", func(w *world) { w.pass(grace); w.silence("x", true) }, "running", true,
		},
		"on hold": {
			store.Deleting, "old", "", func(w *world) {
				w.quiet("x")
				w.pass(grace)
				w.editShard(func(s *store.Shard) { s.Hold = &store.Hold{By: "ann"} })
			}, "deleting", true,
		},
		"in a group that is paused": {
			store.Running, "old", "", func(w *world) {
				w.edit(func(g *store.Group) { g.Paused = true })
				w.quiet("x")
				w.pass(grace)
			}, "running", true,
		},
		"a new leader begins": {
			store.Deleting, "old", "", func(w *world) { w.quiet("x"); w.pass(grace); w.leaderChange() }, "deleting", true,
		},
		"nothing was ever made": {
			store.Deleting, "old", "", func(w *world) {
				w.change("x", func(r *store.Instance) { r.Called = false })
				w.quiet("x")
			}, "its word decides", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size = 0 })
			w.step() // counts the group's records
			w.place("x", -1, c.phase, func(r *store.Instance) { r.Managed = false }, ofProvider(c.provider, c.site))
			c.world(w)
			w.order(store.RequestGone, "x")
			refused := ""
			for range 3 {
				_, done := w.step()
				for _, a := range done {
					if a.Kind == store.EntryRefusal {
						refused = a.Why
					}
				}
			}
			pending := read[store.Request](w, w.keys.Request("r")).Present()
			phase := string(w.instance("x").Record.Phase)
			if refused != "" {
				phase = ""
			}
			if got := refused + phase; !strings.Contains(got, c.want) || got != "" && c.want == "" || pending != c.waits {
				t.Errorf("%q, pending %t; want %q, %t", got, pending, c.want, c.waits)
			}
		})
	}
}

// proves PROV-10: status says what keeps such a record, what ends it, and from when on
func TestAMachineWithoutAProviderIsAProblem(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 0 })
	w.step()
	w.place("x", -1, store.Deleting, func(r *store.Instance) { r.Managed = false }, ofProvider("old", "berlin"))
	w.quiet("x")
	blocked := func() store.Blocked {
		t.Helper()
		w.step()
		found := read[store.Status](w, w.keys.Status(w.group)).Record.Blocked
		if len(found) != 1 || found[0].Instance != "x" || found[0].Kind != store.BlockedByUnconfigured {
			t.Fatalf("blocked: %+v", found)
		}
		return found[0]
	}
	b := blocked()
	if b.Rule != "PROV-10" || b.What != "removal of the record of x" ||
		b.Why != "no running coordinator is configured with provider old at site berlin: its machine can neither be "+
			"seen nor be removed" ||
		b.Until != "one is, or an operator says that the machine is gone, which counts from 2026-01-01T00:10:00Z on" ||
		b.Command != "leasehold instance delete --gone x" {
		t.Errorf("%+v", b)
	}
	w.pass(10 * time.Minute)
	if b = blocked(); b.Until != "one is, or an operator says that the machine is gone" {
		t.Errorf("after orphan_grace: %+v", b)
	}
	w.replica("r", map[string]string{"old": "berlin"})
	w.step()
	if found := read[store.Status](w, w.keys.Status(w.group)).Record.Blocked; slices.ContainsFunc(found,
		func(b store.Blocked) bool { return b.Kind == store.BlockedByUnconfigured }) {
		t.Errorf("a coordinator has it again: %+v", found)
	}
}

// The order waits for its load balancers, and what it rests on is compared.
//
// proves PROV-10, LB-1, SAFE-4
func TestAMachineWithoutAProviderLeavesItsBalancers(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 0 })
	w.step()
	w.put(w.keys.Replica("r"), store.Replica{Schema: store.Schema, ID: "r", Balancers: []string{"lb"}})
	w.place("x", -1, store.Running, func(r *store.Instance) {
		r.Managed = false
		r.Traffic = []store.Traffic{
			{Balancer: "lb", Address: "192.0.2.1", Port: 80, State: store.TrafficServing, Since: w.now},
		}
	}, ofProvider("old", ""))
	w.quiet("x")
	w.pass(11 * time.Minute)
	w.order(store.RequestGone, "x")
	var ended []Action
	steps := func() (phase store.Phase) {
		for range 3 {
			w.pass(time.Minute)
			_, done := w.step()
			for _, a := range done {
				if a.Instance == "x" && a.Rule == "PROV-10" {
					ended = append(ended, a)
				}
			}
		}
		return w.instance("x").Record.Phase
	}
	if phase := steps(); phase != store.Deleting || w.instance("x").Record.Traffic[0].State != store.TrafficLeaving {
		t.Fatalf("it is %s: %+v", phase, w.instance("x").Record.Traffic)
	}
	w.put(w.keys.Replica("r"), store.Replica{Schema: store.Schema, ID: "r"}) // the balancer is gone
	if phase := steps(); phase != "" || len(ended) != 2 {
		t.Fatalf("it is %q, by %+v", phase, ended)
	}
	for _, a := range ended {
		for _, key := range []string{w.keys.Alive("x"), w.keys.Replica("r"), w.keys.Request("r"), w.keys.Shard()} {
			w.compares(&a, key)
		}
		if a.Cause.Kind != store.CauseVouchedGone || a.Cause.By != "ann" || a.Cause.Name != "old" || a.Cause.For == 0 ||
			!slices.ContainsFunc(a.Facts, func(f store.Fact) bool { return f.Kind == store.FactUnconfigured }) {
			t.Errorf("%+v %+v", a.Cause, a.Facts)
		}
	}
	if !strings.HasPrefix(ended[1].Why, "operator ann says that its machine is gone, and for 1") ||
		!strings.HasSuffix(ended[1].Why, " no coordinator has been configured with provider old") {
		t.Errorf("why: %s", ended[1].Why)
	}
}
