package judge

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

func (s *story) held(yes bool) {
	shard := store.Shard{Schema: 1, ID: "s", Name: "default", Settings: store.DefaultShardSettings()}
	if yes {
		shard.Hold = &store.Hold{By: "me", Why: "to look"}
	}
	s.operator(put(s.keys.Shard(), shard))
}

func (s *story) paused(yes bool) {
	s.group("web", 2, func(g *store.Group) { g.Paused = yes })
}

// lists is the leader at work.
func (s *story) lists(d time.Duration) {
	for range d / time.Second {
		s.call(history.List, "")
		s.pass(time.Second - beat)
	}
}

func TestNothingIsDoneOnHoldOrInAPausedGroup(t *testing.T) {
	for rule, stand := range map[string]func(*story, bool){"SAFE-12": (*story).held, "REC-13": (*story).paused} {
		for name, act := range map[string]func(*story){
			"requested": func(s *story) { s.requested("web", "web-0-bbbbbb", 0, one) },
			"asked for": func(s *story) { s.step("web-0-cccccc", store.Creating) },
			"removed":   func(s *story) { s.step(one, store.Deleting) },
			"restarted": func(s *story) { s.step(one, store.Stopping) },
			"drained":   func(s *story) { s.step(one, store.Draining) },
		} {
			t.Run(rule+" "+name, func(t *testing.T) {
				begin := func() *story {
					s := web(t)
					s.group("web", 2, func(g *store.Group) { g.Budget.MaxExpansion = 3 })
					s.harm(one, history.Sick)
					s.shows(one, false)
					s.requested("web", "web-0-cccccc", 0, one)
					if name == "requested" { // once is enough in a slot
						s.step("web-0-cccccc", store.Deleting)
						s.txn(drop(s.keys.Instance("web-0-cccccc")),
							s.entry(store.JournalEntry{Instance: "web-0-cccccc", From: store.Deleting}))
					}
					return s
				}
				s := begin()
				stand(s, true)
				act(s)
				s.broken(rule)

				s = begin()
				stand(s, true)
				s.pass(time.Minute)
				stand(s, false)
				act(s)
				s.innocent()
			})
		}
	}
}

func TestWhatIsOnlyNotedGoesOnOnHold(t *testing.T) {
	s := web(t)
	s.group("web", 3)
	s.requested("web", "web-2-aaaaaa", 2, "")
	s.step("web-2-aaaaaa", store.Creating)
	s.held(true)
	s.begun(history.Create, "web-2-aaaaaa") // recorded before
	s.machine("web-2-aaaaaa", history.Made)
	s.ended(history.Create, "web-2-aaaaaa")
	s.machine("web-2-aaaaaa", history.Booted)
	s.step("web-2-aaaaaa", store.Booting)
	s.healthy("web-2-aaaaaa")
	s.innocent()
}

func TestNoRemovalBeginsOnHold(t *testing.T) {
	for rule, stand := range map[string]func(*story, bool){"SAFE-12": (*story).held, "REC-13": (*story).paused} {
		removed := func(after time.Duration, atWork bool, again func(*story)) *story {
			s := web(t)
			s.harm(one, history.Sick)
			s.shows(one, false)
			s.step(one, store.Deleting)
			stand(s, true)
			if atWork {
				s.lists(after)
			} else {
				s.pass(after)
			}
			again(s)
			s.call(history.Stop, one)
			s.call(history.Delete, one)
			return s
		}
		nothing := func(*story) {}
		removed(20*time.Second, true, nothing).broken(rule, rule)
		removed(3*time.Second, true, nothing).innocent()
		removed(20*time.Second, false, nothing).innocent() // the replica stood still
		removed(20*time.Second, true, func(s *story) { stand(s, false) }).innocent()
	}
}

// restore begins another line with what etcd held: the group of two, without the last revisions.
func restore(t *testing.T, change func(*story)) *story {
	s := web(t)
	s.group("web", 2)
	there := []write{put(s.keys.Group("web"), s.specs["web"]), put(s.keys.Shard(), store.Shard{Schema: 1, ID: "s"})}
	for _, id := range []string{one, "web-1-aaaaaa"} {
		there = append(there, put(s.keys.Instance(id), s.world[id]))
	}
	s.line, s.rev = 1, 4
	for _, w := range there {
		s.rev++
		s.add(history.Event{Change: &history.Change{Line: 1, Revision: s.rev, Key: w.key, Value: w.value, Found: true}})
	}
	change(s)
	s.harm(one, history.Sick)
	s.pass(20 * time.Second)
	s.requested("web", "web-0-bbbbbb", 0, one)
	return s
}

func TestAShardWhoseEtcdWasRestoredHoldsItself(t *testing.T) {
	restore(t, func(*story) {}).broken("SAFE-12")
	restore(t, func(s *story) { s.held(true); s.held(false) }).innocent()
	restore(t, func(s *story) { s.rev += 1000 }).innocent()
}
