package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// proves SAFE-10, REC-7
func TestAccept(t *testing.T) {
	spec := func(size int) store.Group { g := store.DefaultGroup(); g.Size = size; return g }
	accepted := spec(2)
	for _, c := range []struct {
		name    string
		spec    Spec
		status  *store.Status
		inForce int // the size in force; -1: none
		at      store.Revision
		invalid string
	}{
		{"right", Spec{Modified: 9, Group: spec(5)}, nil, 5, 9, ""},
		{
			"right, another before",
			Spec{Modified: 9, Group: spec(5)},
			&store.Status{Accepted: &accepted, AcceptedRevision: 4}, 5, 9, "",
		},
		{
			"wrong, another before",
			Spec{Modified: 9, Group: spec(5), Problem: "size: -1"},
			&store.Status{Accepted: &accepted, AcceptedRevision: 4}, 2, 4, "size: -1",
		},
		{"wrong from the start", Spec{Modified: 9, Problem: "not JSON"}, nil, -1, 0, "not JSON"},
		{
			"vanished",
			Spec{},
			&store.Status{Accepted: &accepted, AcceptedRevision: 4}, 2, 4,
			"the key is missing; a group is deleted with: leasehold group delete web",
		},
		{"vanished, never accepted", Spec{}, &store.Status{}, -1, 0, ""},
		{"never was", Spec{}, nil, -1, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := Group{Name: "web", Spec: c.spec}
			if c.status != nil {
				g.Status.Record, g.Status.Modified = *c.status, 7
			}
			d := newDraft(&Snapshot{}, &g, epoch)
			d.accept()
			size, why := -1, ""
			if d.spec != nil {
				size = d.spec.Size
			}
			if d.invalid != nil {
				why = d.invalid.Why
			}
			if size != c.inForce || d.acceptedRevision != c.at || why != c.invalid {
				t.Errorf("in force: size %d of revision %d, invalid %q", size, d.acceptedRevision, why)
			}
		})
	}
}

// proves REC-16
func TestOrders(t *testing.T) {
	for _, c := range []struct {
		name, instance string
		kind           store.RequestKind
		want           string
	}{
		{"replace", "a", store.RequestReplace, "ordered to be replaced"},
		{"delete", "a", store.RequestDelete, "ordered to be deleted"},
		{"delete what was to be replaced", "replaced", store.RequestDelete, "ordered to be deleted"},
		{
			"replace what was to be replaced", "replaced", store.RequestReplace,
			"order to replace refused: it was ordered before, by ada",
		},
		{
			"replace what was to be deleted", "deleted", store.RequestReplace,
			"order to replace refused: it was ordered before, by ada",
		},
		{"of a later version", "a", "teleport", `order to teleport refused: this version knows no order "teleport"`},
		{
			"on one that is being deleted", "going", store.RequestDelete,
			"order to delete refused: it is being deleted already",
		},
		{
			"on one that is unknown", "unknown", store.RequestDelete,
			"order to delete refused: there is no such group or instance",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size, g.Paused = 4, true })
			w.place("a", 0, store.Running)
			w.place("replaced", 1, store.Running, condemned(false))
			w.place("deleted", 2, store.Running, condemned(true))
			w.place("going", 3, store.Deleting)
			key := w.keys.Request("r")
			w.put(key, store.Request{
				Schema: store.Schema, ID: "r", Kind: c.kind, Instance: c.instance, By: "bob",
				At: w.now,
			})
			var got string
			for _, a := range Compute(w.snapshot(), w.now).Actions {
				if !slices.Contains(deleted(a), key) {
					continue
				}
				w.compares(&a, key)
				got += a.What()
				if strings.Contains(a.What(), "refused") {
					got += ": " + a.Why
				}
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A record goes when its machine is proved to be gone, and not before.
//
// proves SAFE-8
func TestRecordOutlivesItsMachine(t *testing.T) {
	now := epoch.Add(time.Hour)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	gone := Sighting{Begun: ago(time.Second), Times: 1}
	for _, c := range []struct {
		name     string
		called   bool
		calls    Calls
		sighting Sighting
		goes     bool
		removes  bool // another removal is asked for
	}{
		{"never asked for", false, Calls{}, Sighting{}, true, false},
		{"never asked for, a call is under way", false, Calls{Busy: true}, Sighting{}, false, false},
		{"not removed yet", true, Calls{}, gone, false, true},
		{"removed, no list since", true, Calls{Deleted: ago(0)}, gone, false, false},
		{"removed, list begun at that moment", true, Calls{Deleted: ago(time.Second)}, gone, false, false},
		{"removed, list begun later", true, Calls{Deleted: ago(2 * time.Second)}, gone, true, false},
		{"removed, no list at all", true, Calls{Deleted: ago(2 * time.Second)}, Sighting{}, false, false},
		{
			"removed, a late call may still make it", true,
			Calls{Deleted: ago(2 * time.Second), AbsentFrom: now},
			gone,
			false, false,
		},
		{
			"removed, no late call can make it", true,
			Calls{Deleted: ago(2 * time.Second), AbsentFrom: ago(time.Second)},
			gone, true, false,
		},
		{
			"removed, listed again", true,
			Calls{Deleted: ago(2 * time.Second)},
			Sighting{Begun: ago(time.Second), Listed: true, Times: 1},
			false, true,
		},
		{
			"removed, listed, a late call may come yet", true,
			Calls{Deleted: ago(2 * time.Second), AbsentFrom: now},
			Sighting{Begun: ago(time.Second), Listed: true, Times: 1},
			false, false,
		},
		{
			"removed, listed as late as any call may come", true,
			Calls{Deleted: ago(2 * time.Second), AbsentFrom: ago(time.Second)},
			Sighting{Begun: ago(time.Second), Listed: true, Times: 1},
			false, true,
		},
		{"removal failed, wait", true, Calls{RetryAt: now.Add(time.Second)}, gone, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size = 0 })
			w.place("a", 0, store.Deleting, func(r *store.Instance) { r.Called = c.called })
			s := w.snapshot()
			s.Groups[0].Instances[0].Calls, s.Groups[0].Instances[0].Sighting = c.calls, c.sighting
			p := Compute(s, now)
			goes := slices.ContainsFunc(p.Actions,
				func(a Action) bool { return slices.Contains(deleted(a), w.keys.Instance("a")) })
			for _, a := range p.Actions {
				if keys := deleted(a); goes && a.Instance == "a" && !slices.Equal(keys, []string{
					w.keys.Instance("a"), w.keys.Alive("a"), w.keys.Report("a"), w.keys.Joined("a"),
				}) {
					t.Errorf("with the record go %q", keys)
				}
			}
			if goes != c.goes || len(p.Calls) > 0 != c.removes {
				t.Errorf("record goes: %t, calls %+v", goes, p.Calls)
			}
		})
	}
}

func deleted(a Action) (keys []string) {
	for _, op := range a.Writes {
		if op.Delete {
			keys = append(keys, op.Key)
		}
	}
	return keys
}

// proves SAFE-3, SAFE-12, REC-13
func TestCalls(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
	}{
		{"replacements, growth, removals", func(*world) {}, "create b, create a, create c, remove d"},
		{"paused", func(w *world) { w.edit(func(g *store.Group) { g.Paused = true }) }, ""},
		{"restarted in its place", func(w *world) {
			w.place("a", 0, store.Stopping,
				func(r *store.Instance) {
					r.Restart = &store.Restart{Level: store.RestartMachine, Token: "t", Heals: true}
				})
		}, "restart a, create b, create c, remove d"},
		{"a roll's restart", func(w *world) {
			w.place("a", 0, store.Stopping,
				func(r *store.Instance) { r.Restart = &store.Restart{Level: store.RestartMachine, Token: "t"} })
		}, "create b, restart a, create c, remove d"},
		{"on hold", func(w *world) { w.editShard(func(s *store.Shard) { s.Hold = &store.Hold{By: "ada"} }) }, ""},
		{"stale", func(w *world) { w.stale = "the watch is behind" }, ""},
		{
			"one is under way", func(w *world) { w.see("a", func(in *Instance) { in.Calls.Busy = true }) },
			"create b, create c, remove d",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size = 4 })
			w.place("z", 1, store.Running)
			w.turn("z", false)
			w.place("a", 0, store.Pending)
			w.place("b", 1, store.Pending, replaces("z"))
			w.place("c", 2, store.Creating)
			w.place("d", 3, store.Deleting)
			w.place("e", 4, store.Deleting, func(r *store.Instance) { r.Called = false })
			c.change(w)
			calls := Compute(w.snapshot(), w.now).Calls
			slices.SortStableFunc(calls, func(a, b Call) int { return a.Rank - b.Rank })
			var got []string
			for _, call := range calls {
				got = append(got, string(call.Kind)+" "+call.Instance)
				if !slices.Contains(call.Conditions, w.instance(call.Instance).Unchanged()) {
					t.Errorf("call for %s does not compare its record", call.Instance)
				}
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("calls %v, want %s", got, c.want)
			}
		})
	}
}

// A creation keeps its turn when it is repeated: the record says what it is for, whatever was
// decided about it since.
//
// proves REC-9
func TestCallsOfOneKindAreInTheOrderOfTheirPurpose(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 12 })
	w.place("old", 0, store.Running)
	purposes := []store.Purpose{
		store.PurposeSize, store.PurposeRoll, store.PurposeAge, store.PurposeZones, store.PurposeShares,
		store.PurposeEvacuate, store.PurposeOrder, store.PurposeNotice, store.PurposeHeal,
	}
	want := map[string]int{}
	for i, p := range purposes {
		id := string(p)
		w.place(id, i+1, store.Creating, replaces("old"), func(r *store.Instance) {
			r.Purpose = p
			r.Last = store.Decision{Rule: "SAFE-8", Why: "provider is asked again"}
		})
		want[id] = 1
	}
	w.place("ordered", -1, store.Pending, func(r *store.Instance) { r.Purpose = store.PurposeOrder })
	want["heal"], want["notice"], want["size"], want["ordered"] = 0, 0, 2, 2
	got := map[string]int{}
	for _, c := range Compute(w.snapshot(), w.now).Calls {
		got[c.Instance] = c.Rank
	}
	if !maps.Equal(got, want) {
		t.Errorf("ranks %v, want %v", got, want)
	}
}

// proves FLAP-1, FLAP-2, DAY-6
func TestFlapping(t *testing.T) {
	at := func(ago ...time.Duration) (out []store.Failure) {
		for _, d := range ago {
			out = append(out, store.Failure{At: epoch.Add(-d)})
		}
		return out
	}
	for _, c := range []struct {
		name     string
		slot     store.Slot
		counted  bool
		drilled  bool
		failures int
		wait     time.Duration // 0: none
	}{
		{"first", store.Slot{}, false, false, 1, 0},
		{"second", store.Slot{Failures: at(time.Minute)}, false, false, 2, 0},
		{"third within the window", store.Slot{Failures: at(4*time.Minute, time.Minute)}, false, false, 3, 30 * time.Second},
		{"third, the first too long ago", store.Slot{Failures: at(5*time.Minute, time.Minute)}, false, false, 3, 0},
		{"counted already", store.Slot{Failures: at(4*time.Minute, time.Minute)}, true, false, 2, 0},
		{"in a drill", store.Slot{Failures: at(4*time.Minute, time.Minute)}, false, true, 2, 0},
		{"flaps since long", store.Slot{Failures: at(time.Hour), Flapping: 1}, false, false, 2, time.Minute},
		{"flaps for the fifth time", store.Slot{Failures: at(time.Hour), Flapping: 5}, false, false, 2, 16 * time.Minute},
		{
			"flaps for the hundredth time",
			store.Slot{Failures: at(time.Hour), Flapping: 100},
			false, false, 2,
			16 * time.Minute,
		},
		{"dated in the future by a wrong clock", store.Slot{Failures: at(-time.Hour, -time.Hour)}, false, false, 3, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size = 1 })
			c.slot.Schema, c.slot.Group = store.Schema, w.group
			w.put(w.keys.Slot(w.group, 0), c.slot)
			w.place("a", 0, store.Running, func(r *store.Instance) {
				if r.Counted = c.counted; c.drilled {
					r.Drill = &store.Drill{Request: "r", By: "ada", At: w.now, Kind: store.DrillWorkload, Asked: true}
				}
			})
			w.turn("a", false)
			w.step()
			rec := read[store.Slot](w, w.keys.Slot(w.group, 0)).Record
			var wait time.Duration
			if rec.Retry != nil {
				wait = rec.Retry.For.D()
			}
			if len(rec.Failures) != c.failures || wait != c.wait {
				t.Errorf("%d failures, waits %s; want %d and %s", len(rec.Failures), wait, c.failures, c.wait)
			}
			if made := len(w.instances()) == 2; made != (c.wait == 0) {
				t.Errorf("replacement made: %t", made)
			}
		})
	}
}

// proves FLAP-4
func TestFailuresAreForgotten(t *testing.T) {
	for _, c := range []struct {
		name           string
		runsFor, since time.Duration // since the last failure
		forgotten      bool
	}{
		{"healthy for long enough", 5 * time.Minute, 5 * time.Minute, true},
		{"not running for long enough", 5*time.Minute - 1, time.Hour, false},
		{"failed and recovered without a new instance", time.Hour, time.Minute, false},
		{"a failure from the future does not count", time.Hour, -time.Hour, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size = 1 })
			w.put(w.keys.Slot(w.group, 0), store.Slot{
				Schema: store.Schema, Group: w.group, Flapping: 4, Failures: []store.Failure{{At: w.now.Add(-c.since)}},
				Retry: &store.Timer{Start: w.now.Add(-time.Hour), For: store.Duration(time.Minute)},
			})
			w.place("a", 0, store.Running)
			w.see("a", func(in *Instance) { in.PhaseStart = w.now.Add(-c.runsFor) })
			w.step()
			rec := read[store.Slot](w, w.keys.Slot(w.group, 0)).Record
			if forgotten := len(rec.Failures) == 0 && rec.Flapping == 0 && rec.Retry == nil; forgotten != c.forgotten {
				t.Errorf("slot %+v", rec)
			}
		})
	}
}

// proves REC-3
func TestZonesAreFilledEvenly(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size, g.Template.Zones = 9, []string{"c", "a", "b"} })
	w.step()
	used := map[string]int{}
	for _, v := range w.instances() {
		used[v.Record.Zone]++
	}
	if used["a"] != 3 || used["b"] != 3 || used["c"] != 3 {
		t.Errorf("zones %v", used)
	}
	w.full[cloud] = map[string]time.Time{"b": w.now.Add(time.Second), "a": w.now}
	w.edit(func(g *store.Group) { g.Size = 13 })
	w.step()
	if n := len(w.instances()); n != 13 {
		t.Errorf("%d instances", n)
	}
	used = map[string]int{}
	for _, v := range w.instances() {
		used[v.Record.Zone]++
	}
	if used["a"] != 5 || used["b"] != 3 || used["c"] != 5 {
		t.Errorf("zone b has no room, zones %v", used)
	}
}
