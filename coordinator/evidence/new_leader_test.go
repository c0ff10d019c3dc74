package evidence_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// What a new leader finds of an instance: an abandoned Create may be under way, a restart keeps its
// time, and what says nothing of its time began now.
//
// proves SAFE-8, ELECT-3
func TestWhatANewLeaderFinds(t *testing.T) {
	w := newWorld(t)
	rec := w.run("web", "web-0")
	rec.Phase, rec.Called, rec.Zone = store.Creating, true, "a"
	w.put(keys.Instance("web-0"), rec)
	restarting := w.run("web", "web-1")
	restarting.Restart, restarting.Created = &store.Restart{Token: "first"}, time.Time{}
	w.put(keys.Instance("web-1"), restarting)
	w.lead()
	in := w.instance("web", "web-0")
	if want := w.now.Add(time.Minute + time.Second); !in.Calls.AbsentFrom.Equal(want) {
		t.Errorf("its absence counts in Lists from %s, want %s", in.Calls.AbsentFrom, want)
	}
	if !in.StreamSince.Equal(w.now) {
		t.Errorf("its stream is open since %s, want %s", in.StreamSince, w.now)
	}
	w.evidence.Created(rec, w.now, provider.Machine{}, provider.ErrCapacity)
	if w.instance("web", "web-0").Calls.NoRoom {
		t.Error("it may be moved to another zone, and the call of the leader before may have made it")
	}
	if in := w.instance("web", "web-1"); !in.Born.Equal(in.PhaseStart) || !in.PhaseStart.Equal(epoch.Add(-time.Hour)) {
		t.Errorf("a record that says not when it was made: born %s, its phase since %s", in.Born, in.PhaseStart)
	}
	w.pass(time.Minute)
	w.put(keys.Instance("web-1"), restarting)
	if got := w.instance("web", "web-1").PhaseStart; !got.Equal(epoch.Add(-time.Hour)) {
		t.Errorf("the same restart began its phase again: %s", got)
	}
	w.run("web", "web-2") // not there when we began: nothing of it was called by another leader
	if in := w.instance("web", "web-2"); !in.Calls.AbsentFrom.IsZero() || !in.PhaseStart.Equal(w.now) {
		t.Errorf("absence counts from %s, its phase began at %s", in.Calls.AbsentFrom, in.PhaseStart)
	}
	restarting.Restart = nil
	w.put(keys.Instance("web-1"), restarting)
	if got := w.instance("web", "web-1").PhaseStart; !got.Equal(epoch.Add(-time.Hour)) {
		t.Errorf("the restart is over, and its phase started over: %s", got)
	}
}

// Another boot has to be healthy for its own time.
//
// proves ROLL-3, DET-18
func TestAnotherBootIsHealthySinceItsOwnReport(t *testing.T) {
	w := newWorld(t)
	w.run("web", "web-0")
	w.lead()
	w.pass(time.Minute)
	w.put(keys.Report("web-0"), store.Report{Schema: store.Schema, Instance: "web-0", BootID: "next", Healthy: true})
	w.pass(time.Minute)
	w.put(keys.Alive("web-0"), store.Alive{
		Schema: store.Schema, Instance: "web-0", BootID: "next",
		State: store.StreamOpen,
	})
	if got := w.instance("web", "web-0").HealthySince; !got.Equal(w.now) {
		t.Errorf("healthy since %s, want %s", got, w.now)
	}
}

// What happened unseen to a boot began now.
//
// proves ROLL-3, DET-18
func TestABootThatCameUnseenIsHealthySinceNow(t *testing.T) {
	w := newWorld(t)
	w.run("web", "web-0")
	w.lead()
	w.pass(time.Minute)
	alive, report := w.content.Alive["web-0"], w.content.Reports["web-0"]
	alive.Record.BootID, report.Record.BootID = "next", "next"
	w.content.Alive["web-0"], w.content.Reports["web-0"] = alive, report
	w.relist()
	if got := w.instance("web", "web-0").HealthySince; !got.Equal(w.now) {
		t.Errorf("healthy since %s, want %s", got, w.now)
	}
}

// A stream is in its state for as long as its gateway says, by the wall clock; one whose clock is
// ahead, since now.
//
// proves SAFE-13
func TestStreamsThatANewLeaderFinds(t *testing.T) {
	for since, want := range map[time.Duration]time.Duration{-time.Minute: -time.Minute, 0: 0, time.Minute: 0} {
		w := newWorld(t)
		w.run("web", "web-0")
		w.put(keys.Alive("web-0"), store.Alive{
			Schema: store.Schema, Instance: "web-0", BootID: "boot",
			State: store.StreamOpen, Since: w.now.Add(since),
		})
		w.lead()
		if got := w.instance("web", "web-0").StreamSince.Sub(w.now); got != want {
			t.Errorf("open since %s, want %s", got, want)
		}
	}
}

// Of machines that run, Lists say the same whatever boot they tell of, and why one runs is no part
// of how it is.
//
// proves DET-4
func TestWhatListsSayOfMachinesThatRun(t *testing.T) {
	w := newWorld(t)
	w.run("web", "web-0")
	w.lead()
	for i, boot := range []string{"one", "two"} {
		w.pass(time.Minute)
		w.evidence.ListedBy("mem", w.now,
			[]provider.Machine{{Instance: "web-0", State: provider.StateRunning, Why: "it was asked to", BootID: boot}},
			w.content)
		if got := w.instance("web", "web-0").Sighting; got.Times != i+1 || got.State != string(provider.StateRunning) {
			t.Errorf("List %d says %+v", i+1, got)
		}
	}
}

// A List that misses a machine whose agent has an open stream is wrong: what else it misses is not
// surely absent.
//
// proves DET-4, SAFE-8
func TestAbsenceThatIsSure(t *testing.T) {
	poll := store.DefaultShardSettings().ProviderPoll.D()
	for name, test := range map[string]struct {
		other func(w *world) // what is so of another instance, which is never listed
		sure  int
	}{
		"there is no other":          {func(w *world) { w.remove(keys.Instance("web-1")) }, 3},
		"the other's stream is open": {func(*world) {}, 0},
		"the other's stream is lost": {func(w *world) {
			w.put(keys.Alive("web-1"), store.Alive{Schema: store.Schema, State: store.StreamLost})
		}, 3},
		"the other has no session": {func(w *world) { w.remove(keys.Alive("web-1")) }, 3},
		"the other is being deleted": {func(w *world) {
			rec := w.content.Instances["web-1"].Record
			rec.Phase = store.Deleting
			w.put(keys.Instance("web-1"), rec)
		}, 3},
		"the other is another provider's": {func(w *world) {
			rec := w.content.Instances["web-1"].Record
			rec.Spec.Provider = "else"
			w.put(keys.Instance("web-1"), rec)
		}, 3},
	} {
		w := newWorld(t)
		rec := w.run("web", "web-0")
		rec.Phase = store.Deleting
		w.put(keys.Instance("web-0"), rec)
		w.run("web", "web-1")
		w.lead()
		test.other(w)
		for range 3 {
			w.list()
			w.pass(poll)
		}
		if got := w.instance("web", "web-0").Sighting; got.Sure != test.sure || got.Times != 3 {
			t.Errorf("%s: it is surely absent by %d of %d Lists, want %d", name, got.Sure, got.Times, test.sure)
		}
		w.list("web-0", "web")
		if got := w.instance("web", "web-0").Sighting.Sure; got != 0 {
			t.Errorf("%s: it is listed, and surely absent by %d Lists", name, got)
		}
		w.list()
		w.pass(time.Second) // asked again so soon, it is the same answer
		w.list()
		if got := w.instance("web", "web-0").Sighting.Sure; got != min(1, test.sure) {
			t.Errorf("%s: it is absent again, surely by %d Lists", name, got)
		}
	}
	w := newWorld(t)
	rec := w.run("web", "web-0")
	w.run("web", "web-1")
	rec.Phase = store.Deleting
	w.put(keys.Instance("web-0"), rec)
	w.lead()
	for i, want := range []int{0, 1, 2} { // the first misses the other as well
		if i == 0 {
			w.list()
		} else {
			w.list("web-1", "web")
		}
		w.pass(poll)
		if got := w.instance("web", "web-0").Sighting.Sure; got != want {
			t.Errorf("List %d: surely absent by %d, want %d", i+1, got, want)
		}
	}
}
