package evidence_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// What Lists say of two boots of a machine was said once of each: one wrong answer about a boot
// that nobody knows and one about the present are not the two that refute an open stream.
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
		w.evidence.Disturb("somebody stood still")
		got := w.evidence.Snapshot(w.content, nil).GraceEnd.Sub(w.now)
		if want := rec.Spec.Report.LeaseTTL.D() + want + time.Second; got != want {
			t.Errorf("with a back-off of %s grace is %s, want %s", back, got, want)
		}
	}
}

// A sighting tells since when Lists have said the same, and a failed removal when the first one
// failed.
//
// proves SAFE-9, SAFE-8
func TestEvidenceTellsSinceWhen(t *testing.T) {
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
