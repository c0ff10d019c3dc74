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

// What Lists say of two boots of a machine was said once of each: one wrong answer about a boot
// that is unknown and one about the present are not the two that refute an open stream.
//
// proves DET-4
func TestListsOfDifferentBootsDoNotCountTogether(t *testing.T) {
	w := newWorld(t)
	w.run("web", "web-0")
	w.lead()
	for i, c := range []struct {
		boot  string
		times int
	}{{"unknown", 1}, {"unknown", 2}, {"boot-1", 1}, {"boot-1", 2}} {
		w.pass(store.DefaultShardSettings().ProviderPoll.D())
		w.evidence.ListedBy("mem", w.now,
			[]provider.Machine{{Instance: "web-0", State: provider.StateCrashed, BootID: c.boot}}, w.content)
		if got := w.instance("web", "web-0").Sighting.Times; got != c.times {
			t.Errorf("List %d, of boot %s: it was said %d times, want %d", i+1, c.boot, got, c.times)
		}
	}
}

// Grace lasts for as long as an agent may need that waits the longest and then meets two replicas
// that do not answer.
//
// proves SAFE-1
func TestGraceAllowsForReplicasThatDoNotAnswer(t *testing.T) {
	for back, want := range map[time.Duration]time.Duration{
		2 * time.Second:  12 * time.Second,
		30 * time.Second: 45 * time.Second,
	} {
		w := newWorld(t)
		settings := store.DefaultShardSettings()
		settings.ReconnectMax = store.Duration(back)
		w.put(keys.Shard(), store.Shard{Schema: store.Schema, ID: "s", Settings: settings})
		w.lead()
		rec := w.run("web", "web-0")
		w.evidence.Disturb("a replica stood still")
		got := w.evidence.Snapshot(w.content, nil).GraceEnd.Sub(w.now)
		if want := rec.Spec.Report.LeaseTTL.D() + want + time.Second; got != want {
			t.Errorf("with a back-off of %s grace is %s, want %s", back, got, want)
		}
	}
}

// Grace is as long as the leases are now; a lease that was longer counts until its agent had its
// time.
//
// proves SAFE-1
func TestGraceFollowsTheLeases(t *testing.T) {
	w := newWorld(t)
	w.put(keys.Shard(), store.Shard{Schema: store.Schema, ID: "s", Settings: store.DefaultShardSettings()})
	w.lead()
	rec := w.run("web", "web-0")
	short := rec.Spec.Report.LeaseTTL
	grace := func() time.Duration {
		w.pass(time.Hour)
		w.evidence.Disturb("etcd did not answer")
		return w.evidence.Snapshot(w.content, nil).GraceEnd.Sub(w.now)
	}
	usual := grace()
	rec.Spec.Report.LeaseTTL = store.Duration(time.Hour)
	w.put(keys.Instance("web-0"), rec)
	long := grace()
	if long != usual-short.D()+time.Hour {
		t.Errorf("with a lease of an hour grace is %s, and was %s", long, usual)
	}
	rec.Spec.Report.LeaseTTL = short
	w.put(keys.Instance("web-0"), rec)
	w.pass(time.Minute)
	w.evidence.Disturb("etcd did not answer")
	if got := w.evidence.Snapshot(w.content, nil).GraceEnd.Sub(w.now); got < long-time.Minute {
		t.Errorf("the agent may have the long lease still, and grace is %s", got)
	}
	grace()
	if got := grace(); got != usual {
		t.Errorf("with the lease as it was, grace is %s, and was %s", got, usual)
	}
}

// A List says nothing of a machine at another site, so that its absence does not make the List
// doubtful.
//
// proves DET-4
func TestAMachineElsewhereDoesNotDisproveAList(t *testing.T) {
	w := newWorld(t)
	rec := w.run("web", "web-0")
	rec.Site = "elsewhere"
	w.put(keys.Instance("web-0"), rec)
	w.run("web", "web-1")
	w.remove(keys.Alive("web-1"))
	w.lead()
	for range 3 {
		w.pass(store.DefaultShardSettings().ProviderPoll.D())
		w.evidence.ListedBy("mem", w.now, nil, w.content)
	}
	if got := w.instance("web", "web-1").Sighting; got.Sure < 2 {
		t.Errorf("after three Lists without it: %+v", got)
	}
}

// A provider that this coordinator does not have removes nothing, and makes nothing.
//
// proves SAFE-8
func TestAFailedCreationIsNoFailedRemoval(t *testing.T) {
	w := newWorld(t)
	w.run("web", "web-0")
	w.lead()
	w.evidence.Failed("web-0", errors.New("no provider"))
	if got := w.instance("web", "web-0").Calls; !got.RemovalFailed.IsZero() || got.Problem != "no provider" ||
		!got.RetryAt.After(w.now) {
		t.Errorf("calls are %+v", got)
	}
}

// A sighting tells since when Lists have said the same, and a failed removal when the first one
// failed.
//
// proves SAFE-9, SAFE-8
func TestEvidenceSaysSinceWhen(t *testing.T) {
	w := newWorld(t)
	w.run("web", "web-0")
	w.lead()
	var since time.Time
	for i, c := range []struct {
		state provider.State
		same  bool
	}{
		{provider.StateRunning, false},
		{provider.StateStopped, false},
		{provider.StateStopped, true},
		{provider.StateRunning, false},
	} {
		w.pass(store.DefaultShardSettings().ProviderPoll.D())
		w.evidence.ListedBy("mem", w.now, []provider.Machine{{Instance: "web-0", State: c.state}}, w.content)
		if !c.same {
			since = w.now
		}
		if got := w.instance("web", "web-0").Sighting.Since; !got.Equal(since) {
			t.Errorf("List %d, %s: it says so since %s, want %s", i+1, c.state, got, since)
		}
	}
	first := w.now
	for range 2 {
		w.evidence.Removed("web-0", errors.New("the call timed out"))
		w.pass(time.Minute)
	}
	if got := w.instance("web", "web-0").Calls.RemovalFailed; !got.Equal(first) {
		t.Errorf("removals fail since %s, want %s", got, first)
	}
}

// Of several machines of one instance the one whose call's token was used is the instance's, or
// else the one that its record names. One that the provider did not make never is.
// Another one may go if a call of its own made it. What it is in tells nothing of the instance, and
// before one of them has registered neither may go.
//
// proves PROV-4, SAFE-1
func TestMachinesOfOneInstance(t *testing.T) {
	token := store.TokenHash("used")
	used := store.CallOf(token)
	machine := func(ref, call string, state provider.State) provider.Machine {
		return provider.Machine{Instance: "web-0", Ref: ref, Call: call, State: state}
	}
	own, crashed := machine("own", used, provider.StateRunning), machine("own", used, provider.StateCrashed)
	spare := machine("b", "other", provider.StateCrashed)
	foreign := func(ref string) provider.Machine {
		return provider.Machine{Instance: "web-0", Ref: ref, State: provider.StateRunning, Foreign: true}
	}
	for name, test := range map[string]struct {
		machines []provider.Machine
		unjoined bool
		ref      string // the record's
		unlisted bool
		want     string
		down     bool
		copies   []plan.Copy
	}{
		"one":           {machines: []provider.Machine{own}, want: "own"},
		"one, untagged": {machines: []provider.Machine{machine("own", "", provider.StateCrashed)}, want: "own", down: true},
		"made and given up": {
			machines: []provider.Machine{own, spare}, want: "own", copies: []plan.Copy{{Ref: "b", Call: "other", Spare: true}},
		},
		"made and given up, listed first": {
			machines: []provider.Machine{spare, own}, want: "own", copies: []plan.Copy{{Ref: "b", Call: "other", Spare: true}},
		},
		"the instance's crashed": {
			machines: []provider.Machine{crashed, machine("b", "other", provider.StateRunning)}, want: "own", down: true,
			copies: []plan.Copy{{Ref: "b", Call: "other", Spare: true}},
		},
		"copied by hand": {
			machines: []provider.Machine{own, machine("b", used, provider.StateCrashed)}, want: "own",
			copies: []plan.Copy{{Ref: "b", Call: used}},
		},
		"another call's was copied": {
			machines: []provider.Machine{own, machine("c", "other", provider.StateRunning), spare}, want: "own",
			copies: []plan.Copy{{Ref: "b", Call: "other"}, {Ref: "c", Call: "other"}},
		},
		"untagged beside it": {
			machines: []provider.Machine{own, machine("b", "", provider.StateRunning)}, want: "own",
			copies: []plan.Copy{{Ref: "b"}},
		},
		"without a name": {
			machines: []provider.Machine{own, machine("", "other", provider.StateRunning)}, want: "own",
			copies: []plan.Copy{{Call: "other"}},
		},
		"two without calls: the record's": {
			ref: "own", machines: []provider.Machine{
				machine("copy", "", provider.StateRunning), machine("own", "", provider.StateRunning),
				machine("later", "", provider.StateRunning),
			}, want: "own", copies: []plan.Copy{{Ref: "copy"}, {Ref: "later"}},
		},
		"two without calls: the record's has crashed": {
			ref: "own", machines: []provider.Machine{
				machine("copy", "", provider.StateRunning), machine("own", "", provider.StateCrashed),
			}, want: "own", down: true, copies: []plan.Copy{{Ref: "copy"}},
		},
		"copied by hand, the record's last": {
			ref: "own", machines: []provider.Machine{machine("b", used, provider.StateRunning), own}, want: "own",
			copies: []plan.Copy{{Ref: "b", Call: used}},
		},
		"the record's was given up": {
			ref: "b", machines: []provider.Machine{own, spare}, want: "own",
			copies: []plan.Copy{{Ref: "b", Call: "other", Spare: true}},
		},
		"nothing registered, the record's has crashed": {
			ref: "b", unjoined: true, machines: []provider.Machine{spare, own}, want: "own",
			copies: []plan.Copy{{Ref: "b", Call: "other"}},
		},
		"foreign beside it": {
			machines: []provider.Machine{foreign("a"), machine("own", "", provider.StateCrashed), foreign("z")}, want: "own",
			down: true, copies: []plan.Copy{{Ref: "a"}, {Ref: "z"}},
		},
		"foreign alone": {
			machines: []provider.Machine{foreign("a")}, unlisted: true, copies: []plan.Copy{{Ref: "a"}},
		},
		"only another call's": {machines: []provider.Machine{spare}, want: "b"},
		"nothing registered": {
			unjoined: true, machines: []provider.Machine{spare, own}, want: "own",
			copies: []plan.Copy{{Ref: "b", Call: "other"}},
		},
		"nothing registered, all down": {
			unjoined: true, machines: []provider.Machine{spare, crashed}, want: "b", down: true,
			copies: []plan.Copy{{Ref: "own", Call: used}},
		},
	} {
		w := newWorld(t)
		rec := w.run("web", "web-0")
		rec.Ref = test.ref
		w.put(keys.Instance("web-0"), rec)
		if !test.unjoined {
			w.put(keys.Joined("web-0"), store.Joined{Schema: store.Schema, Instance: "web-0", Token: token})
		}
		w.lead()
		w.evidence.ListedBy("mem", w.now, test.machines, w.content)
		got := w.instance("web", "web-0").Sighting
		if got.Ref != test.want || got.Down != test.down || got.Listed == test.unlisted ||
			!slices.Equal(got.Copies, test.copies) {
			t.Errorf("%s: %+v, want %s, down %t, copies %v", name, got, test.want, test.down, test.copies)
		}

		// After a copy was removed, Lists that may show it yet tell of none.
		w.evidence.MarkBusy("web-0")
		w.evidence.CopyRemoved("web-0", nil)
		w.evidence.ListedBy("mem", w.now, test.machines, w.content)
		if got := w.instance("web", "web-0").Sighting.Copies; len(got) > 0 {
			t.Errorf("%s: removed, there are %v", name, got)
		}
		w.pass(time.Second) // consistency
		w.evidence.ListedBy("mem", w.now, test.machines, w.content)
		if got := w.instance("web", "web-0").Sighting.Copies; !slices.Equal(got, test.copies) {
			t.Errorf("%s: later there are %v, want %v", name, got, test.copies)
		}
	}
}
