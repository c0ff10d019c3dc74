package evidence_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// relist has the watch interrupted, and all keys listed again but those that are left out.
func (w *world) relist(without ...string) {
	var kvs []store.KV
	take := func(key string, rec any, rev store.Revision) {
		if rev != 0 && !slices.Contains(without, key) {
			kvs = append(kvs, store.KV{Key: key, Value: store.Encode(rec), Created: rev, Modified: rev})
		}
	}
	c := w.content
	take(keys.Shard(), c.Shard.Record, c.Shard.Modified)
	for id, v := range c.Instances {
		take(keys.Instance(id), v.Record, v.Modified)
	}
	for id, v := range c.Alive {
		take(keys.Alive(id), v.Record, v.Modified)
	}
	for id, v := range c.Reports {
		take(keys.Report(id), v.Record, v.Modified)
	}
	for group, slots := range c.Slots {
		for n, v := range slots {
			take(keys.Slot(group, n), v.Record, v.Modified)
		}
	}
	for group, v := range c.Status {
		take(keys.Status(group), v.Record, v.Modified)
	}
	w.content = cache.FromListing(keys, store.Listing{Revision: c.Revision, KVs: kvs})
	w.evidence.Listed(w.content)
}

// A session that ended while the watch was interrupted ended now, and the last value of its key is
// unknown at last: it may have been open.
//
// proves SAFE-3, DET-17
func TestWhatHappenedUnseen(t *testing.T) {
	w := newWorld(t)
	w.run("web", "web-0")
	w.lead()
	w.put(keys.Alive("web-0"), store.Alive{
		Schema: store.Schema, Instance: "web-0", BootID: "boot",
		State: store.StreamLost,
	})
	w.put(keys.Alive("web-0"), store.Alive{
		Schema: store.Schema, Instance: "web-0", BootID: "boot",
		State: store.StreamOpen,
	})
	w.pass(time.Minute)
	w.relist(keys.Alive("web-0"))
	if in := w.instance("web", "web-0"); in.LastState != "" || !in.AliveGone.Equal(w.now) || in.Alive.Present() {
		t.Errorf("its key said %q at last, and is gone since %s", in.LastState, in.AliveGone)
	}
	w.pass(time.Minute)
	w.relist()
	if in := w.instance("web", "web-0"); !in.AliveGone.Equal(w.now.Add(-time.Minute)) {
		t.Errorf("listed once more, it is gone since %s", in.AliveGone)
	}
}

// Of an instance whose record has gone nothing is remembered, also when it went unseen. One whose
// record cannot be read is remembered: calls for it may be under way.
//
// proves SAFE-8, SAFE-16
func TestWhoIsForgotten(t *testing.T) {
	for name, test := range map[string]struct {
		do        func(w *world)
		forgotten bool
	}{
		"its record is removed":          {func(w *world) { w.remove(keys.Instance("web-0")) }, true},
		"its record is removed unseen":   {func(w *world) { w.relist(keys.Instance("web-0")) }, true},
		"its record is torn":             {func(w *world) { w.spoil(keys.Instance("web-0")) }, false},
		"all is listed, and it is there": {func(w *world) { w.relist() }, false},
		"its session ends":               {func(w *world) { w.remove(keys.Alive("web-0")) }, false},
		"its record is torn and then removed": {func(w *world) {
			w.spoil(keys.Instance("web-0"))
			w.remove(keys.Instance("web-0"))
		}, true},
	} {
		w := newWorld(t)
		rec := w.run("web", "web-0")
		rec.Drain = &store.Drain{Token: "t", Timer: store.Timer{Start: w.now, For: store.Duration(time.Hour)}}
		w.put(keys.Instance("web-0"), rec)
		w.lead()
		w.evidence.Restarted("web-0", "token", nil)
		w.pass(time.Minute)
		test.do(w)
		w.put(keys.Instance("web-0"), rec)
		in := w.instance("web", "web-0")
		if got := in.Calls.Restarted == ""; got != test.forgotten {
			t.Errorf("%s: how its calls went is forgotten: %t", name, got)
		}
		want := epoch.Add(time.Hour)
		if test.forgotten {
			want = w.now.Add(time.Hour)
		}
		if got := in.Due[store.TimerDrain]; !got.Equal(want) {
			t.Errorf("%s: its drain ends at %s, want %s", name, got, want)
		}
	}
}

// Timers of slots and groups whose records were removed are forgotten as well, and so are those
// that a record does not have any more.
//
// proves SAFE-13
func TestTimersThatAreForgotten(t *testing.T) {
	timer := store.Timer{Start: epoch, For: store.Duration(time.Hour)}
	slot := store.Slot{Schema: store.Schema, Group: "web", GiveUp: &timer}
	status := store.Status{Schema: store.Schema, Group: "web", Storm: &store.Storm{Calm: &timer}}
	records := map[string]struct {
		with, without any
		due           func(g plan.Group) time.Time
	}{
		keys.Slot("web", 0): {
			slot,
			store.Slot{Schema: store.Schema, Group: "web"},
			func(g plan.Group) time.Time { return g.SlotDue[0][store.TimerGiveUp] },
		},
		keys.Status("web"): {
			status,
			store.Status{Schema: store.Schema, Group: "web"},
			func(g plan.Group) time.Time { return g.Due[store.TimerStorm] },
		},
	}
	for key, r := range records {
		for name, test := range map[string]struct {
			do        func(w *world)
			forgotten bool
		}{
			"all is listed, and it is there": {func(w *world) { w.relist() }, false},
			"it was removed unseen":          {func(w *world) { w.relist(key) }, true},
			"it had no timer":                {func(w *world) { w.put(key, r.without) }, true},
		} {
			w := newWorld(t)
			w.run("web", "web-0")
			w.put(key, r.with)
			w.lead()
			w.pass(time.Minute)
			test.do(w)
			if test.forgotten {
				if got := r.due(w.group("web")); !got.IsZero() {
					t.Errorf("%s, %s: it ends at %s", key, name, got)
				}
			}
			w.put(key, r.with)
			want := epoch.Add(time.Hour)
			if test.forgotten {
				want = w.now.Add(time.Hour)
			}
			if got := r.due(w.group("web")); !got.Equal(want) {
				t.Errorf("%s, %s: it ends at %s, want %s", key, name, got, want)
			}
		}
	}
}

// A removal that a provider throttled was not tried: it did not fail.
//
// proves REC-9, SAFE-8
func TestAThrottledRemovalDidNotFail(t *testing.T) {
	w := newWorld(t)
	w.run("web", "web-0")
	w.lead()
	w.evidence.Removed("web-0", provider.ThrottledFor(time.Second))
	if calls := w.instance("web", "web-0").Calls; !calls.RemovalFailed.IsZero() || calls.Problem == "" {
		t.Errorf("known of its calls: %+v", calls)
	}
	w.evidence.Removed("web-0", errors.New("no"))
	if calls := w.instance("web", "web-0").Calls; !calls.RemovalFailed.Equal(w.now) {
		t.Errorf("known of its calls: %+v", calls)
	}
}

// A term that begins on a held shard has time for agents to return when the hold is released. So
// has one that sees the hold released in a fresh listing.
//
// proves SAFE-12, SAFE-1
func TestReleaseOfAHoldThatWasThereBefore(t *testing.T) {
	for _, seen := range []bool{true, false} {
		w := newWorld(t)
		w.run("web", "web-0")
		shard := store.Shard{
			Schema: store.Schema, ID: "s", Settings: store.DefaultShardSettings(),
			Hold: &store.Hold{By: "ops"},
		}
		w.put(keys.Shard(), shard)
		w.lead()
		w.pass(time.Hour)
		shard.Hold = nil
		if seen {
			w.put(keys.Shard(), shard)
		} else {
			w.content.Shard.Record = shard
			w.evidence.Listed(w.content)
		}
		if s := w.evidence.Snapshot(w.content, nil); !s.GraceEnd.After(w.now) ||
			s.GraceWhy != "the shard's hold was released" {
			t.Errorf("grace until %s, because of %q", s.GraceEnd, s.GraceWhy)
		}
	}
}

// The term is woken by whatever it hears: the cache's revision may be what a group waits for.
//
// proves REC-1
func TestWhatWakes(t *testing.T) {
	w := newWorld(t)
	w.run("web", "web-0")
	w.lead()
	for name, do := range map[string]func(){
		"a listing":         func() { w.evidence.Listed(w.content) },
		"an interruption":   func() { w.evidence.Interrupted(errors.New("no")) },
		"changes":           func() { w.evidence.Changed(w.content, nil) },
		"a List":            func() { w.list() },
		"the end of a call": func() { w.evidence.Dropped("web-0") },
	} {
		before := w.woken
		if do(); w.woken != before+1 {
			t.Errorf("%s wakes %d times", name, w.woken-before)
		}
	}
}

// A snapshot has what concerns the shard as a whole.
func TestSnapshotHasWhatConcernsTheShard(t *testing.T) {
	w := newWorld(t)
	w.put(keys.Group("web"), spec("web"))
	w.run("web", "web-0")
	turn := w.event(store.Event{KV: store.KV{Key: keys.Turn("web"), Value: []byte(`{"schema":1}`)}})
	w.lead()
	s := w.evidence.Snapshot(w.content, []string{"web"})
	if s.Keys != keys || s.Revision != w.content.Revision || s.Seed != 7 || s.Shard.Record.ID != "s" ||
		s.SessionTTL != 5*time.Second || s.Recorded != 1 || s.ShardUnreadable {
		t.Errorf("the snapshot is %+v", s)
	}
	if !slices.Equal(s.Zones["mem"], []string{"a", "b"}) || s.Groups[0].Turn != turn {
		t.Errorf("zones are %v, the group's turn %d", s.Zones, s.Groups[0].Turn)
	}
	w.spoil(keys.Shard())
	if s := w.evidence.Snapshot(w.content, nil); !s.ShardUnreadable {
		t.Error("the shard's record cannot be read, and the snapshot does not say so")
	}
}

// A status that is lost or cannot be read is what it said last, and is written back; one that a
// newer program wrote, or of which nothing is known, stops its group.
//
// proves SAFE-16, SAFE-10
func TestAStatusThatIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		do       func(w *world)
		restored bool
		stops    bool
	}{
		"it is well": {func(*world) {}, false, false},
		"it is torn": {func(w *world) { w.spoil(keys.Status("web")) }, true, false},
		"a newer program wrote it": {func(w *world) {
			w.event(store.Event{KV: store.KV{Key: keys.Status("web"), Value: []byte(`{"schema": 99}`)}})
		}, false, true},
		"it was deleted": {func(w *world) { w.remove(keys.Status("web")) }, true, false},
		"it was deleted on purpose": {func(w *world) {
			w.put(keys.Gone(keys.Status("web")), store.Gone{Schema: store.Schema, Group: "web"})
			w.remove(keys.Status("web"))
		}, false, false},
		"another group's is torn":      {func(w *world) { w.spoil(keys.Status("db")) }, false, false},
		"a slot is torn":               {func(w *world) { w.spoil(keys.Slot("web", 3)) }, false, true},
		"an instance is torn":          {func(w *world) { w.spoil(keys.Instance("web-0-bbbbbb")) }, false, false},
		"another group's slot is torn": {func(w *world) { w.spoil(keys.Slot("db", 3)) }, false, false},
	} {
		w := newWorld(t)
		w.recorded(2, "web-0-bbbbbb", "web-1-bbbbbb")
		rev := w.content.Status["web"].Modified
		w.lead()
		test.do(w)
		g := w.group("web")
		if (g.StatusSpoiled != "") != test.restored || (g.Unreadable != "") != test.stops ||
			g.Status.Key != keys.Status("web") {
			t.Errorf("%s: restored %q, unreadable %q, its key %q", name, g.StatusSpoiled, g.Unreadable, g.Status.Key)
		}
		if test.restored && (g.Status.Record.Records == nil || *g.Status.Record.Records != 2) {
			t.Errorf("%s: it is %+v", name, g.Status.Record)
		}
		switch name {
		case "it is well":
			if g.Status.Modified != rev {
				t.Errorf("its revision is %d", g.Status.Modified)
			}
		case "it is torn":
			if g.Status.Modified != w.content.Revision {
				t.Errorf("what is to be written over has revision %d, want %d", g.Status.Modified, w.content.Revision)
			}
		case "it was deleted":
			if g.Status.Modified != 0 {
				t.Errorf("what is to be written has revision %d", g.Status.Modified)
			}
		}
	}
	w := newWorld(t)
	w.recorded(1, "web-0-bbbbbb")
	delete(w.content.Status, "web")
	w.spoil(keys.Status("web"))
	w.lead()
	if g := w.group("web"); g.Unreadable == "" || g.StatusSpoiled != "" {
		t.Errorf("nothing is known of it: restored %q, unreadable %q", g.StatusSpoiled, g.Unreadable)
	}
}

// What cannot be read of an instance is compared at the revision that it has, and is known to be
// torn since it was seen. Its own record hides it.
//
// proves SAFE-16, SAFE-4
func TestAnInstanceOfWhichSomethingCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.recorded(2, "web-0-bbbbbb", "web-1-bbbbbb")
	w.lead()
	w.group("web")
	w.remove(keys.Alive("web-0-bbbbbb"))
	w.pass(time.Minute)
	alive, report := w.spoil(keys.Alive("web-0-bbbbbb")), w.spoil(keys.Report("web-0-bbbbbb"))
	torn := w.now
	w.pass(time.Minute)
	w.report("web-1-bbbbbb", "boot", false)
	in := w.instance("web", "web-0-bbbbbb")
	if in.AliveUnreadable == "" || !in.AliveSpoiled.Equal(torn) || in.Alive.Modified != alive ||
		in.Report.Modified != report || in.Alive.Record.State != "" || !in.AliveGone.IsZero() {
		t.Errorf("shown is %+v", in)
	}
	w.spoil(keys.Alive("web-0-bbbbbb")) // once more
	if in := w.instance("web", "web-0-bbbbbb"); !in.AliveSpoiled.Equal(torn) {
		t.Errorf("it is torn since %s, want %s", in.AliveSpoiled, torn)
	}
	w.put(keys.Alive("web-0-bbbbbb"),
		store.Alive{Schema: store.Schema, Instance: "web-0-bbbbbb", BootID: "boot", State: store.StreamOpen})
	w.report("web-0-bbbbbb", "boot", true)
	if in := w.instance("web", "web-0-bbbbbb"); in.AliveUnreadable != "" || in.Alive.Record.State != store.StreamOpen ||
		in.Report.Modified != w.content.Revision {
		t.Errorf("all can be read again, and shown is %+v", in)
	}
	w.pass(time.Minute)
	w.spoil(keys.Alive("web-0-bbbbbb"))
	if in := w.instance("web", "web-0-bbbbbb"); !in.AliveSpoiled.Equal(w.now) || in.Alive.Record.State != "" {
		t.Errorf("it is torn again since %s in state %q, want %s and no state", in.AliveSpoiled, in.Alive.Record.State, w.now)
	}
	w.spoil(keys.Instance("web-0-bbbbbb"))
	if g := w.group("web"); len(g.Instances) != 1 || g.Instances[0].Record.ID != "web-1-bbbbbb" {
		t.Errorf("shown are %+v", g.Instances)
	}
}

// An instance whose record alone cannot be read is left out of its group, and its calls stay under
// way: a second one would make a second machine.
//
// proves SAFE-8, SAFE-16
func TestCallsOfAnInstanceThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.recorded(2, "web-0-bbbbbb", "web-1-bbbbbb")
	w.lead()
	if !w.evidence.MarkBusy("web-0-bbbbbb") {
		t.Fatal("its calls are under way already")
	}
	rec := w.content.Instances["web-0-bbbbbb"].Record
	key := keys.Instance("web-0-bbbbbb")
	var changes []cache.Change // one revision after the other, heard of together
	for _, e := range []store.Event{
		{KV: store.KV{Key: key}, Deleted: true},
		{KV: store.KV{Key: key, Value: []byte("garbage")}},
	} {
		w.content.Revision++
		e.KV.Created, e.KV.Modified = w.content.Revision, w.content.Revision
		change, _ := w.content.Apply(keys, e)
		changes = append(changes, change)
	}
	w.evidence.Changed(w.content, changes)
	if g := w.group("web"); len(g.Instances) != 1 || g.Instances[0].Record.ID != "web-1-bbbbbb" {
		t.Errorf("shown are %+v", g.Instances)
	}
	w.put(key, rec)
	if w.evidence.MarkBusy("web-0-bbbbbb") || !w.instance("web", "web-0-bbbbbb").Calls.Busy {
		t.Error("another call may begin beside the one that is under way")
	}
}

// The deadline of a doomed instance is shown though it does not drain.
//
// proves SPOT-2
func TestDeadlineOfADoomedInstance(t *testing.T) {
	w := newWorld(t)
	w.recorded(1, "web-0-bbbbbb")
	w.lead()
	rec := w.content.Instances["web-0-bbbbbb"].Record
	rec.Doomed = &store.Doom{Deadline: &store.Timer{Start: w.now, For: store.Duration(time.Minute)}}
	w.put(keys.Instance("web-0-bbbbbb"), rec)
	if due := w.instance("web", "web-0-bbbbbb").Due; !due[store.TimerDoomed].Equal(w.now.Add(time.Minute)) {
		t.Errorf("due is %v, want the deadline in a minute", due)
	}
}

// One unreadable record is enough for an instance to be left out.
//
// proves SAFE-16
func TestTheOnlyUnreadableInstanceIsLeftOut(t *testing.T) {
	w := newWorld(t)
	w.recorded(2, "web-0-bbbbbb", "web-1-bbbbbb")
	w.lead()
	w.spoil(keys.Instance("web-1-bbbbbb"))
	if g := w.group("web"); len(g.Instances) != 1 || g.Instances[0].Record.ID != "web-0-bbbbbb" {
		t.Errorf("shown are %+v", g.Instances)
	}
}

// A snapshot of a group costs no more than what has changed since the last: no new places, and
// nothing put together again.
func TestASnapshotOfAnUnchangedGroupCostsLittle(t *testing.T) {
	w := newWorld(t)
	w.shard(2, 100)
	for i := range 100 {
		w.put(keys.Slot("g0000", i), store.Slot{Schema: store.Schema})
	}
	for id, v := range w.content.Instances {
		v.Record.Drain = &store.Drain{Timer: store.Timer{Start: w.now, For: store.Duration(time.Hour)}}
		w.put(keys.Instance(id), v.Record)
	}
	w.lead()
	groups := []string{"g0000"}
	w.evidence.Snapshot(w.content, groups)
	if cost := testing.AllocsPerRun(20, func() { w.evidence.Snapshot(w.content, groups) }); cost > 50 {
		t.Errorf("costs %.0f allocations", cost)
	}
}

// How many losses are counted where: a group with none any more counts nowhere, nor does one that
// is gone.
//
// proves SAFE-2
func TestLossesThatAreOver(t *testing.T) {
	w := newWorld(t)
	w.put(keys.Group("a"), spec("a"))
	w.lead()
	w.evidence.Tallied(map[string]plan.Tally{"a": {Lost: 1, Of: 4, Groups: 1}, "b": {Lost: 2, Of: 4, Groups: 1}})
	w.evidence.Tallied(map[string]plan.Tally{"b": {}})
	if got := w.evidence.Snapshot(w.content, nil).Elsewhere; got != (plan.Tally{Lost: 1, Of: 4, Groups: 1}) {
		t.Errorf("lost are %+v", got)
	}
	w.evidence.Tallied(map[string]plan.Tally{"b": {Lost: 3, Of: 4, Groups: 1}})
	w.evidence.Listed(w.content) // b is gone
	w.evidence.Listed(w.content)
	if got := w.evidence.Snapshot(w.content, nil).Elsewhere; got != (plan.Tally{Lost: 1, Of: 4, Groups: 1}) {
		t.Errorf("lost are %+v, though one group is gone", got)
	}
}
