package coordinator_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/store"
)

// proves SAFE-5
// proves SAFE-1
func TestFrozenStoreCostsNoMachine(t *testing.T) {
	for _, frozen := range []time.Duration{4 * time.Second, 20 * time.Second, 2 * time.Minute, time.Hour} {
		t.Run(frozen.String(), func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				w.start("one")
				w.start("two")
				w.apply(w.group("web", 5))
				ids := w.up(5)
				w.pass(10 * time.Minute) // all grace is over
				w.db.Faults().Freeze()
				w.pass(frozen)
				w.db.Faults().Thaw() // revokes what is overdue, though its owners live
				w.pass(5 * time.Minute)
				w.unchanged(ids)
				if w.leader() == "" {
					t.Error("there is no leader")
				}
			})
		})
	}
}

// proves SAFE-5
func TestNoCoordinatorForALongTimeCostsNoMachine(t *testing.T) {
	for _, away := range []time.Duration{10 * time.Second, 2 * time.Minute, time.Hour} {
		t.Run(away.String(), func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				one, two := w.start("one"), w.start("two")
				w.apply(w.group("web", 5))
				ids := w.up(5)
				one.stop()
				two.kill()
				w.pass(away)
				w.start("one")
				w.start("two")
				w.pass(5 * time.Minute)
				w.unchanged(ids)
			})
		})
	}
}

// A dropped lease, a changed leader of etcd, a watch that is cut: none of it is evidence.
//
// proves SAFE-1
// proves DET-17
func TestDisturbancesCostNoMachine(t *testing.T) {
	for name, disturb := range map[string]func(*world, *replica){
		"leases dropped": func(w *world, _ *replica) {
			for _, kv := range w.list(w.keys.Of(store.KindAlive)) {
				w.db.Faults().DropLease(kv.Lease)
			}
		},
		"etcd elects": func(w *world, _ *replica) { w.db.Faults().ChangeLeader() },
		"compaction": func(w *world, one *replica) {
			one.store.Faults().StallWatches()
			w.pass(time.Second)
			if err := w.db.Faults().Compact(0); err != nil {
				w.t.Fatal(err)
			}
			one.store.Faults().ReleaseWatches()
		},
		"the leader is cut off and mended": func(w *world, one *replica) {
			one.store.Faults().Cut()
			w.pass(40 * time.Second)
			one.store.Faults().Mend()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				one := w.start("one")
				w.leads(time.Second, "one")
				w.start("two")
				w.apply(w.group("web", 4))
				ids := w.up(4)
				w.pass(10 * time.Minute)
				disturb(w, one)
				w.pass(5 * time.Minute)
				w.unchanged(ids)
			})
		})
	}
}

// silence makes an agent fall silent whose machine goes on running.
func (w *world) silence(instance string) { w.setMood(instance, mood{mute: true}) }

// proves DET-5
// proves DET-7
// proves DET-17
func TestSilentAgentIsReplacedAfterItsLease(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.group("web", 3))
		ids := w.up(3)
		w.pass(10 * time.Minute)
		w.silence(ids[0])
		ttl := w.group("web", 3).Report.LeaseTTL.D()
		w.always(ttl-5*time.Second, "nothing happens before its lease can have ended",
			func() bool { return w.made() == 3 })
		w.until(10*time.Second, "a replacement is made", func() bool { return w.made() == 4 })
		w.until(time.Minute, "the silent one is gone",
			func() bool { return w.settled(3) && !slices.Contains(w.ids(), ids[0]) })
	})
}

// proves SAFE-1
func TestNewLeaderGivesAgentsTimeToReturn(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.leads(time.Second, "one")
		w.start("two")
		g := w.group("web", 3)
		w.apply(g)
		ids := w.up(3)
		w.pass(10 * time.Minute)
		w.silence(ids[0])
		w.silence(ids[1])
		w.provider.Crash(ids[1], "exit 1") // dead by the provider's word: there is nothing to wait for
		one.kill()
		w.leads(sessionTTL+time.Second, "two")
		began := time.Now()
		w.until(15*time.Second, "the dead one is replaced",
			func() bool { return !slices.Contains(w.ids(), ids[1]) || w.made() == 4 })
		grace := g.Report.LeaseTTL.D() + store.DefaultShardSettings().ReconnectMax.D()
		w.always(grace-time.Since(began)-time.Second, "the silent one is given time",
			func() bool { return w.made() == 4 })
		// the grace covers addresses that do not answer, too
		w.until(30*time.Second, "it is replaced", func() bool { return w.made() == 5 })
	})
}

// proves ELECT-2
// proves SAFE-7
func TestLeadershipPassesOn(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.leads(time.Second, "one")
		two := w.start("two")
		w.apply(w.group("web", 2))
		ids := w.up(2)
		w.pass(time.Minute)

		one.cancel() // resigns
		if took := w.leads(time.Second, "two"); took > time.Second {
			t.Errorf("the next leader acts after %s", took)
		}
		<-one.done
		w.start("three")
		w.pass(time.Minute)

		two.kill()
		if took := w.leads(sessionTTL+time.Second, "three"); took < time.Second {
			t.Errorf("the next leader acts after %s: the dead one resigned", took)
		}
		w.pass(5 * time.Minute)
		w.unchanged(ids)
	})
}

// A leader that is deposed while it stands at a boundary writes nothing more.
//
// proves SAFE-7
func TestDeposedLeaderWritesNothing(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		var mu sync.Mutex
		hold, held := false, map[string]bool{}
		halted := func(id string) (free func(), about func() bool,
			option func(*coordinator.Config, *coordinator.Deps),
		) {
			release := make(chan struct{})
			about = func() bool { mu.Lock(); defer mu.Unlock(); return held[id] }
			return sync.OnceFunc(func() { close(release) }), about, before(func(boundary, _ string) {
				mu.Lock()
				stop := hold && boundary == "commit DET-4" // not a status, of which the journal would not tell
				held[id] = held[id] || stop
				mu.Unlock()
				if stop {
					<-release
				}
			})
		}
		freeOne, oneIsAboutToAct, haltedOne := halted("one")
		freeTwo, twoIsAboutToAct, haltedTwo := halted("two")
		defer freeOne()
		defer freeTwo()
		w.start("one", haltedOne)
		w.leads(time.Second, "one")
		w.start("two", haltedTwo)
		w.pass(time.Second)
		w.apply(w.group("web", 2))
		ids := w.up(2)
		mu.Lock()
		hold = true
		mu.Unlock()
		w.provider.Crash(ids[0], "exit 1")
		w.until(30*time.Second, "the leader is about to act", oneIsAboutToAct)

		// Its key goes, but its session and its connection are well, and the next leader has not
		// touched the records that it compares: only the fence stands between it and them.
		key, _ := store.LeaderNow(w.list(w.keys.Of(store.KindLeader)))
		w.remove(key.Key)
		w.leads(time.Second, "two")
		taken := w.store.Watch(w.t.Context(), w.keys.Prefix(), 0)
		w.until(30*time.Second, "the next leader is about to act", twoIsAboutToAct)
		mu.Lock()
		hold = false
		mu.Unlock()
		freeOne()
		w.pass(time.Second)
		freeTwo()
		w.until(2*time.Minute, "the crashed one is replaced",
			func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[0]) })
		last := w.put(w.keys.Request("end"), []byte(`{"schema": 1}`))
		for b := range taken {
			for _, e := range b.Events {
				kind, _, _ := w.keys.Split(e.KV.Key)
				if kind != store.KindEvents || e.Deleted {
					continue
				}
				if v, err := store.Decode[store.JournalEntry](e.KV); err != nil || v.Record.By == "one" {
					t.Errorf("the deposed leader wrote %+v, %v", v.Record, err)
				}
			}
			if b.Revision >= last {
				break
			}
		}
		if w.made() != 3 {
			t.Errorf("%d machines were made", w.made())
		}
	})
}

// The leader does not see that the operator has paused the group: its decision fails on the
// revision, and is not made again.
//
// proves SAFE-3
// proves SAFE-4
func TestNothingIsDestroyedOnAStaleCache(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		g := w.group("web", 2)
		w.apply(g)
		ids := w.up(2)
		w.pass(time.Minute)
		one.store.Faults().StallWatches()
		g.Paused = true
		w.apply(g)
		w.provider.Crash(ids[0], "exit 1")
		w.always(time.Minute, "nothing is made or removed",
			func() bool { return w.made() == 2 && slices.Equal(w.ids(), ids) })
		one.store.Faults().ReleaseWatches()
		w.always(time.Minute, "nothing is made or removed",
			func() bool { return w.made() == 2 && slices.Equal(w.ids(), ids) })
	})
}

// proves SAFE-12
func TestHoldStopsQueuedCalls(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.editShard(func(s *store.Shard) { s.Settings.CreateRate, s.Settings.CreateBurst = 0.2, 1 })
		w.start("one")
		w.leads(time.Second, "one")
		w.apply(w.group("web", 6))
		w.until(time.Minute, "two are made", func() bool { return w.made() == 2 })
		w.editShard(func(s *store.Shard) {
			s.Hold = &store.Hold{By: "ann", Why: "etcd is being moved", At: time.Now().UTC()}
		})
		w.pass(time.Second)
		w.provider.Crash(w.provider.Existing()[0], "exit 1")
		w.always(5*time.Minute, "nothing is made or removed",
			func() bool { return w.made() == 2 && len(w.provider.Existing()) == 2 })
		w.editShard(func(s *store.Shard) { s.Hold = nil })
		w.up(6)
	})
}

// proves SAFE-13
// proves DET-11
func TestRegistrationTimeoutStandsStillWhileNobodyServes(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.leads(time.Second, "one")
		w.everyone = mood{mute: true} // before any machine is there
		g := w.group("web", 1)
		w.apply(g)
		w.until(time.Minute, "the machine boots", func() bool {
			list := w.instances()
			return len(list) == 1 && list[0].Record.Phase == store.Booting
		})
		booting := time.Now()
		w.pass(2 * time.Minute)
		one.stop()
		w.pass(time.Hour)
		away := time.Hour
		two := w.start("two")
		w.leads(2*time.Second, "two")
		w.pass(time.Minute)
		two.cancel() // the timer goes on across a change of leader
		w.start("three")
		w.leads(2*time.Second, "three")
		left := g.RegistrationTimeout.D() - (time.Since(booting) - away)
		w.always(left-15*time.Second, "it is given its time", func() bool { return w.made() == 1 })
		w.until(time.Minute, "it is replaced", func() bool { return w.made() == 2 })
	})
}
