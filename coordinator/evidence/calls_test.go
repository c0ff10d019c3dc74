package evidence_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// Some errors prove that a Create made no machine and will make none. All others leave it open.
//
// proves SAFE-8
func TestErrorsThatProveThatNothingWasMade(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{provider.ErrCapacity, true},
		{provider.ErrInvalid, true},
		{provider.ErrDeleted, true},
		{provider.ThrottledFor(0), true},
		{provider.ErrNotFound, false},
		{errors.New("timed out"), false},
	} {
		if got := evidence.NothingMade(fmt.Errorf("create: %w", test.err)); got != test.want {
			t.Errorf("%v proves that nothing was made: %t", test.err, got)
		}
	}
}

// What is known of an instance's calls after a Create. A call that failed for an open reason may
// take effect until its time-out has passed; its ID stays in its zone from then on.
//
// proves SAFE-8, REC-3, REC-9, DET-4
func TestOutcomesOfACreate(t *testing.T) {
	const callTimeout, consistency = time.Minute, time.Second // of the world's provider
	open := errors.New("connection reset")
	for _, test := range []struct {
		name   string
		before error // of a Create before this one; nil: there was none
		err    error
		noRoom bool
		refuse bool
		full   bool
		wait   time.Duration
	}{
		{"made", nil, nil, false, false, false, 0},
		{"made after a failure", open, nil, false, false, false, 0},
		{"open", nil, open, false, false, false, time.Second},
		{"no capacity", nil, provider.ErrCapacity, true, false, true, time.Second},
		{"no capacity after a call that is open", open, provider.ErrCapacity, false, false, true, 2 * time.Second},
		{"no capacity twice", provider.ErrCapacity, provider.ErrCapacity, true, false, true, 2 * time.Second},
		{"invalid", nil, provider.ErrInvalid, false, false, false, time.Second},
		{"deleted before", nil, provider.ErrDeleted, false, true, false, time.Second},
		{"throttled", nil, provider.ThrottledFor(17 * time.Second), false, false, false, 17 * time.Second},
		{
			"invalid after it had been deleted", provider.ErrDeleted, provider.ErrInvalid, false, false, false,
			2 * time.Second,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			rec := w.run("web", "web-0")
			rec.Zone = "a"
			w.lead()
			if test.before != nil {
				w.evidence.MarkBusy("web-0")
				w.evidence.Created(rec, w.now, provider.Machine{}, test.before)
			}
			full := test.full || errors.Is(test.before, provider.ErrCapacity)
			w.takeAll()
			w.woken = 0
			w.evidence.MarkBusy("web-0")
			begun := w.now.Add(10 * time.Second)
			w.pass(30 * time.Second)
			w.evidence.Created(rec, begun, provider.Machine{Ref: "ref", Address: "address"}, test.err)
			calls := w.instance("web", "web-0").Calls
			want := plan.Calls{
				NoRoom: test.noRoom, Refused: test.refuse, WrongTemplate: errors.Is(test.err, provider.ErrInvalid),
				AbsentFrom: begun.Add(callTimeout + consistency),
			}
			if test.err == nil {
				want.Made, want.Ref, want.Address = true, "ref", "address"
				want.AbsentFrom = w.now.Add(consistency)
				if test.before != nil { // which was begun at the epoch, and counts if it is the later one
					want.AbsentFrom = epoch.Add(callTimeout + consistency)
				}
			} else {
				want.Problem, want.RetryAt = test.err.Error(), w.now.Add(test.wait)
			}
			if calls != want {
				t.Errorf("known of its calls:\n%+v\nwant\n%+v", calls, want)
			}
			until, isFull := w.evidence.Snapshot(w.content, nil).Full[plan.Market{Provider: "mem"}]["a"]
			if isFull != full || test.full && !until.Equal(w.now.Add(2*time.Minute)) {
				t.Errorf("the zone is full: %t, until %s, want %t", isFull, until, full)
			}
			if dirty := w.evidence.TakeDirty(1<<40, w.now); fmt.Sprint(dirty) != "[web]" || w.woken != 1 {
				t.Errorf("to be planned: %q, woken %d times", dirty, w.woken)
			}
		})
	}
}

// Waits double from a second to a minute, and the zone of a creation that failed three times in a
// row is passed over; a success starts over.
//
// proves REC-9
func TestFailuresInARow(t *testing.T) {
	w := newWorld(t)
	rec := w.run("web", "web-0")
	rec.Zone = "b"
	w.lead()
	for round := range 2 {
		for i, want := range []int{1, 2, 4, 8, 16, 32, 60, 60, 60} {
			w.evidence.Created(rec, w.now, provider.Machine{}, errors.New("no"))
			if got := w.instance("web", "web-0").Calls.RetryAt.Sub(w.now); got != time.Duration(want)*time.Second {
				t.Errorf("round %d: after failure %d it waits %s, want %ds", round, i+1, got, want)
			}
			if _, full := w.evidence.Snapshot(w.content, nil).Full[plan.Market{Provider: "mem"}]["b"]; full != (i >= 2) {
				t.Errorf("round %d: after failure %d the zone is full: %t", round, i+1, full)
			}
		}
		w.evidence.Created(rec, w.now, provider.Machine{}, nil)
		if calls := w.instance("web", "web-0").Calls; calls.Problem != "" || !calls.RetryAt.IsZero() {
			t.Errorf("after a success: %+v", calls)
		}
		w.pass(2*time.Minute - 1)
		if s := w.evidence.Snapshot(w.content, nil); len(s.Full[plan.Market{Provider: "mem"}]) != 1 {
			t.Errorf("just before two minutes have passed, full are %v", s.Full)
		}
		w.pass(1)
		if s := w.evidence.Snapshot(w.content, nil); len(s.Full) != 0 {
			t.Errorf("after two minutes, full are %v", s.Full)
		}
	}
}

// A failed call waits for half of its time at least; chance decides the rest.
//
// proves REC-9
func TestJitterOfFailedCalls(t *testing.T) {
	w := newWorld(t)
	w.run("web", "web-0")
	e := evidence.New(evidence.Config{
		Keys: keys, SessionTTL: time.Second, Now: func() time.Time { return w.now }, Wake: func() {},
		Suspect:  func(string) {},
		Jitter:   func(most time.Duration) time.Duration { return most / 5 },
		Validate: func(string, store.Group) string { return "" },
	})
	e.Listed(w.content)
	for _, want := range []time.Duration{600 * time.Millisecond, 1200 * time.Millisecond} {
		e.Removed("web-0", errors.New("no"))
		if got := e.Snapshot(w.content, []string{"web"}).Groups[0].Instances[0].Calls.RetryAt.Sub(w.now); got != want {
			t.Errorf("waits %s, want %s", got, want)
		}
	}
}

// Each zone that was full is passed over for its own time.
//
// proves REC-3
func TestFullZonesAreKeptApart(t *testing.T) {
	w := newWorld(t)
	rec := w.run("web", "web-0")
	w.lead()
	for _, zone := range []string{"a", "b"} {
		rec.Zone = zone
		w.evidence.Created(rec, w.now, provider.Machine{}, provider.ErrCapacity)
		w.pass(30 * time.Second)
	}
	full := w.evidence.Snapshot(w.content, nil).Full[plan.Market{Provider: "mem"}]
	if !full["a"].Equal(epoch.Add(2*time.Minute)) || !full["b"].Equal(epoch.Add(150*time.Second)) {
		t.Errorf("full are %v", full)
	}
}

// What is known after a removal, a restart, and a call that was not made after all.
//
// proves HEAL-1, REC-9
func TestOutcomesOfOtherCalls(t *testing.T) {
	failed := errors.New("no")
	for _, test := range []struct {
		name string
		call func(e *evidence.Evidence)
		want plan.Calls
	}{
		{
			"removed", func(e *evidence.Evidence) { e.Removed("web-0", nil) },
			plan.Calls{Deleted: epoch, ListedUntil: epoch.Add(time.Second)},
		},
		{
			"not removed", func(e *evidence.Evidence) { e.Removed("web-0", failed) },
			plan.Calls{RemovalFailed: epoch, Problem: "no", RetryAt: epoch.Add(time.Second)},
		},
		{
			"restarted", func(e *evidence.Evidence) { e.Restarted("web-0", "token", nil) },
			plan.Calls{Restarted: "token"},
		},
		{
			"not restarted", func(e *evidence.Evidence) { e.Restarted("web-0", "token", failed) },
			plan.Calls{Problem: "no", RetryAt: epoch.Add(time.Second)},
		},
		{"no machine to restart", func(e *evidence.Evidence) {
			e.Restarted("web-0", "token", fmt.Errorf("restart: %w", provider.ErrNotFound))
		}, plan.Calls{Missing: true}},
		{"dropped", func(e *evidence.Evidence) { e.Dropped("web-0") }, plan.Calls{}},
		{
			"removed after a failure", func(e *evidence.Evidence) { e.Removed("web-0", failed); e.Removed("web-0", nil) },
			plan.Calls{RemovalFailed: epoch, Deleted: epoch, ListedUntil: epoch.Add(time.Second)},
		},
		{"restarted after a failure", func(e *evidence.Evidence) {
			e.Restarted("web-0", "a", failed)
			e.Restarted("web-0", "b", nil)
			e.Removed("web-0", failed)
		}, plan.Calls{RemovalFailed: epoch, Restarted: "b", Problem: "no", RetryAt: epoch.Add(time.Second)}},
	} {
		w := newWorld(t)
		w.run("web", "web-0")
		w.lead()
		w.takeAll()
		if !w.evidence.MarkBusy("web-0") {
			t.Fatal("it is busy already")
		}
		if !w.instance("web", "web-0").Calls.Busy {
			t.Errorf("%s: it is not busy while the call is under way", test.name)
		}
		test.call(w.evidence)
		if calls := w.instance("web", "web-0").Calls; calls != test.want {
			t.Errorf("%s: known of its calls:\n%+v\nwant\n%+v", test.name, calls, test.want)
		}
		if dirty := w.evidence.TakeDirty(1<<40, w.now); fmt.Sprint(dirty) != "[web]" {
			t.Errorf("%s: to be planned: %q", test.name, dirty)
		}
	}
	w := newWorld(t)
	w.lead()
	if w.evidence.MarkBusy("unknown") {
		t.Error("there are calls for an unknown instance")
	}
	w.evidence.Removed("unknown", nil)
}

// A machine that is missing when it is to be restarted is missing until the next restart.
//
// proves HEAL-1
func TestTheNextRestartAsksAgain(t *testing.T) {
	w := newWorld(t)
	rec := w.run("web", "web-0")
	rec.Restart = &store.Restart{Token: "first"}
	w.put(keys.Instance("web-0"), rec)
	w.lead()
	for _, c := range []struct {
		token   string
		missing bool
		moved   bool // the phase started over
	}{{"first", true, false}, {"second", false, true}, {"second", false, false}} {
		w.evidence.Restarted("web-0", "first", provider.ErrNotFound)
		if c.token == "second" && !c.moved {
			w.evidence.Restarted("web-0", "second", nil)
		}
		w.pass(time.Minute)
		rec.Restart = &store.Restart{Token: c.token}
		w.put(keys.Instance("web-0"), rec)
		in := w.instance("web", "web-0")
		if c.token == "first" && !in.Calls.Missing {
			t.Error("the machine is not missing after the provider said so")
		}
		if c.moved && (in.Calls.Missing || !in.PhaseStart.Equal(w.now)) {
			t.Errorf("with another restart: missing %t, its phase began %s ago", in.Calls.Missing,
				w.now.Sub(in.PhaseStart))
		}
		if !c.moved && in.PhaseStart.Equal(w.now) {
			t.Errorf("with the same restart %s its phase started over", c.token)
		}
	}
}
