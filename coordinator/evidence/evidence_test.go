package evidence_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

func TestHealthySince(t *testing.T) {
	w := newWorld(t)
	rec := w.run("web", "web-0")
	rec.ID, rec.Phase = "web-2", store.Checking
	w.run("web", "web-2")
	w.put(keys.Instance("web-2"), rec)
	w.lead()
	if got := w.instance("web", "web-2").HealthySince; !got.Equal(epoch) {
		t.Errorf("one that was being checked is healthy since %s", got)
	}
	since := func(want time.Time) {
		t.Helper()
		if got := w.instance("web", "web-0").HealthySince; !got.Equal(want) {
			t.Errorf("healthy since %s, want %s", got, want)
		}
	}
	since(epoch.Add(-time.Hour)) // it ran before our time
	w.pass(time.Minute)
	w.report("web-0", "boot", false)
	since(time.Time{})
	w.pass(time.Minute)
	w.report("web-0", "boot", true)
	again := w.now
	since(again)
	w.pass(time.Minute)
	w.evidence.Listed(w.content)
	w.put(keys.Alive("web-0"), store.Alive{Schema: store.Schema, BootID: "boot", State: store.StreamLost})
	since(again) // neither ends its health
	w.put(keys.Alive("web-0"), store.Alive{Schema: store.Schema, BootID: "next", State: store.StreamOpen})
	since(time.Time{}) // the report is of the boot before
	w.pass(time.Minute)
	w.report("web-0", "next", true)
	since(w.now)
	w.remove(keys.Alive("web-0"))
	since(time.Time{})
	w.run("web", "web-1")
	if got := w.instance("web", "web-1").HealthySince; !got.Equal(w.now) {
		t.Errorf("one that we first see now is healthy since %s", got)
	}
}

func TestStreamSince(t *testing.T) {
	w := newWorld(t)
	w.run("web", "web-0")
	stream := func(state store.StreamState) {
		w.put(keys.Alive("web-0"), store.Alive{
			Schema: store.Schema, BootID: "boot", State: state,
			Since: w.now.Add(-20 * time.Second),
		})
	}
	stream(store.StreamOpen)
	w.lead()
	since := func(want time.Time) {
		t.Helper()
		if got := w.instance("web", "web-0").StreamSince; !got.Equal(want) {
			t.Errorf("since %s, want %s", got, want)
		}
	}
	since(epoch.Add(-20 * time.Second)) // before our time
	w.pass(time.Minute)
	stream(store.StreamOpen)
	since(epoch.Add(-20 * time.Second))
	stream(store.StreamLost)
	lost := w.now
	since(lost)
	w.pass(time.Minute)
	w.evidence.Listed(w.content)
	since(lost)
	w.remove(keys.Alive("web-0"))
	since(time.Time{})
	w.pass(time.Minute)
	stream(store.StreamLost)
	since(w.now)
}

// proves DET-17: it is known since when an agent was not to be heard, also once its key has gone.
func TestSilentSince(t *testing.T) {
	w := newWorld(t)
	w.run("web", "web-0")
	w.lead()
	says := func(s store.StreamState) {
		w.put(keys.Alive("web-0"), store.Alive{Schema: store.Schema, Instance: "web-0", BootID: "boot", State: s})
		w.pass(time.Second)
	}
	for _, c := range []struct {
		what string
		do   func()
		want time.Duration // before now; 0: it can be heard
	}{
		{"open", func() {}, 0},
		{"overdue", func() { says(store.StreamOverdue) }, time.Second},
		{"then lost", func() { says(store.StreamLost) }, 2 * time.Second},
		{"gone", func() { w.remove(keys.Alive("web-0")); w.pass(time.Second) }, 3 * time.Second},
		{"back", func() { says(store.StreamOpen) }, 0},
		{"on its way", func() { says(store.StreamMoved) }, 0},
		{"left", func() { says(store.StreamLeft) }, time.Second},
	} {
		c.do()
		switch got := w.instance("web", "web-0").SilentSince; {
		case c.want == 0 && !got.IsZero():
			t.Errorf("%s: silent since %s before now", c.what, w.now.Sub(got))
		case c.want > 0 && w.now.Sub(got) != c.want:
			t.Errorf("%s: silent since %s before now, want %s", c.what, w.now.Sub(got), c.want)
		}
	}
}

// A record's age counts on our clock from when it was made; a clock that was ahead then makes it
// new.
//
// proves SAFE-13
func TestBorn(t *testing.T) {
	w := newWorld(t)
	rec := w.run("web", "web-0")
	ahead := rec
	ahead.ID, ahead.Created, ahead.Since = "web-1", w.now.Add(time.Hour), w.now.Add(time.Hour)
	w.put(keys.Instance("web-1"), ahead)
	w.lead()
	for range 2 {
		if a, b := w.instance("web", "web-0").Born,
			w.instance("web", "web-1").Born; !a.Equal(epoch.Add(-2*time.Hour)) || !b.Equal(epoch) {
			t.Errorf("born %s and %s", a, b)
		}
		w.pass(time.Minute)
		rec.Created, rec.Phase = w.now, store.Draining
		w.put(keys.Instance("web-0"), rec) // what was first seen stands
	}
}

// A new leader takes what remains of the timers in records, never more than their duration; those
// that begin in its time run in full. A roll's timer stands still without a leader.
//
// proves SAFE-13, FLAP-6
func TestTimersOfRecords(t *testing.T) {
	w := newWorld(t)
	begun := func(ago time.Duration) *store.Timer {
		return &store.Timer{Start: w.now.Add(-ago), For: store.Duration(10 * time.Minute)}
	}
	w.put(keys.Slot("web", 0), store.Slot{
		Schema: store.Schema, Retry: begun(4 * time.Minute),
		GiveUp: begun(time.Hour),
	})
	w.put(keys.Slot("web", 1), store.Slot{Schema: store.Schema, Retry: begun(-time.Hour)})
	w.put(keys.Slot("web", 2), store.Slot{Schema: store.Schema})
	w.put(keys.Served(), store.Served{Schema: store.Schema, At: w.now.Add(-3 * time.Minute)})
	status := store.Status{
		Schema: store.Schema, Group: "web", Storm: &store.Storm{Calm: begun(4 * time.Minute)},
		Rollout: &store.Rollout{Stalls: begun(4 * time.Minute)},
	}
	w.put(keys.Status("web"), status)
	rec := w.run("web", "web-0")
	rec.Drain = &store.Drain{Timer: *begun(9 * time.Minute)}
	w.put(keys.Instance("web-0"), rec)
	w.lead()
	ends := func(what string, due plan.Due, name string, left time.Duration) {
		t.Helper()
		if at, ok := due[name]; !ok || !at.Equal(epoch.Add(left)) {
			t.Errorf("%s ends at %v, want %s", what, due, epoch.Add(left))
		}
	}
	check := func() {
		t.Helper()
		g := w.group("web")
		ends("retry", g.SlotDue[0], store.TimerRetry, 6*time.Minute)
		ends("what ended before", g.SlotDue[0], store.TimerGiveUp, 0)
		ends("a retry by a clock that was ahead", g.SlotDue[1], store.TimerRetry, 10*time.Minute)
		ends("a storm", g.Due, store.TimerStorm, 6*time.Minute)
		ends("a roll", g.Due, store.TimerProgress, 9*time.Minute)
		ends("a drain", g.Instances[0].Due, store.TimerDrain, time.Minute)
		if len(g.SlotDue) != 2 {
			t.Errorf("due are %v", g.SlotDue)
		}
	}
	check()
	w.pass(time.Minute)
	w.evidence.Listed(w.content)
	status.Health = 50
	w.put(keys.Status("web"), status)
	check() // those that run run on

	w.put(keys.Slot("web", 0), store.Slot{Schema: store.Schema, Retry: begun(9 * time.Minute)})
	w.put(keys.Slot("web", 1), store.Slot{Schema: store.Schema})
	rec.Drain = nil
	w.put(keys.Instance("web-0"), rec)
	g := w.group("web")
	ends("a timer of our time", g.SlotDue[0], store.TimerRetry, 11*time.Minute)
	if len(g.SlotDue) != 1 || len(g.SlotDue[0]) != 1 || len(g.Instances[0].Due) != 0 {
		t.Errorf("timers that are gone still run: %+v, %+v", g.SlotDue, g.Instances[0].Due)
	}
}

func TestLossesElsewhere(t *testing.T) {
	w := newWorld(t)
	w.lead()
	w.evidence.Tallied(map[string]plan.Tally{
		"a": {Lost: 1, Now: 1, Of: 5, Groups: 1},
		"b": {Lost: 2, Now: 3, Of: 7, Groups: 1}, "c": {Of: 3},
	})
	w.evidence.Tallied(map[string]plan.Tally{"a": {Lost: 4, Now: 4, Of: 5, Groups: 1}, "c": {}})
	for _, c := range []struct {
		groups []string
		want   plan.Tally
	}{
		{[]string{""}, plan.Tally{Lost: 6, Now: 7, Of: 12, Groups: 2}},
		{[]string{"a"}, plan.Tally{Lost: 2, Now: 3, Of: 7, Groups: 1}},
		{[]string{"a", "b", "c"}, plan.Tally{}},
	} {
		if got := w.evidence.Snapshot(w.content, c.groups).Elsewhere; got != c.want {
			t.Errorf("besides %q there are %+v, want %+v", c.groups, got, c.want)
		}
	}
}

// Losses of groups that were deleted without a leader are no part of a storm.
//
// proves SAFE-2
func TestLossesOfGroupsThatAreGoneCountNoMore(t *testing.T) {
	w := newWorld(t)
	w.put(keys.Group("a"), spec("a"))
	w.lead()
	w.evidence.Tallied(map[string]plan.Tally{
		"a":    {Lost: 1, Now: 1, Of: 5, Groups: 1},
		"gone": {Lost: 9, Now: 9, Of: 9, Groups: 1},
	})
	w.evidence.Listed(w.content)
	if got := w.evidence.Snapshot(w.content, nil).Elsewhere; got != (plan.Tally{Lost: 1, Now: 1, Of: 5, Groups: 1}) {
		t.Errorf("losses are %+v", got)
	}
}

// Troubles come in swarms: all within one second share one grace, and no group is planned again for
// each.
//
// proves SAFE-1
func TestSwarmOfDisturbancesIsOneGrace(t *testing.T) {
	w := newWorld(t)
	w.lead()
	w.evidence.Disturb("no quorum")
	if s := w.evidence.Snapshot(w.content, nil); !s.GraceEnd.IsZero() {
		t.Errorf("a shard without agents has grace until %s", s.GraceEnd)
	}
	rec := w.run("web", "web-0")
	grace := rec.Spec.Report.LeaseTTL.D() + store.DefaultShardSettings().ReconnectMax.D()*3/2
	for _, c := range []struct {
		after, until time.Duration
		why          string
		planned      int
	}{
		{0, grace + time.Second, "first", 1},
		{900 * time.Millisecond, grace + time.Second, "first", 0},
		{2 * time.Second, grace + 3*time.Second, "third", 1},
	} {
		w.evidence.TakeDirty(w.content.Revision, w.now)
		w.now = epoch.Add(c.after)
		w.evidence.Disturb(map[time.Duration]string{
			0: "first", 900 * time.Millisecond: "second",
			2 * time.Second: "third",
		}[c.after])
		s := w.evidence.Snapshot(w.content, nil)
		if s.GraceEnd.Sub(epoch) != c.until || s.GraceWhy != c.why {
			t.Errorf("after %s there is grace for %s, because of the %s", c.after, s.GraceEnd.Sub(epoch), s.GraceWhy)
		}
		if got := w.evidence.TakeDirty(w.content.Revision, w.now); len(got) != c.planned {
			t.Errorf("after %s planned are %q", c.after, got)
		}
	}
}

// The world wakes the term, and draws the jitter: a failed call waits for half of its back-off to
// all of it.
func TestFailedCallWaits(t *testing.T) {
	w := newWorld(t)
	rec := w.run("web", "web-0")
	w.lead()
	for _, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if !w.evidence.MarkBusy("web-0") || w.evidence.MarkBusy("web-0") {
			t.Fatal("calls for one instance overlap")
		}
		w.evidence.Created(rec, w.now, provider.Machine{}, errors.New("no"))
		if got := w.instance("web", "web-0").Calls.RetryAt.Sub(w.now); got != wait {
			t.Errorf("waits %s, want %s", got, wait)
		}
	}
	s := w.evidence.Snapshot(w.content, nil)
	if _, full := s.Full[plan.Market{Provider: "mem"}][""]; !full {
		t.Errorf("after so many failures no zone is passed over: %v", s.Full)
	}
	w.pass(2 * time.Minute)
	if s := w.evidence.Snapshot(w.content, nil); len(s.Full) > 0 {
		t.Errorf("what was full long ago is still told: %v", s.Full)
	}
	if w.put(keys.Alive("web-0"), store.Alive{Schema: store.Schema, State: store.StreamLost}); !slices.Equal(w.suspects,
		[]string{"mem"}) {
		t.Errorf("suspected %q", w.suspects)
	}
}
