package plan

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A roll that rests does not go on in a grace. Status names the end of a grace that lasts longer
// than the rest, once and for all readers.
//
// proves ROLL-5, ROLL-8, SAFE-13
func TestAGraceThatLastsLongerThanARest(t *testing.T) {
	const left = 5 * time.Minute // of the rest
	for name, c := range map[string]struct {
		grace time.Duration // from now on
		named bool
	}{
		"none":                          {-time.Hour, false},
		"it ends before the rest":       {left - time.Second, false},
		"it ends after the rest":        {left + time.Minute, true},
		"it ends long after the rest":   {time.Hour, true},
		"it has ended a moment ago too": {0, false},
	} {
		for _, byZone := range []bool{false, true} {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) {
				g.Size, g.Rollout.Canary = 3, store.Amount(1)
				if byZone {
					g.Rollout.Canary, g.Rollout.Order = 0, store.OrderZone
					g.Rollout.Bake = store.DefaultCanaryDuration
				}
			})
			w.place("a", 0, store.Running)
			w.place("b", 1, store.Running, outdated, zone("b"))
			w.place("c", 2, store.Running, outdated, zone("b"))
			d := w.drafted()
			rests := d.timer(store.DefaultCanaryDuration.D())
			r := &store.Rollout{Template: d.hash, Since: w.now, Rests: &rests, GraceUntil: w.now.Add(time.Second)}
			if r.Canary, r.Canaries = 1, []int{0}; byZone {
				r.Canary, r.Canaries, r.Zone = 0, nil, "a"
			}
			d.roll.rollout, d.g.Due = r, Due{store.TimerRests: w.now.Add(left)}
			d.s.GraceEnd = w.now.Add(c.grace)
			d.stages.follow()
			want := time.Time{}
			if c.named {
				want = d.s.GraceEnd
			}
			if !d.stages.rests || !r.GraceUntil.Equal(want) {
				t.Errorf("%s, by zone %t: it rests: %t, until %s, want %s", name, byZone, d.stages.rests, r.GraceUntil, want)
			}
			kv := store.KV{Value: store.Encode(store.Status{Schema: store.Schema, Rollout: r})}
			if read, err := store.Decode[store.Status](kv); err != nil || !reflect.DeepEqual(read.Record.Rollout, r) {
				t.Errorf("%s: it reads back as %+v, %v: each plan would write it again", name, read.Record.Rollout, err)
			}
			d.blocked = nil
			d.stages.staged(d.roll.outdatedInTurn())
			if len(d.blocked) != 1 || !d.blocked[0].Of.Opens.Equal(want) ||
				strings.Contains(d.blocked[0].Until, "SAFE-1") != c.named {
				t.Errorf("%s, by zone %t: it waits as %+v", name, byZone, d.blocked)
			}
			// an operator waits for neither
			if byZone {
				continue
			}
			d.stages.promote(store.Versioned[store.Request]{Record: store.Request{By: "ada"}})
			if r.Promoted == "" || !r.GraceUntil.IsZero() || !r.RestsTo().IsZero() {
				t.Errorf("%s: promoted, it is %+v", name, r)
			}
		}
	}
}
