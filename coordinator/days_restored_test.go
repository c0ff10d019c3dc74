package coordinator_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// Of the time before etcd was restored, and of that in which the shard was on hold for it, nothing
// is known: it is in no summary, and not as a time in which all was well.
//
// proves DAY-5
func TestARestoredShardSumsUpNothingOfBefore(t *testing.T) {
	for name, released := range map[string]bool{"released": true, "on hold": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fake.Config{}, func(w *world) {
				today := w.created(3)
				w.happened("old", today.AddDate(0, 0, -1))
				w.pass(20 * time.Hour)
				w.served(time.Now().UTC())
				first := w.start("one")
				w.apply(w.group("web", 1))
				w.up(1)
				first.stop()
				w.db.Faults().ChangeCluster()
				w.start("one")
				w.until(time.Minute, "it is on hold", func() bool { return w.shard().Hold != nil })
				w.pass(2 * time.Hour)
				at := time.Now().UTC()
				if released {
					w.editShard(func(s *store.Shard) { s.Release(at) })
				}
				w.pass(today.AddDate(0, 0, 1).Add(25 * time.Minute).Sub(at))
				for back := range 3 {
					if w.isDone(today.AddDate(0, 0, -1-back)) {
						t.Errorf("the day %d days before is summed up", 1+back)
					}
				}
				if w.isDone(today) != released {
					t.Fatalf("the day is summed up: %t", w.isDone(today))
				}
				if !released {
					return
				}
				d := w.day(today, "web").Record
				if rest := today.AddDate(0, 0, 1).Sub(at); (rest-d.Wanted.D()).Abs() > time.Minute || d.Lost != 0 ||
					len(d.Sizes) != 1 || d.Sizes[0].Size != 1 {
					t.Errorf("%s after the release: %+v", rest, d)
				}
			})
		})
	}
}

// A day is over when it is by the previous leader's clock too: a clock that is ahead sums up no day
// that is not over.
//
// proves DAY-5, SAFE-13
func TestAClockThatIsAheadSumsUpNothing(t *testing.T) {
	inWorld(t, fake.Config{}, func(w *world) {
		today := w.created(3)
		yesterday := today.AddDate(0, 0, -1)
		w.happened("web", yesterday)
		w.served(today.Add(-2 * time.Hour)) // it is yesterday by the clock of the leader before
		w.start("one")
		w.always(2*time.Hour, "yesterday is not summed up", func() bool { return !w.isDone(yesterday) })
		if !w.isDone(yesterday.AddDate(0, 0, -1)) {
			t.Error("the day before is not summed up")
		}
		w.until(30*time.Minute, "yesterday is over for all", func() bool { return w.isDone(yesterday) })
	})
}

// refusing is a store that takes no write of a key that begins so.
type refusing struct {
	store.Store
	prefix *string
}

func (s refusing) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	if *s.prefix != "" && slices.ContainsFunc(txn.Writes, func(w store.Write) bool {
		return strings.HasPrefix(w.Key, *s.prefix)
	}) {
		return 0, store.ErrDenied
	}
	return s.Store.Commit(ctx, txn)
}

// A day that cannot be written does not hold up later ones, is one warning, and is written when it
// can be.
//
// proves DAY-5, OBS-1
func TestADayThatCannotBeWritten(t *testing.T) {
	inWorld(t, fake.Config{}, func(w *world) {
		today := w.created(3)
		middle, book := today.AddDate(0, 0, -2), newLogbook()
		prefix := w.keys.DayDone(middle.Format(store.DayLayout))
		w.happened("web", middle)
		w.start("one", book.kept, func(_ *coordinator.Config, deps *coordinator.Deps) {
			deps.Store = refusing{deps.Store, &prefix}
		})
		w.until(time.Hour, "the later day is summed up", func() bool { return w.isDone(today.AddDate(0, 0, -1)) })
		w.pass(time.Hour)
		warned := count(book.since(0, slog.LevelWarn), slog.LevelWarn, "days are not summed up", "next")
		if n := warned["tried again every 10m0s"]; n != 1 || w.isDone(middle) {
			t.Errorf("warned of %v", warned)
		}
		prefix = ""
		w.until(time.Hour, "it is summed up", func() bool { return w.isDone(middle) })
	})
}

// The oldest day that cannot be written holds up the others, with one warning, so that the next
// leader still writes it.
//
// proves DAY-5, OBS-1
func TestTheOldestDayThatCannotBeWritten(t *testing.T) {
	inWorld(t, fake.Config{}, func(w *world) {
		today := w.created(2)
		first, book := today.AddDate(0, 0, -2), newLogbook()
		prefix := w.keys.DayDone(first.Format(store.DayLayout))
		w.happened("web", first)
		one := w.start("one", book.kept, func(_ *coordinator.Config, deps *coordinator.Deps) {
			deps.Store = refusing{deps.Store, &prefix}
		})
		w.pass(time.Hour)
		warned := count(book.since(0, slog.LevelWarn), slog.LevelWarn, "days are not summed up", "next")
		if n := warned["tried again every 10m0s"]; n != 1 || len(w.list(w.keys.Of(store.KindDays))) > 0 {
			t.Errorf("warned of %v", warned)
		}
		one.stop()
		w.start("two")
		w.until(time.Hour, "both are summed up",
			func() bool { return w.isDone(first) && w.isDone(today.AddDate(0, 0, -1)) })
	})
}

// A day that was removed to bound their number is not summed up again by the next leader.
//
// proves DAY-5
func TestARemovedDayStaysAway(t *testing.T) {
	inWorld(t, fake.Config{}, func(w *world) {
		today := w.created(4)
		oldest := today.AddDate(0, 0, -2).Format(store.DayLayout)
		w.happened("web", today.AddDate(0, 0, -4))
		w.put(w.keys.DayDone(oldest), store.Encode(store.DayDone{Schema: store.Schema, Day: oldest}))
		w.start("one")
		w.until(time.Hour, "yesterday is summed up", func() bool { return w.isDone(today.AddDate(0, 0, -1)) })
		w.pass(time.Hour)
		if w.isDone(today.AddDate(0, 0, -3)) || w.isDone(today.AddDate(0, 0, -4)) {
			t.Error("an older day is summed up")
		}
	})
}

// After a stop of longer than events_kept, days are summed up again once the clock has gone evenly
// for a day.
//
// proves DAY-5
func TestDaysAreSummedUpAfterALongStop(t *testing.T) {
	inWorld(t, fake.Config{}, func(w *world) {
		today := w.created(60)
		yesterday := today.AddDate(0, 0, -1)
		w.served(today.AddDate(0, 0, -30))
		w.start("one")
		w.pass(23 * time.Hour)
		if w.isDone(yesterday) {
			t.Error("a day is summed up by a clock that nothing confirms")
		}
		w.pass(2 * time.Hour)
		if !w.isDone(yesterday) || !w.isDone(today) {
			t.Error("the days are not summed up")
		}
	})
}
