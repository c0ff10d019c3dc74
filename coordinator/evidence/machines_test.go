package evidence_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// Each complete List is a sighting of every instance of its provider, and of no other. Lists that
// say the same are counted, but not faster than the provider is asked.
//
// proves DET-4, DET-12
func TestSightings(t *testing.T) {
	poll := store.DefaultShardSettings().ProviderPoll.D()
	running := provider.Machine{
		Instance: "web-0", State: provider.StateRunning, Ref: "ref", Address: "address",
		BootID: "b",
	}
	crashed := provider.Machine{
		Instance: "web-0", State: provider.StateCrashed, Ref: "ref", Address: "address",
		BootID: "b",
	}
	w := newWorld(t)
	w.run("web", "web-0")
	w.lead()
	seen := func(m provider.Machine, down bool, times int) plan.Sighting {
		return plan.Sighting{
			Listed: true, Down: down, State: string(m.State), Ref: "ref", Address: "address",
			BootID: "b", Times: times,
		}
	}
	explained := seen(crashed, true, 4)
	explained.State += " (no memory)"
	var since time.Time
	withReason := crashed
	withReason.Why = "no memory"
	for i, c := range []struct {
		after    time.Duration
		provider string
		machines []provider.Machine
		want     plan.Sighting
		planned  bool
	}{
		{0, "mem", nil, plan.Sighting{Times: 1}, true},
		{poll, "mem", nil, plan.Sighting{Times: 2}, true},
		{poll - 1, "mem", nil, plan.Sighting{Times: 2}, true}, // asked again too soon
		{1, "mem", nil, plan.Sighting{Times: 3}, true},
		{poll, "mem", []provider.Machine{running}, seen(running, false, 1), true},
		{poll, "mem", []provider.Machine{running}, seen(running, false, 2), false},
		{poll, "other", nil, seen(running, false, 2), false}, // another provider's List
		{0, "mem", []provider.Machine{crashed}, seen(crashed, true, 1), true},
		{poll, "mem", []provider.Machine{crashed}, seen(crashed, true, 2), true},
		{poll, "mem", []provider.Machine{{Instance: "stranger"}, crashed}, seen(crashed, true, 3), true},
		{poll, "mem", []provider.Machine{withReason}, explained, true},
		{poll, "mem", nil, plan.Sighting{Times: 1}, true},
	} {
		w.pass(c.after)
		w.takeAll()
		w.woken = 0
		w.evidence.ListedBy(c.provider, w.now, c.machines, w.content)
		got := w.instance("web", "web-0").Sighting
		if c.want.Times == 1 {
			since = w.now // another answer than before
		}
		c.want.Since = since
		if c.provider == "mem" {
			c.want.Begun = w.now
		} else {
			c.want.Begun = got.Begun
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("List %d: seen is\n%+v\nwant\n%+v", i, got, c.want)
		}
		if planned := slices.Contains(w.takeAll(), "web"); planned != c.planned || w.woken != 1 {
			t.Errorf("List %d: the group is planned: %t, woken %d times, want %t", i, planned, w.woken, c.planned)
		}
	}
}

// A List is news for a group that waits for a machine to come or to go, though it says the same as
// before.
//
// proves REC-1, SAFE-8
func TestListsThatAGroupWaitsFor(t *testing.T) {
	for _, phase := range store.Phases {
		w := newWorld(t)
		rec := w.run("web", "web-0")
		rec.Phase = phase
		w.put(keys.Instance("web-0"), rec)
		w.lead()
		machine := []provider.Machine{{Instance: "web-0", State: provider.StateRunning}}
		w.evidence.ListedBy("mem", w.now, machine, w.content)
		w.pass(time.Minute)
		w.takeAll()
		w.evidence.ListedBy("mem", w.now, machine, w.content)
		want := phase == store.Creating || phase == store.Deleting || phase == store.Stopping
		if got := slices.Contains(w.takeAll(), "web"); got != want {
			t.Errorf("%s: the group is planned: %t, want %t", phase, got, want)
		}
	}
}

// Machines without a record are extra from when they were first listed, until they are listed no
// more or have a record. A machine whose agent once said hello stays a stray.
//
// proves REC-8
func TestExtraMachines(t *testing.T) {
	w := newWorld(t)
	w.lead()
	extras := func() string {
		var out []string
		for _, x := range w.evidence.Snapshot(w.content, []string{""}).Extras {
			out = append(out, fmt.Sprintf("%s of %s in %s at %s (%s) since %s, stray %t", x.Instance, x.Group, x.Zone,
				x.Provider, x.Ref, x.Since.Sub(epoch), x.Stray))
		}
		return fmt.Sprint(out)
	}
	one := provider.Machine{Instance: "one", Group: "web", Zone: "a", Ref: "r1"}
	for _, c := range []struct {
		name     string
		provider string
		machines []provider.Machine
		before   func()
		want     string
		planned  bool
	}{
		{
			"first seen", "mem",
			[]provider.Machine{one},
			nil, "[one of web in a at mem (r1) since 1s, stray false]",
			true,
		},
		{"another provider's List", "other", nil, nil, "[one of web in a at mem (r1) since 1s, stray false]", false},
		{
			"its tags change, its agent says hello", "mem",
			[]provider.Machine{{Instance: "one", Group: "db", Zone: "b", Ref: "r2"}},
			func() { w.put(keys.Stray("one"), store.Stray{Schema: store.Schema, Instance: "one"}) },
			"[one of db in b at mem (r2) since 1s, stray true]", true,
		},
		{
			"its agent stops", "mem",
			[]provider.Machine{one},
			func() { w.remove(keys.Stray("one")) },
			"[one of web in a at mem (r1) since 1s, stray true]", true,
		},
		{"no longer listed", "mem", nil, nil, "[]", false},
		{
			"listed again", "mem",
			[]provider.Machine{one},
			nil, "[one of web in a at mem (r1) since 6s, stray false]",
			true,
		},
	} {
		w.pass(time.Second)
		if c.before != nil {
			c.before()
		}
		w.takeAll()
		w.evidence.ListedBy(c.provider, w.now, c.machines, w.content)
		if planned := slices.Contains(w.takeAll(), ""); planned != c.planned {
			t.Errorf("%s: the shard is planned: %t, want %t", c.name, planned, c.planned)
		}
		if got := extras(); got != c.want {
			t.Errorf("%s: extra are\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// Machines are counted that have no record, and records whose machine should be listed and is
// not: before the first List, and in phases in which there need be none, nothing is missing.
//
// proves SAFE-12
func TestCountMachines(t *testing.T) {
	for _, phase := range store.Phases {
		w := newWorld(t)
		rec := w.run("web", "web-0")
		rec.Phase = phase
		w.put(keys.Instance("web-0"), rec)
		w.lead()
		expected := 1
		if slices.Contains([]store.Phase{store.Pending, store.Creating, store.Deleting, store.Finished}, phase) {
			expected = 0
		}
		for _, c := range []struct {
			list             []provider.Machine
			never            bool
			orphans, missing int
		}{
			{nil, true, 0, 0},
			{[]provider.Machine{{Instance: "web-0"}}, false, 0, 0},
			{[]provider.Machine{{Instance: "a"}, {Instance: "b"}}, false, 2, expected},
			{nil, false, 0, expected},
		} {
			if !c.never {
				w.evidence.ListedBy("mem", w.now, c.list, w.content)
			}
			if orphans, missing := w.evidence.CountMachines(); orphans != c.orphans || missing != c.missing {
				t.Errorf("%s, listed %v: %d orphans and %d missing, want %d and %d", phase, c.list, orphans, missing,
					c.orphans, c.missing)
			}
		}
	}
}
