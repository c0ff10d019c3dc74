package coordinator_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

func minutes(n int) *store.Duration {
	d := store.Duration(time.Duration(n) * time.Minute)
	return &d
}

// One record that is lost without a trace stops its group; a hold and its release are the way on.
//
// proves SAFE-15
func TestALossThatNobodyKnowsIsAcknowledged(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.apply(w.group("web", 3))
		ids := w.up(3)
		w.pass(time.Minute)
		one.stop()
		w.lose(ids[0])
		if !w.provider.Vanish(ids[0]) {
			t.Fatal("there is no machine")
		}
		w.start("two")
		w.always(10*time.Minute, "nothing is made, and no hold is needed",
			func() bool { return w.made() == 3 && w.hold() == nil })
		w.editShard(func(s *store.Shard) {
			s.Hold = &store.Hold{By: "ada", Why: "a record is lost", At: time.Now().UTC()}
		})
		w.pass(10 * time.Second)
		w.editShard(func(s *store.Shard) { s.Release(time.Now().UTC()) })
		w.up(3)
	})
}

// forgetAll deletes all that leaders and gateways have written about instances, and leaves the
// groups.
func (w *world) forgetAll() {
	w.t.Helper()
	var writes []store.Write
	for _, kind := range []string{
		store.KindInstances, store.KindStatus, store.KindSlots, store.KindAlive,
		store.KindReports,
	} {
		for _, kv := range w.list(w.keys.Of(kind)) {
			writes = append(writes, store.Delete(kv.Key))
		}
	}
	if _, err := w.store.Commit(w.t.Context(), store.Txn{Writes: writes}); err != nil {
		w.t.Fatal(err)
	}
}

// Groups remain, and nothing else does; no replica remembers it. What the provider lists tells of
// the loss before anything is made, however late it comes.
//
// proves SAFE-15
func TestANewLeaderWithoutRecordsWaitsForTheMachines(t *testing.T) {
	for name, c := range map[string]struct {
		slow   time.Duration
		leader string
	}{
		"a list at once":   {0, "two"}, // which no agent knows
		"a late list":      {20 * time.Second, "two"},
		"agents come back": {20 * time.Second, "one"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				one := w.start("one")
				w.apply(w.group("web", 3))
				w.up(3)
				w.pass(time.Minute)
				one.stop()
				w.forgetAll()
				if c.slow > 0 {
					w.provider.Inject(fake.Fault{Call: fake.CallList, Delay: c.slow})
				}
				w.start(c.leader)
				w.until(time.Minute, "the shard is on hold",
					func() bool { h := w.hold(); return h != nil && h.By == "leasehold" && h.Damage == 3 })
				w.always(20*time.Minute, "nothing is made or removed", func() bool {
					return w.made() == 3 && len(w.provider.Existing()) == 3 && len(w.ids()) == 0
				})
				if got := w.damaged("web"); len(got) != 3 {
					t.Errorf("the status names %v", got)
				}
			})
		})
	}
}

// awaitsList reports whether a group's status tells that nothing is done in it because records may
// be lost.
func (w *world) awaitsList(group string) bool {
	w.t.Helper()
	return slices.ContainsFunc(w.status(group).Blocked, func(b store.Blocked) bool {
		return b.Rule == "SAFE-15" && b.Instance == "" && strings.Contains(b.Until, "lists its machines")
	})
}

// A provider that lists nothing stops the groups that no leader has counted, new ones and those
// whose records were lost, and says so. Groups that were counted are healed on.
//
// proves SAFE-15
func TestAProviderThatListsNothingStopsUncountedGroupsAlone(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.apply(w.group("api", 2))
		ids := w.up(2)
		w.pass(time.Minute)
		one.stop()
		w.provider.Inject(fake.Fault{Call: fake.CallList, Err: errors.New("out of order")})
		w.start("one") // the agents know no other
		w.leads(time.Minute, "one")
		w.pass(time.Minute)
		w.apply(w.group("web", 1))
		w.until(time.Second, "the new group says what it waits for", func() bool { return w.awaitsList("web") })
		w.provider.Crash(ids[0], "exit 1")
		w.until(10*time.Minute, "the lost one is replaced",
			func() bool { return w.made() == 3 && w.status("api").Healthy == 2 })
		if w.awaitsList("api") || !w.awaitsList("web") || w.status("web").Records != nil {
			t.Errorf("api: %+v, web: %+v", w.status("api").Blocked, w.status("web"))
		}
		w.provider.Heal()
		w.until(5*time.Minute, "the new group is made", func() bool { return w.settled(3) })
		if w.awaitsList("web") || w.hold() != nil {
			t.Errorf("web: %+v, hold: %+v", w.status("web"), w.hold())
		}
	})
}

// A machine whose name tells no slot, and whose agent is silent, may have any slot of a group that
// no leader has counted: nothing is made until an operator has looked at it.
//
// proves SAFE-15
func TestAMachineOfAnUnknownSlotStopsAnUncountedGroup(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.setMood("old", mood{mute: true})
		w.extra("old", "web")
		w.start("one")
		w.until(time.Minute, "its machine is shown",
			func() bool { return len(w.list(w.keys.Of(store.KindExtras))) == 1 })
		w.apply(w.group("web", 1))
		w.always(10*time.Minute, "nothing is made", func() bool { return w.made() == 1 && w.hold() == nil })
		if got := w.damaged("web"); len(got) != 1 {
			t.Errorf("the status names %v", got)
		}
		w.editShard(func(s *store.Shard) {
			s.Hold = &store.Hold{By: "ada", Why: "a record is lost", At: time.Now().UTC()}
		})
		w.pass(10 * time.Second)
		w.editShard(func(s *store.Shard) { s.Release(time.Now().UTC()) })
		w.up(1)
	})
}
