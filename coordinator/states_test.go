//go:build !race || nightly

// What is decided here takes many days of virtual time. The race detector sees it at night alone;
// scripts/test.sh plays it without it by day.

package coordinator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// refusals are the reasons for which orders were refused.
func (w *world) refusals() []string {
	w.t.Helper()
	var why []string
	for _, e := range w.story() {
		if strings.HasSuffix(e.What, "refused") {
			why = append(why, e.Why)
		}
	}
	return why
}

// A group that was applied without a start makes nothing until it is started; one that is stopped
// keeps its size and nothing else.
//
// proves REC-11
func TestGroupIsStartedAndStopped(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.setEveryone(mood{hook: 10 * time.Second})
		g := w.group("web", 3)
		g.Unstarted = true
		g.Drain.Hook = []string{"leave"}
		w.apply(g)
		state := func(want store.GroupState) func() bool {
			return func() bool { return w.status("web").State == want }
		}
		w.until(time.Second, "it is ready", state(store.GroupReady))
		w.always(10*time.Minute, "nothing is made", func() bool { return w.made() == 0 })
		w.edit("web", func(g *store.Group) { g.Unstarted = false })
		w.up(3)
		w.until(time.Second, "it is started", state(store.GroupStarted))
		w.edit("web", func(g *store.Group) { g.Stopped = true })
		w.until(5*time.Second, "all drain", func() bool { return w.phases(store.Draining) == 3 })
		w.until(time.Minute, "all are gone",
			func() bool { return len(w.instances()) == 0 && len(w.provider.Existing()) == 0 })
		w.always(10*time.Minute, "it stays so",
			func() bool { return w.made() == 3 && w.status("web").State == store.GroupStopped })
		if g := w.status("web").Accepted; g == nil || g.Size != 3 {
			t.Errorf("its size was not kept: %+v", g)
		}
		w.edit("web", func(g *store.Group) { g.Stopped = false })
		w.up(3)
	})
}

// A task that ends well is finished and not replaced; one that does not is done again.
//
// proves REC-12
func TestTasksFinish(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.group("web", 3)
		g.Lifecycle = store.LifecycleTask
		g.Workload.Run = []string{"count"}
		w.apply(g)
		ids := w.up(3)
		well, badly := 0, 1
		w.setMood(ids[0], mood{done: &well})
		w.setMood(ids[1], mood{done: &badly})
		w.until(time.Minute, "the one that failed is replaced", func() bool {
			return !slices.Contains(w.ids(), ids[1]) && w.phases(store.Running) == 2 && w.phases(store.Finished) == 1
		})
		if st := w.status("web"); st.State != store.GroupStarted || w.made() != 4 {
			t.Errorf("state %s, %d machines were made", st.State, w.made())
		}
		w.setEveryone(mood{done: &well})
		w.until(time.Minute, "the group is finished",
			func() bool { return w.status("web").State == store.GroupFinished })
		made := w.made()
		w.always(10*time.Minute, "nothing is made any more",
			func() bool { return w.made() == made && w.phases(store.Finished) == 3 })
		w.deleteGroup(w.edit("web", func(*store.Group) {}))
	})
}

// An instance on demand is made by an order, not counted or healed, and removed by an order or by
// its age.
//
// proves REC-2
func TestInstancesOnDemand(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.group("web", 2)
		g.OnDemandAge = store.Duration(time.Hour)
		w.apply(g)
		ids := w.up(2)
		w.request("r1", store.Request{Kind: store.RequestCreate, Group: "web"})
		once := store.OnceID("ann", "k1")
		w.request(once, store.Request{Kind: store.RequestCreate, Group: "web"})
		w.until(time.Minute, "they run", func() bool { return w.settled(4) })
		if _, err := w.store.Get(t.Context(), w.keys.Gone(w.keys.Request(once))); err != nil {
			t.Errorf("the note of an order that may be repeated: %v", err)
		}
		extra := slices.DeleteFunc(w.ids(), func(id string) bool { return slices.Contains(ids, id) })
		if st := w.status("web"); st.Healthy != 2 || st.Health != 100 {
			t.Errorf("they are counted: %+v", st)
		}
		w.order("r3", store.RequestDelete, extra[0])
		w.until(time.Minute, "it is removed", func() bool { return w.settled(3) })
		w.provider.Crash(extra[1], "exit 1")
		w.always(30*time.Minute, "the other is not healed", func() bool { return w.made() == 4 && len(w.ids()) == 3 })
		w.until(time.Hour, "it is removed for its age",
			func() bool { return w.settled(2) && slices.Equal(w.ids(), ids) })
		if r := w.refusals(); len(r) > 0 {
			t.Errorf("refused: %q", r)
		}
	})
}

// What is protected is not chosen for scale-down, expiry or a roll; only protected from healing is
// it not healed.
//
// proves REC-13
// proves HEAL-9
func TestProtectedInstances(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.serving(3))
		ids := w.up(3)
		protect := func(order, id, mode string) {
			w.request(order, store.Request{Kind: store.RequestProtect, Instance: id, Mode: mode})
			w.until(time.Second, "it is carried out", func() bool { return len(w.list(w.keys.Request(order))) == 0 })
		}
		protect("r1", ids[0], store.ProtectRemoval)
		protect("r2", ids[1], store.ProtectHeal)
		w.edit("web", func(g *store.Group) {
			g.Size, g.Template.Settings = 2, map[string]any{"image": "2"}
			age := store.Duration(time.Hour)
			g.Expiry.ForcedAge = &age
		})
		w.until(time.Minute, "the third goes", func() bool { return w.settled(2) })
		w.provider.Crash(ids[1], "exit 1")
		w.always(2*time.Hour, "both are left alone",
			func() bool { return slices.Equal(w.ids(), ids[:2]) && w.made() == 3 })
		protect("r3", ids[1], store.ProtectOff)
		w.until(time.Minute, "it is healed", func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[1]) })
		w.provider.Crash(ids[0], "exit 1")
		w.until(time.Minute, "the other is healed too",
			func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[0]) })
	})
}

// A machine without a record is taken into its group by order: into a slot that is missing, else on
// demand.
//
// proves REC-8
// proves REC-16
func TestExtraMachineIsAdopted(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.editShard(func(*store.Shard) {})
		for _, id := range []string{"old-1", "old-2"} {
			w.setMood(id, mood{mute: true})
		}
		w.extra("old-1", "web")
		w.start("one")
		w.leads(time.Second, "one")
		w.pass(20 * time.Second)
		g := w.group("web", 1)
		g.Paused = true // so that the slot is missing when the order comes
		w.apply(g)
		w.pass(5 * time.Second)
		w.request("r1", store.Request{Kind: store.RequestAdopt, Instance: "unknown"})
		w.request("r2", store.Request{Kind: store.RequestAdopt, Instance: "old-1"})
		w.until(time.Minute, "it is adopted", func() bool { return len(w.ids()) == 1 })
		if in := w.instance("old-1"); !in.Managed || in.Slot != 0 {
			t.Errorf("adopted as %+v", in)
		}
		if r := w.refusals(); len(r) != 1 || !strings.Contains(r[0], "no machine of this name") {
			t.Errorf("refused: %q", r)
		}
		w.setMood("old-1", mood{})
		w.until(2*time.Minute, "it runs", func() bool { return w.settled(1) })
		w.always(20*time.Minute, "it stays", func() bool { return slices.Equal(w.ids(), []string{"old-1"}) })
		w.edit("web", func(g *store.Group) { g.Paused = false })
		w.until(5*time.Minute, "a roll replaces it, since what it was made from is unknown", func() bool {
			return w.settled(1) && !slices.Contains(w.ids(), "old-1")
		})
		w.extra("old-2", "web")
		w.pass(20 * time.Second)
		w.request("r3", store.Request{Kind: store.RequestAdopt, Instance: "old-2"})
		w.until(time.Minute, "another is adopted on demand, since no slot is missing",
			func() bool { return w.instance("old-2").Slot == -1 && len(w.ids()) == 2 })
	})
}

// More machines without a record than mistakes explain put the shard on hold by itself: rather the
// records are old.
//
// proves SAFE-12
func TestTooManyExtrasPutTheShardOnHold(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.editShard(func(*store.Shard) {})
		for _, id := range []string{"old-1", "old-2", "old-3"} {
			w.setMood(id, mood{mute: true})
			w.extra(id, "web")
			w.gone(id, "web")
		}
		w.start("one")
		w.apply(w.group("web", 2))
		ids := w.up(2)
		held := func() *store.Hold {
			s, err := store.Decode[store.Shard](w.list(w.keys.Shard())[0])
			if err != nil {
				t.Fatal(err)
			}
			return s.Record.Hold
		}
		w.until(time.Minute, "it is on hold", func() bool { return held() != nil })
		if h := held(); h.By != "leasehold" || !strings.Contains(h.Why, "3 machines") {
			t.Errorf("hold %+v", h)
		}
		w.provider.Crash(ids[0], "exit 1")
		w.always(time.Hour, "nothing is made or removed",
			func() bool { return len(w.provider.Existing()) == 5 && w.made() == 5 })
		for _, id := range []string{"old-1", "old-2"} {
			w.provider.Vanish(id)
		}
		w.pass(10 * time.Second) // and a List has shown it
		w.editShard(func(s *store.Shard) { s.Hold = nil })
		w.until(15*time.Minute, "it goes on, and the one extra is removed",
			func() bool { return w.settled(2) && len(w.provider.Existing()) == 2 })
	})
}

// An evacuated zone is emptied, the replacements first and elsewhere, and no failure is counted;
// returned, it may be used again.
//
// proves DRAIN-3
// proves REC-3
func TestZoneIsEvacuatedAndReturned(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.setEveryone(mood{hook: 5 * time.Second})
		g := w.group("web", 4)
		g.Drain.Hook = []string{"leave"}
		w.apply(g)
		w.up(4)
		in := func(zone string) (n int) {
			for _, i := range w.instances() {
				if i.Record.Zone == zone {
					n++
				}
			}
			return n
		}
		if in("a") != 2 || in("b") != 2 {
			t.Fatalf("%d in a, %d in b", in("a"), in("b"))
		}
		w.request("r1", store.Request{Kind: store.RequestEvacuate, Zone: "a"})
		least := 4
		w.until(5*time.Minute, "the zone is empty",
			func() bool { least = min(least, w.working()); return w.settled(4) && in("a") == 0 })
		if least < 4 || w.made() != 6 {
			t.Errorf("%d at work at least, %d machines were made", least, w.made())
		}
		for _, s := range records[store.Slot](w, store.KindSlots) {
			if len(s.Record.Failures) > 0 {
				t.Errorf("a failure is counted: %+v", s.Record)
			}
		}
		w.request("r2", store.Request{Kind: store.RequestEvacuate, Zone: "a"})
		w.request("r3", store.Request{Kind: store.RequestReturn, Zone: "a"})
		w.until(time.Second, "both are answered",
			func() bool { return len(w.list(w.keys.Of(store.KindRequests))) == 0 })
		if r := w.refusals(); len(r) != 1 || !strings.Contains(r[0], "already") {
			t.Errorf("refused: %q", r)
		}
		w.edit("web", func(g *store.Group) { g.Size = 6 })
		w.up(6)
		if in("a") != 2 {
			t.Errorf("%d in the zone that was returned", in("a"))
		}
	})
}

// A machine whose agent says that it must be emptied is replaced first, and then goes.
//
// proves DRAIN-3
// proves DET-8
func TestAgentSaysThatItsMachineMustBeEmptied(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.group("web", 2))
		ids := w.up(2)
		w.setMood(ids[0], mood{leaves: true})
		w.until(2*time.Minute, "it is replaced",
			func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[0]) })
		order := []string{}
		for _, e := range w.story() {
			switch {
			case e.Instance == ids[0] && (e.What == "doomed" || e.To == store.Deleting):
				order = append(order, e.What)
			case !slices.Contains(ids, e.Instance) && e.To == store.Running:
				order = append(order, "replacement runs")
			}
		}
		if !slices.Equal(order, []string{"doomed", "replacement runs", "deleting"}) || w.made() != 3 {
			t.Errorf("it went in this order: %q; %d machines were made", order, w.made())
		}
		for _, s := range records[store.Slot](w, store.KindSlots) {
			if len(s.Record.Failures) > 0 {
				t.Errorf("a failure is counted: %+v", s.Record)
			}
		}
	})
}

// A notice has the replacement made and the instance drained at once, both, until the notice's
// deadline.
//
// proves SPOT-2
func TestNoticeReplacesAndDrainsAtOnce(t *testing.T) {
	config := quick
	config.Boot = 20 * time.Second // longer than anything waits
	inWorld(t, config, func(w *world) {
		w.start("one")
		g := w.draining(2, 5*time.Minute)
		w.apply(g)
		ids := w.up(2)
		w.setMood(ids[0], mood{notice: true, in: 90 * time.Second})
		since := time.Now()
		w.until(2*time.Second, "both have begun", func() bool {
			return w.instance(ids[0]).Phase == store.Draining &&
				slices.ContainsFunc(w.instances(),
					func(i store.Versioned[store.Instance]) bool { return i.Record.Replaces == ids[0] })
		})
		if took := w.removed(ids[0], since); took < 85*time.Second || took > 95*time.Second {
			t.Errorf("removed after %s, and the notice gave 90s", took)
		}
		w.until(time.Minute, "two run", func() bool { return w.settled(2) })
		if w.made() != 3 {
			t.Errorf("%d machines were made", w.made())
		}
	})
}
