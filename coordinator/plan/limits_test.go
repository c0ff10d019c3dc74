package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// limited gives the shard a limit, as `leasehold config set` does.
func (w *world) limited(name, value string) {
	w.editShard(func(s *store.Shard) {
		if err := s.Settings.Set(name, value); err != nil {
			w.t.Fatalf("%v", err)
		}
	})
}

// full is a world with two instances, a and b, whose spec is in force. Changes are of b.
func full(t *testing.T, change ...func(*store.Instance)) *world {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size, g.Labels = 2, map[string]string{"team": "shop"} })
	w.place("a", 0, store.Running)
	w.place("b", 1, store.Running, change...)
	w.pass(0)
	w.step()
	return w
}

// At a limit nothing makes a machine beside the others: what heals removes first where it may, and
// its slot waits for room; all other work waits. With room for one more, the work continues.
//
// proves CAP-1
func TestNothingIsMadeAtALimit(t *testing.T) {
	hour, kept := store.Duration(time.Hour), func(*store.Instance) {}
	for _, c := range []struct {
		name    string
		b       func(*store.Instance)
		harm    func(*world)
		limit   string
		want    string // at the limit
		room    string // with room for one more
		blocked bool   // the status says what waits
	}{
		{
			"a notice", kept, func(w *world) { w.change("b", spotted) },
			"limit_instances=", "", "SPOT-2 +1", false, // it drains
		},
		{"a death", kept, func(w *world) { w.kill("b") }, "limit_instances=", "DET-4 -b", "DET-4 -b, DET-4 +1", false},
		{
			"a failed one that may go first", kept, func(w *world) {
				w.edit(func(g *store.Group) { g.Budget.MaxUnavailable = new(store.Amount(1)) })
				w.turn("b", false)
			}, "limit_by_provider=cloud:", "HEAL-2 -b", "HEAL-2 +1", false,
		},
		{"a failed one", kept, func(w *world) { w.turn("b", false) }, "limit_by_label=team=shop:", "", "HEAL-2 +1", true},
		{
			"growth", kept, func(w *world) { w.edit(func(g *store.Group) { g.Size = 3 }) }, "limit_by_label=team=shop:", "",
			"REC-3 +2", true,
		},
		{
			"a roll", kept, func(w *world) { w.edit(func(g *store.Group) { g.Template.InstanceType = "large" }) },
			"limit_instances=", "", "ROLL-1 +0", true,
		},
		{
			"expiry", old(2 * time.Hour), func(w *world) { w.edit(func(g *store.Group) { g.Expiry.EligibleAge = &hour }) },
			"limit_by_provider=cloud:", "", "EXP-1 +1", true,
		},
		{
			"forced expiry", old(2 * time.Hour), func(w *world) { w.edit(func(g *store.Group) { g.Expiry.ForcedAge = &hour }) },
			"limit_instances=", "", "EXP-1 +1", true,
		},
		{
			"rebalancing", kept, func(w *world) { w.edit(func(g *store.Group) { g.Spread = store.SpreadEven }) },
			"limit_instances=", "", "REC-17 +0", true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := full(t, c.b)
			c.harm(w)
			w.pass(10 * time.Second) // it is listed
			name, of, _ := strings.Cut(c.limit, "=")
			w.limited(name, of+"2")
			if got := w.briefly(); got != c.want {
				t.Errorf("planned %q at the limit, want %q", got, c.want)
			}
			if held := w.blockedBy(); c.blocked != slices.ContainsFunc(held,
				func(b store.Blocked) bool { return b.Kind == store.BlockedByLimit && b.Rule == "CAP-1" }) {
				t.Errorf("blocked: %+v", held)
			}
			w.limited(name, of+"3")
			if got := w.briefly(); got != c.room {
				t.Errorf("planned %q with room, want %q", got, c.room)
			}
		})
	}
}

// An order for another instance is refused at a limit; it does not wait for room.
//
// proves CAP-1
func TestOrdersAreRefusedAtALimit(t *testing.T) {
	byHand := func(r *store.Request) { r.Token, r.Valid = handToken, store.Duration(time.Hour) }
	for kind, change := range map[store.RequestKind]func(*store.Request){
		store.RequestCreate: func(*store.Request) {}, store.RequestBootstrap: byHand,
	} {
		t.Run(string(kind), func(t *testing.T) {
			for _, limit := range []string{"2", "3"} {
				w := full(t, func(*store.Instance) {})
				w.limited("limit_instances", limit)
				w.order(kind, "", change)
				p, _ := w.step()
				refused := slices.ContainsFunc(p.Actions, func(a Action) bool {
					return a.Kind == store.EntryRefusal && strings.Contains(a.Why, "limit_instances 2 is reached")
				})
				if all := len(w.instances()); refused != (limit == "2") || all == 2 != refused {
					t.Errorf("limit %s: refused %t, %d instances", limit, refused, all)
				}
			}
		})
	}
}

// Each creation in a shard with limits compares the key that all of them write, whatever group it
// is in: of two that were planned with room for one, the second fails.
//
// proves CAP-1, SAFE-4
func TestCreationsOfAllGroupsTakeTurnsAtLimits(t *testing.T) {
	for name, harm := range map[string]func(*world){
		"growth":        func(w *world) { w.edit(func(g *store.Group) { g.Size = 3 }) },
		"a replacement": func(w *world) { w.turn("b", false) },
		"a dead one":    func(w *world) { w.kill("b") },
		"a notice":      func(w *world) { w.change("b", spotted) },
		"a roll":        func(w *world) { w.edit(func(g *store.Group) { g.Template.InstanceType = "large" }) },
		"on demand":     func(w *world) { w.order(store.RequestCreate, "") },
	} {
		t.Run(name, func(t *testing.T) {
			w := full(t, func(*store.Instance) {})
			harm(w)
			w.pass(10 * time.Second)
			for _, limited := range []bool{false, true} {
				if limited {
					w.limited("limit_instances", "9")
				}
				s := w.snapshot()
				p, turns, key := Compute(s, w.now), NewTurns(&s), w.keys.Turn(LimitsTurn)
				made := 0
				for i := range p.Actions {
					a := &p.Actions[i]
					if len(w.made(a)) == 0 {
						continue
					}
					made++
					conditions, writes := turns.Txn(a)
					compared := slices.Contains(conditions, store.At(key, s.LimitsTurn))
					written := slices.ContainsFunc(writes, func(w store.Write) bool { return w.Key == key && !w.Delete })
					if compared != limited || written != limited {
						t.Errorf("limits %t: compared %t, written %t", limited, compared, written)
					}
				}
				if made != 1 {
					t.Errorf("%d creations are planned, want 1", made)
				}
			}
		})
	}
}
