package evidence_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

func TestGroupsArePlannedWhenTheyAreDue(t *testing.T) {
	w := newWorld(t)
	w.lead()
	e := w.evidence
	take := func(rev store.Revision, want ...string) {
		t.Helper()
		if got := e.TakeDirty(rev, w.now); !slices.Equal(got, want) {
			t.Errorf("dirty are %q, want %q", got, want)
		}
	}
	take(1, "")
	take(1)
	e.PlanAgain("web", w.now)
	e.PlanAgain("api", w.now)
	e.Wrote("web", 5)
	e.Wrote("web", 4)
	take(4, "api") // our write to web is not in the cache
	e.PlanAgain("web", w.now)
	take(4)
	if !e.NextDue().IsZero() {
		t.Error("who waits for the cache is due by time")
	}
	take(5, "web")
	for i, name := range []string{"c", "a", "d", "b", "a", "a"} {
		e.PlanAgain(name, w.now.Add(time.Duration(10-i)*time.Second))
		e.PlanAgain(name, w.now.Add(time.Hour)) // the earlier time counts
		e.PlanAgain(name, time.Time{})
	}
	e.PlanAgain("d", w.now)
	take(5, "d") // so that it is not due any more
	var order []string
	for !e.NextDue().IsZero() {
		w.now = e.NextDue()
		order = append(order, fmt.Sprintf("%s at %s", e.TakeDirty(5, w.now), w.now.Sub(epoch)))
	}
	if want := []string{"[a] at 5s", "[b] at 7s", "[c] at 10s"}; !slices.Equal(order, want) {
		t.Errorf("due were %q, want %q", order, want)
	}
}

// The numbers of a wish, which the planner has just written, are no reason to plan the group again,
// unless something else is new as well. Their timers run.
//
// proves AUTO-2
func TestNumbersOfAWishAreNotPlannedAgain(t *testing.T) {
	w := newWorld(t)
	w.lead()
	w.takeAll()
	wish := store.ScaleWish{Size: 4, Counts: store.Timer{Start: w.now, For: store.Duration(5 * time.Minute)}}
	status := store.Status{Schema: store.Schema, Group: "web", Scale: &store.Scale{Size: 4, Wish: 4}}
	for i, write := range []struct {
		change  func()
		planned bool
	}{
		{func() {}, true},
		{func() { status.Scale.Wish, status.Scale.Wishes = 3, []store.ScaleWish{wish} }, false},
		{func() { status.Scale.At, status.Scale.Wish = w.now, 2 }, false},
		{func() { status.Scale.At, status.Scale.Size = w.now.Add(1), 3 }, true},
	} {
		write.change()
		w.put(keys.Status("web"), status)
		if got := w.takeAll(); slices.Contains(got, "web") != write.planned {
			t.Errorf("status %d: planned %q", i, got)
		}
		w.pass(time.Second)
	}
	due := w.evidence.Snapshot(w.content, []string{"web"}).Groups[0].Due
	if at := due[wish.TimerName()]; !at.Equal(epoch.Add(time.Second + 5*time.Minute)) {
		t.Errorf("the wish counts until %s: %v", at, due)
	}
}

// A new leader, and one that was disturbed, plans a large shard bit by bit too: an event in between
// does not wait for all of it.
//
// proves REC-1
func TestPlansAfterADisturbanceYieldToEvents(t *testing.T) {
	w := newWorld(t)
	w.shard(30, 100)
	w.lead()
	for _, disturb := range []func(){
		func() {}, // it has just begun
		func() { w.evidence.Disturb("a test") },
		func() {
			w.evidence.Pass(w.content)
			w.evidence.Disturb("a test, with a pass under way")
		},
	} {
		w.pass(time.Minute)
		disturb()
		w.report("g0029-0000", "boot", w.now.Minute()%2 == 0)
		times := map[string]int{}
		for turn := range 100 {
			got := w.evidence.TakeDirty(w.content.Revision, w.now)
			if len(got) > 11 || turn == 0 && !slices.Contains(got, "g0029") {
				t.Fatalf("turn %d plans %d groups, of a hundred instances each, at once: %q", turn, len(got), got)
			}
			for _, name := range got {
				times[name]++
			}
		}
		delete(times, "")
		for name, n := range times {
			if n != 1 {
				t.Errorf("%s was planned %d times", name, n)
			}
		}
		if len(times) != 30 {
			t.Errorf("planned were %d groups of 30", len(times))
		}
	}
}

// A full pass of a large shard comes bit by bit: whatever something happens to is planned before
// the rest of it, and yet it ends.
//
// proves REC-1
func TestFullPassYieldsToEvents(t *testing.T) {
	w := newWorld(t)
	w.shard(50, 100)
	w.lead()
	all := w.takeAll()
	if want := 51; len(all) != want || len(slices.Compact(slices.Clone(all))) != want {
		t.Fatalf("a new leader plans %d groups, the shard among them, want each of %d once", len(all), want)
	}
	w.pass(time.Minute)
	w.evidence.Pass(w.content)
	take := func() []string { return w.evidence.TakeDirty(w.content.Revision, w.now) }
	begun := take()
	if n := len(begun); n < 2 || n > 11 {
		t.Fatalf("the pass begins with %d groups, of a hundred instances each", n)
	}
	if due := w.evidence.NextDue(); !due.Equal(w.now) {
		t.Errorf("the rest of the pass is due at %s, want at once", due)
	}
	w.report("g0049-0000", "boot", false)
	if got := take(); !slices.Equal(got, []string{"g0049"}) {
		t.Errorf("planned before the rest of the pass are %q, want what changed alone", got)
	}
	times := map[string]int{"g0049": 1}
	for _, name := range begun {
		times[name]++
	}
	for turn := range 50 { // something happens all the time, and still the pass ends
		w.report("g0000-0000", "boot", turn%2 == 1)
		got := take()
		if !slices.Contains(got, "g0000") {
			t.Fatalf("turn %d: what changed waits for %q", turn, got)
		}
		for _, name := range got {
			times[name]++
		}
	}
	if due := w.evidence.NextDue(); !due.IsZero() || len(times) != 51 {
		t.Errorf("the pass came to %d groups, and something is due at %s", len(times), due)
	}
	for name, n := range times {
		if n != 1 && name != "g0000" {
			t.Errorf("%q was planned %d times", name, n)
		}
	}
	w.evidence.Pass(w.content)
	n := len(take())
	w.evidence.Pass(w.content) // before the last one was through: they never overlap
	if rest := w.takeAll(); len(rest) > 51 || len(rest) < 51-n {
		t.Errorf("two passes plan %d groups and then %d", n, len(rest))
	}
}

// A storm of the shard concerns every group with losses: all are planned at once when it begins,
// when it is over, and when so few are lost still that it may end. What changes nothing about that
// wakes no group.
//
// proves SAFE-2
func TestAStormOfTheShardHasAllItsGroupsPlanned(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c", "whole"} {
		w.put(keys.Group(name), spec(name))
	}
	w.lead()
	for len(w.evidence.TakeDirty(w.content.Revision, w.now)) > 0 { // the full pass
	}
	for _, c := range []struct {
		what    string
		group   string
		tally   plan.Tally
		planned []string
	}{
		{"none is lost", "whole", plan.Tally{Of: 10}, nil},
		{"one group loses some", "a", plan.Tally{Lost: 3, Now: 2, Of: 5, Groups: 1}, nil},
		{"a second one: a storm", "b", plan.Tally{Lost: 2, Now: 2, Of: 5, Groups: 1}, []string{"a", "b"}},
		// as many are lost by now
		{"a third one", "c", plan.Tally{Lost: 1, Now: 1, Of: 5, Groups: 1}, []string{"a", "b", "c"}},
		{"one comes back: it may end", "b", plan.Tally{Lost: 2, Now: 1, Of: 5, Groups: 1}, []string{"a", "b", "c"}},
		{"they were lost long ago", "a", plan.Tally{Now: 2, Of: 5}, []string{"a", "b", "c"}},
		{"all are back", "a", plan.Tally{Of: 5}, nil},
	} {
		before := w.woken
		w.evidence.Tallied(map[string]plan.Tally{c.group: c.tally})
		if woken := w.woken > before; woken != (c.planned != nil) {
			t.Errorf("%s: woken %t", c.what, woken)
		}
		if got := w.evidence.TakeDirty(w.content.Revision, w.now); !slices.Equal(got, c.planned) {
			t.Errorf("%s: planned are %q, want %q", c.what, got, c.planned)
		}
	}
}

// A call that etcd did not let us record was not made. It is no failure of the provider's, and is
// not tried again at once.
//
// proves REC-9
func TestPostponed(t *testing.T) {
	w := newWorld(t)
	w.run("web", "web-0")
	w.lead()
	if !w.evidence.MarkBusy("web-0") {
		t.Fatal("busy already")
	}
	w.evidence.TakeDirty(1<<40, w.now)
	w.evidence.Postponed("web-0", time.Second)
	calls := w.instance("web", "web-0").Calls
	if calls.Busy || calls.Problem != "" || !calls.RetryAt.Equal(w.now.Add(time.Second)) {
		t.Errorf("known of its calls: %+v", calls)
	}
	if dirty := w.evidence.TakeDirty(1<<40, w.now); !slices.Contains(dirty, "web") {
		t.Errorf("to be planned again: %v", dirty)
	}
}
