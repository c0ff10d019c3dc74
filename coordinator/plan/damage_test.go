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

// The notes of an earlier group of the same name go with the first status: a later loss of the
// records is no deletion on purpose.
//
// proves SAFE-15, REC-8
func TestAGroupsFirstStatusForgetsAnEarlierGroup(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 1 })
	statuses := 0
	for range 20 {
		_, done := w.step()
		for _, a := range done {
			status := w.keys.Status(a.Group)
			if !slices.ContainsFunc(a.Writes, func(op store.Write) bool { return op.Key == status }) {
				continue
			}
			statuses++
			for _, key := range []string{w.keys.Group(a.Group), w.keys.Static(a.Group), status} {
				forgets := slices.ContainsFunc(a.Writes,
					func(op store.Write) bool { return op.Delete && op.Key == w.keys.Gone(key) })
				if forgets != (statuses == 1) {
					t.Errorf("status %d forgets the note about %s: %v", statuses, key, forgets)
				}
			}
		}
		w.pass(time.Second)
	}
	if statuses < 2 {
		t.Errorf("%d statuses were written: the test tried nothing", statuses)
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
