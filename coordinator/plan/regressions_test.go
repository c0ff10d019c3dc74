package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A slot that a roll has emptied is filled by the roll, also once the machine that left it is gone
// and a new leader has only the records. Filled from the last good template it would be outdated,
// and the roll would empty it again, without end.
//
// proves ROLL-1, ROLL-9, REC-18
func TestASlotThatARollEmptiedIsFilledFromItsTemplate(t *testing.T) {
	for _, drains := range []bool{false, true} {
		for _, leader := range []bool{false, true} {
			s := newStory(t)
			hook := ""
			if drains {
				hook = " hook=./drain drain_timeout=1m"
			}
			s.play("group size=2 max_expansion=0 max_unavailable=1" + hook + "\nsettle\ngroup type=large")
			good, g := read[store.Status](s.world, s.keys.Status(s.group)).Record.LastGood, s.spec().Record
			wanted := g.InstanceSpec().TemplateHash()
			if good == nil || good.Template == wanted {
				t.Fatalf("the last good template is %+v", good)
			}
			made, empty := 0, false
			s.told = func(a Action) {
				if a.To == store.Pending {
					made++
					if got := s.instance(a.Instance).Record.Template; got != wanted {
						t.Errorf("drains %t, new leader %t: %s is made from %s, want %s", drains, leader, a.Instance,
							got, wanted)
					}
				}
			}
			for range 120 {
				s.run(time.Second, time.Second)
				if few := len(s.instances()) < 2; leader && few != empty {
					if empty = few; few {
						s.leaderChange()
					}
				}
			}
			if st := read[store.Status](s.world, s.keys.Status(s.group)).Record; made != 2 || st.Rollout != nil ||
				st.Health != 100 {
				t.Errorf("drains %t, new leader %t: %d were made, health %d%%, the roll is %+v", drains, leader, made,
					st.Health, st.Rollout)
			}
		}
	}
}

// In a damaged slot nothing takes anyone's place, whatever two members there have come to. A
// replacement is written by the action of the instance that it replaces, which may keep its phase.
//
// proves SAFE-15
func TestNobodyIsReplacedInADamagedSlot(t *testing.T) {
	members := map[string]func(w *world, id string){
		"condemned and pending": func(w *world, id string) { w.place(id, 0, store.Pending, condemned(false)) },
		"ordered to go now":     func(w *world, id string) { w.place(id, 0, store.Running, condemned(true)) },
		"condemned and running": func(w *world, id string) { w.place(id, 0, store.Running, condemned(false)) },
		"overdue in checking":   func(w *world, id string) { w.place(id, 0, store.Checking); w.stuck(id) },
		"overdue in booting": func(w *world, id string) {
			w.place(id, 0, store.Booting)
			w.see(id, func(in *Instance) { in.PhaseStart = w.now.Add(-time.Hour) })
		},
		"unhealthy": func(w *world, id string) { w.place(id, 0, store.Running); w.turn(id, false) },
		"outdated":  func(w *world, id string) { w.place(id, 0, store.Running, outdated) },
		"dead":      func(w *world, id string) { w.place(id, 0, store.Running); w.kill(id) },
		"none":      func(*world, string) {},
	}
	did := 0
	for first, placeFirst := range members {
		for second, placeSecond := range members {
			for _, damaged := range []bool{false, true} {
				w := newTestWorld(t)
				w.edit(func(g *store.Group) { g.Size, g.Budget.MaxExpansion = 2, 3 })
				placeFirst(w, "a")
				placeSecond(w, "b")
				w.place("c", 1, store.Running)
				w.pass(0)
				s := w.snapshot()
				if damaged {
					s.Damaged = []store.Damaged{lostSlot(w, "web-0-lost", 0, 7)}
					s.Groups[0].Damaged = s.Damaged
				}
				var done []string
				for _, a := range Compute(s, w.now).Actions {
					changes := a.From != a.To && (a.To == store.Pending || a.To == store.Deleting ||
						a.To == store.Draining || a.To == store.Stopping)
					if made := w.made(&a); len(made) > 0 || changes && (a.Slot == nil || *a.Slot == 0) {
						done = append(done, fmt.Sprint(a.Rule, " ", a.Instance, " ", a.What()))
					}
				}
				if damaged && len(done) > 0 {
					t.Errorf("%s, %s: %q", first, second, done)
				}
				if !damaged {
					did += len(done)
				}
			}
		}
	}
	if did < 60 {
		t.Errorf("only %d changes were due where nothing is damaged: the test tries nothing", did)
	}
}
