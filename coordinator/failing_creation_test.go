package coordinator_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// A replacement that the provider never makes holds the only room for healing. Once it has had the
// time that DET-10 gives, the room goes to others.
//
// proves HEAL-13
func TestCreationThatKeepsFailingDoesNotBlockOtherSlots(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.group("web", 3)
		g.MaxChecking = store.Duration(4 * time.Minute)
		w.apply(g)
		ids := w.up(3)
		w.pass(10 * time.Minute)
		sick := ids[:2]
		mend := w.provider.Inject(fake.Fault{
			Call: fake.CallCreate,
			Err:  errors.New("500 internal error"),
		})
		for _, id := range sick {
			w.setMood(id, mood{sick: true})
		}
		replacement := func() string {
			for _, in := range w.instances() {
				if in.Record.Replaces != "" {
					return in.Record.ID
				}
			}
			return ""
		}
		w.until(time.Minute, "a replacement is tried", func() bool { return replacement() != "" })
		failing := replacement()
		w.provider.Inject(fake.Fault{
			Call: fake.CallCreate, Instance: failing,
			Err: errors.New("500 internal error"),
		})
		mend() // of all others
		w.always(g.MaxChecking.D()-time.Second, "it is tried again and again, and nobody is made beside it",
			func() bool {
				return replacement() == failing && w.made() == 3
			})
		w.until(2*time.Minute, "both slots are healed", func() bool {
			now := w.ids()
			return w.settled(3) && !slices.Contains(now, sick[0]) && !slices.Contains(now, sick[1])
		})
		if l := w.provider.Life(failing); l.Made != 0 || l.Calls[fake.CallCreate] < 5 || w.made() != 5 {
			t.Errorf("%s was made %d times in %d calls; %d machines in all, want 5", failing, l.Made,
				l.Calls[fake.CallCreate], w.made())
		}
		for _, s := range records[store.Slot](w, store.KindSlots) {
			if n := len(s.Record.Failures); n > 1 {
				t.Errorf("slot %d has failed %d times: a creation that made nothing is counted", s.Record.Number, n)
			}
		}
	})
}

// An ID that an earlier call may still make a machine of stays in its zone, whatever the provider
// says later: in another zone it could become a second machine.
//
// proves SAFE-8
// proves HEAL-12
func TestUncertainCreationIsNeverMovedToAnotherZone(t *testing.T) {
	full := fake.Fault{Call: fake.CallCreate, Err: provider.ErrCapacity}
	for _, c := range []struct {
		name  string
		first *fake.Fault // of its first call, before its zone is full
		crash bool        // of the leader, after the first call
		moves bool
	}{
		{"its zone is full", nil, false, true},
		{
			"a call was refused before", &fake.Fault{Err: provider.ThrottledFor(time.Second)}, false,
			true,
		},
		{
			"a call has hung before", &fake.Fault{Hang: true, Effect: fake.EffectLate, Late: time.Hour},
			false, false,
		},
		{
			"a call has failed before, who knows how far", &fake.Fault{Err: errors.New("500 internal error")},
			false, false,
		},
		{
			"a call was refused under another leader, as far as this one knows",
			&fake.Fault{Err: provider.ErrCapacity}, true, false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := quick
			config.CallTimeout = 5 * time.Second
			inWorld(t, config, func(w *world) {
				one := w.start("one")
				w.leads(time.Second, "one")
				w.start("two")
				w.pass(time.Second)
				if c.first != nil {
					first := *c.first
					first.Call, first.Times = fake.CallCreate, 1
					w.provider.Inject(first)
				}
				if !c.crash {
					w.provider.Inject(full)
				}
				w.apply(w.group("web", 1))
				w.until(10*time.Second, "it is asked for", func() bool {
					list := w.instances()
					return len(list) == 1 && w.provider.Life(list[0].Record.ID).Calls[fake.CallCreate] > 0
				})
				was := w.instances()[0].Record
				if c.crash {
					one.kill()
					w.provider.Inject(full)
				}
				seen := map[string]bool{}
				w.always(3*time.Minute, "it is the same instance", func() bool {
					list := w.instances()
					seen[list[0].Record.Zone] = true
					return len(list) == 1 && list[0].Record.ID == was.ID
				})
				if calls := w.provider.Life(was.ID).Calls[fake.CallCreate]; calls < 5 {
					t.Errorf("only %d calls were made", calls)
				}
				if moved := len(seen) > 1; moved != c.moves {
					t.Errorf("moved: %t, want %t; zones %v", moved, c.moves, seen)
				}
				told := slices.ContainsFunc(w.journal(), func(e store.Versioned[store.JournalEntry]) bool {
					return strings.HasPrefix(e.Record.What, "tried in zone")
				})
				if told != c.moves {
					t.Errorf("the journal tells that it was moved: %t, want %t", told, c.moves)
				}
			})
		})
	}
}
