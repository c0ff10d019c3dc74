package evidence_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// What another replica suffers, its end, the end of a hold, and an interrupted watch each begin a
// time in which no instance is judged lost. What is no news begins none.
//
// proves SAFE-1, SAFE-11, SAFE-12
func TestWhatBeginsGrace(t *testing.T) {
	w := newWorld(t)
	w.run("web", "web-0")
	replica := func(disturbances int, last *store.Disturbance) store.Replica {
		return store.Replica{Schema: store.Schema, ID: "r", Disturbances: disturbances, Last: last}
	}
	slow := &store.Disturbance{What: "etcd was slow"}
	w.put(keys.Replica("r"), replica(3, slow))
	shard := store.Shard{Schema: store.Schema, ID: "s", Settings: store.DefaultShardSettings()}
	held := shard
	held.Hold = &store.Hold{By: "ops"}
	w.lead()
	if s := w.evidence.Snapshot(w.content, nil); s.GraceWhy != "a new leader began" ||
		!w.evidence.GraceEnd().Equal(s.GraceEnd) {
		t.Errorf("at the beginning there is grace until %s, %q", s.GraceEnd, s.GraceWhy)
	}
	for _, c := range []struct {
		what string
		do   func()
		want string // why there is grace; "" if there is none
	}{
		{"nothing happens", func() {}, ""},
		{"the replica says the same", func() { w.put(keys.Replica("r"), replica(3, slow)) }, ""},
		{"the replica had one more", func() { w.put(keys.Replica("r"), replica(4, slow)) }, "replica r: etcd was slow"},
		{"which it says again", func() { w.put(keys.Replica("r"), replica(4, slow)) }, ""},
		{"it has one more and does not say which", func() { w.put(keys.Replica("r"), replica(5, nil)) }, ""},
		{"it started over", func() { w.put(keys.Replica("r"), replica(0, nil)) }, ""},
		{"its first one", func() { w.put(keys.Replica("r"), replica(1, slow)) }, "replica r: etcd was slow"},
		{"it vanishes", func() { w.remove(keys.Replica("r")) }, "replica r vanished"},
		{"it is back with one", func() { w.put(keys.Replica("r"), replica(1, slow)) }, "replica r: etcd was slow"},
		{"a hold begins", func() { w.put(keys.Shard(), held) }, ""},
		{"a hold goes on", func() { w.put(keys.Shard(), held) }, ""},
		{"a hold is released", func() { w.put(keys.Shard(), shard) }, "the shard's hold was released"},
		{"nothing was held", func() { w.put(keys.Shard(), shard) }, ""},
		{"all is listed again", func() { w.evidence.Listed(w.content) }, "the watch was interrupted"},
		{"a leader is disturbed", func() { w.evidence.Disturb("a replica stood still") }, "a replica stood still"},
	} {
		w.pass(time.Hour)
		c.do()
		s := w.evidence.Snapshot(w.content, nil)
		if grace := s.GraceEnd.After(w.now); grace != (c.want != "") || grace && s.GraceWhy != c.want {
			t.Errorf("%s: grace %t because of %q, want %q", c.what, grace, s.GraceWhy, c.want)
		}
	}
	w.remove(keys.Replica("r"))
	w.pass(time.Hour)
	w.put(keys.Replica("r"), replica(0, nil)) // it is new, so that nothing vanishes
	if s := w.evidence.Snapshot(w.content, nil); s.GraceEnd.After(w.now) {
		t.Errorf("a replica that comes begins grace: %q", s.GraceWhy)
	}
}

// Grace allows for agents that may be trying to return: agents of machines that are there. In other
// phases there is none.
//
// proves SAFE-1
func TestGraceIsForAgentsThatMayReturn(t *testing.T) {
	for _, phase := range store.Phases {
		w := newWorld(t)
		rec := w.run("web", "web-0")
		rec.Phase = phase
		w.put(keys.Instance("web-0"), rec)
		w.lead()
		want := phase.Registered() || phase == store.Booting
		if got := !w.evidence.GraceEnd().IsZero(); got != want {
			t.Errorf("%s: there is grace: %t, want %t", phase, got, want)
		}
	}
}

// A change of an alive key that says anything but open has the provider asked about the machine; so
// does the key's end.
//
// proves DET-3
func TestWhatIsSuspicious(t *testing.T) {
	for state, want := range map[store.StreamState]bool{
		store.StreamOpen: false, store.StreamOverdue: true, store.StreamLost: true, store.StreamLeft: true,
		store.StreamMoved: true,
	} {
		w := newWorld(t)
		w.run("web", "web-0")
		w.lead()
		w.put(keys.Alive("web-0"), store.Alive{Schema: store.Schema, Instance: "web-0", BootID: "other", State: state})
		if got := slices.Equal(w.suspects, []string{"mem"}); got != want {
			t.Errorf("%s: suspected are the machines of %q", state, w.suspects)
		}
	}
	w := newWorld(t)
	w.run("web", "web-0")
	w.lead()
	w.report("web-0", "boot", false)
	if len(w.suspects) != 0 {
		t.Errorf("a report has %q suspected", w.suspects)
	}
	w.remove(keys.Alive("web-0"))
	if in := w.instance("web", "web-0"); !slices.Equal(w.suspects, []string{"mem"}) || !in.AliveGone.Equal(w.now) ||
		in.LastState != store.StreamOpen {
		t.Errorf("its alive key goes: suspected are %q, gone since %s, last it said %q", w.suspects, in.AliveGone,
			in.LastState)
	}
}

// A change that says what was there already is none.
func TestChangesThatSayTheSame(t *testing.T) {
	w := newWorld(t)
	w.put(keys.Group("web"), spec("web"))
	w.lead()
	w.takeAll()
	w.evidence.Changed(w.content, []cache.Change{{Kind: store.KindGroups, Name: "web", Group: "web", Same: true}})
	if got := w.takeAll(); len(got) != 0 {
		t.Errorf("planned are %q", got)
	}
}

// A timer in a record that a new leader finds has run since it was begun, by wall clocks: what
// remains is waited for, no less than nothing and no more than the whole. One that begins under our
// eyes runs for the whole. Without a leader only the progress of a roll and the doubt in a template
// stand still.
//
// proves SAFE-13, ROLL-5, FLAP-6
func TestTimersFoundByANewLeader(t *testing.T) {
	timer := func(ago time.Duration) *store.Timer {
		return &store.Timer{Start: epoch.Add(-ago), For: store.Duration(10 * time.Minute)}
	}
	for _, c := range []struct {
		ago             time.Duration
		retry, progress time.Duration // what remains
	}{
		{0, 10 * time.Minute, 10 * time.Minute},
		{time.Minute, 9 * time.Minute, 10 * time.Minute}, // no leader in the last three minutes
		{3 * time.Minute, 7 * time.Minute, 10 * time.Minute},
		{4 * time.Minute, 6 * time.Minute, 9 * time.Minute},
		{time.Hour, 0, 0},
		{-time.Hour, 10 * time.Minute, 10 * time.Minute}, // the wall clock was wrong
	} {
		w := newWorld(t)
		w.put(keys.Group("web"), spec("web"))
		w.put(keys.Served(), store.Served{Schema: store.Schema, At: epoch.Add(-3 * time.Minute)})
		w.put(keys.Slot("web", 0), store.Slot{Schema: store.Schema, Retry: timer(c.ago)})
		w.put(keys.Status("web"), store.Status{
			Schema: store.Schema, Group: "web",
			Rollout: &store.Rollout{Stalls: timer(c.ago)},
			Breaker: &store.Breaker{Doubt: timer(c.ago), NextProbe: timer(c.ago)},
		})
		w.lead()
		g := w.group("web")
		if got := g.SlotDue[0][store.TimerRetry].Sub(w.now); got != c.retry {
			t.Errorf("begun %s ago: the slot waits for %s, want %s", c.ago, got, c.retry)
		}
		if got := g.Due[store.TimerProgress].Sub(w.now); got != c.progress {
			t.Errorf("begun %s ago: the roll has %s left, want %s", c.ago, got, c.progress)
		}
		// without a leader nothing was seen that could have ended the doubt, so that time does not count
		if got := g.Due[store.TimerBlame].Sub(w.now); got != c.progress {
			t.Errorf("begun %s ago: the template is doubted for another %s, want %s", c.ago, got, c.progress)
		}
		if got := g.Due[store.TimerBreaker].Sub(w.now); got != c.retry {
			t.Errorf("begun %s ago: the breaker's next probe comes in %s, want %s", c.ago, got, c.retry)
		}
		w.put(keys.Slot("web", 0), store.Slot{Schema: store.Schema, Retry: timer(c.ago + time.Second)})
		if got := w.group("web").SlotDue[0][store.TimerRetry].Sub(w.now); got != 10*time.Minute {
			t.Errorf("another timer runs for %s, want 10m", got)
		}
		w.put(keys.Slot("web", 0), store.Slot{Schema: store.Schema})
		if got := w.group("web").SlotDue; len(got) != 0 {
			t.Errorf("the timer is gone from the record, and ends are noted: %v", got)
		}
	}
}

// The times without a leader are recorded for the next leader: the last 25 hours, 100 at most, and
// the one before us.
//
// proves SAFE-13
func TestGapsForTheNextLeader(t *testing.T) {
	gap := func(ended time.Duration) store.Gap {
		return store.Gap{From: epoch.Add(-ended - time.Minute), To: epoch.Add(-ended)}
	}
	many := slices.Repeat([]store.Gap{gap(time.Hour)}, 100)
	for _, c := range []struct {
		name   string
		served store.Served
		want   []store.Gap
	}{
		{
			"one before us",
			store.Served{At: epoch.Add(-time.Minute)},
			[]store.Gap{{From: epoch.Add(-time.Minute), To: epoch}},
		},
		{"none before us", store.Served{At: epoch}, nil},
		{"a clock that was wrong", store.Served{At: epoch.Add(time.Minute)}, nil},
		{
			"earlier ones",
			store.Served{At: epoch, Gaps: []store.Gap{
				gap(26 * time.Hour), gap(25 * time.Hour), gap(25*time.Hour - 1),
				gap(0),
			}},
			[]store.Gap{gap(25*time.Hour - 1), gap(0)},
		},
		{
			"too many",
			store.Served{At: epoch.Add(-time.Minute), Gaps: many},
			append(slices.Clone(many[1:]), store.Gap{From: epoch.Add(-time.Minute), To: epoch}),
		},
	} {
		w := newWorld(t)
		c.served.Schema = store.Schema
		w.put(keys.Served(), c.served)
		w.lead()
		if got := w.evidence.ServedGaps(); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
