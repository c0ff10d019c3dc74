package coordinator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// The journal is read in the order of its keys. That is the order in which things happened, also
// where the clock stands still in between, as it does here.
//
// proves REC-15
func TestJournalIsReadInItsOrder(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.leads(time.Second, "one")
		w.apply(w.group("web", 5))
		w.until(time.Minute, "all run", func() bool { return w.settled(5) })
		entries := w.journal()
		for i := 1; i < len(entries); i++ {
			// Calls of the provider go out side by side, and what tells of two of them may be
			// committed in either order. Of one instance nothing is.
			if before, e := entries[i-1], entries[i]; before.Modified > e.Modified &&
				(before.Record.Instance == e.Record.Instance || !called(before) || !called(e)) {
				t.Errorf("%q of revision %d is read before %q of revision %d", before.Record.What, before.Modified,
					e.Record.What, e.Modified)
			}
		}
		if len(entries) < 20 {
			t.Errorf("only %d entries", len(entries))
		}
	})
}

// The entries of an hour share a lease: one each would be thousands, for a week. Two that are
// written at once, at the hour's beginning, may have two.
//
// proves REC-15
func TestEntriesOfAnHourShareALease(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.leads(time.Second, "one")
		w.apply(w.group("web", 5))
		w.until(time.Minute, "all run", func() bool { return w.settled(5) })
		leases := map[store.LeaseID]bool{}
		entries := w.journal()
		for _, e := range entries {
			leases[e.Lease] = true
		}
		if len(leases) > 2 || len(entries) < 20 {
			t.Errorf("%d entries are on %d leases", len(entries), len(leases))
		}
	})
}

// Where entries are kept for minutes, they do not stay for an hour.
//
// proves REC-15
func TestEntriesGoWhenTheyAreOld(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.editShard(func(s *store.Shard) { s.Settings.EventsKept = store.Duration(8 * time.Minute) })
		w.start("one")
		w.leads(time.Second, "one")
		w.apply(w.group("web", 5))
		w.until(time.Minute, "all run", func() bool { return w.settled(5) })
		before := len(w.journal())
		if before < 20 {
			t.Fatalf("there are only %d entries", before)
		}
		w.always(7*time.Minute, "none is gone too soon", func() bool { return len(w.journal()) >= before })
		w.pass(4 * time.Minute)
		if after := len(w.journal()); after > 2 {
			t.Errorf("of %d entries %d are left", before, after)
		}
	})
}

// What is written after events_kept has grown is kept for the new time, although the lease that was
// granted before would still take it.
//
// proves REC-15, SAFE-15
func TestEntriesAreKeptForTheTimeThatAppliesWhenTheyAreWritten(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.editShard(func(s *store.Shard) { s.Settings.EventsKept = store.Duration(4 * time.Hour) })
		w.start("one")
		w.leads(time.Second, "one")
		w.apply(w.group("web", 1))
		first := w.up(1)[0]
		w.editShard(func(s *store.Shard) { s.Settings.EventsKept = store.Duration(7 * 24 * time.Hour) })
		w.pass(time.Second)
		changed := time.Now()
		w.provider.Crash(first, "exit 1")
		w.until(time.Minute, "it is replaced", func() bool { return w.settled(1) && w.ids()[0] != first })
		written := func() (entries, notes int) {
			for _, e := range w.journal() {
				if e.Record.At.After(changed) {
					entries++
				}
			}
			return entries, len(w.list(w.keys.Of(store.KindGone)))
		}
		entries, notes := written()
		if entries < 3 || notes == 0 {
			t.Fatalf("%d entries and %d notes are written", entries, notes)
		}
		w.pass(6 * time.Hour)
		if now, left := written(); now < entries || left < notes {
			t.Errorf("of %d entries and %d gone notes, %d and %d are left after six hours", entries, notes, now, left)
		}
	})
}

// A new leader that finds many in trouble tells of all of them at once: else what it has to do
// would wait for as many answers of etcd.
//
// proves REC-15, ELECT-2
func TestManyVerdictsShareAnEntry(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		const size, silent = 20, 12
		one := w.start("one")
		w.leads(time.Second, "one")
		w.start("two")
		w.apply(w.group("web", size))
		ids := w.up(size)
		w.pass(5 * time.Minute)
		w.cutOff(ids[:silent]...)
		w.until(time.Minute, "it is a storm", func() bool { return w.storms("web") })
		one.kill()
		w.leads(10*time.Second, "two")
		told := map[store.Revision]int{}
		most := 0
		w.until(time.Minute, "all are told of", func() bool {
			clear(told)
			n := 0
			for _, e := range w.journal() {
				if e.Record.By == "two" && e.Record.Verdict != "" {
					told[e.Created]++
					most = max(most, told[e.Created])
					n++
				}
			}
			return n >= silent
		})
		if most < silent {
			t.Errorf("verdicts by revision: %v", told)
		}
	})
}

// called reports whether an entry tells that a provider was called.
func called(e store.Versioned[store.JournalEntry]) bool {
	return strings.HasPrefix(e.Record.What, "provider ")
}
