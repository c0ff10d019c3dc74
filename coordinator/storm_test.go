//go:build !race || nightly

// What is decided here takes many days of virtual time. The race detector sees it at night alone;
// scripts/test.sh plays it without it by day.

package coordinator_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

func (w *world) back(ids ...string) {
	for _, id := range ids {
		w.setMood(id, mood{})
	}
}

// Many cut off at once are a storm: only dead instances are replaced, and when the others are back
// it is over.
//
// proves SAFE-2
func TestStormReplacesOnlyTheDead(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.group("web", 8)
		g.Storm.ProbeAfter = 0
		w.apply(g)
		ids := w.up(8)
		w.pass(5 * time.Minute)
		w.cutOff(ids[:6]...)
		w.until(time.Minute, "it is a storm", func() bool { return w.storms("web") })
		w.always(time.Hour, "none is replaced", func() bool { return w.made() == 8 && slices.Equal(w.ids(), ids) })
		w.provider.Crash(ids[0], "exit 1")
		w.until(time.Minute, "the dead one is replaced",
			func() bool { return !slices.Contains(w.ids(), ids[0]) && w.made() == 9 })
		w.always(10*time.Minute, "no other", func() bool { return w.made() == 9 })
		w.back(ids[1:6]...)
		began := time.Now()
		w.until(10*time.Minute, "it is over", func() bool { return w.status("web").Storm == nil })
		if took := time.Since(began); took < time.Minute {
			t.Errorf("over after %s, and the cool-down is 1m", took)
		}
		if w.made() != 9 || !w.settled(8) {
			t.Errorf("%d machines were made\n%s", w.made(), w.describe())
		}
	})
}

// A storm outlasts its leader: the next one sees the same losses and replaces none.
//
// proves SAFE-2
// proves SAFE-1
func TestStormSurvivesAChangeOfLeader(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.leads(time.Second, "one")
		w.start("two")
		g := w.group("web", 8)
		g.Storm.ProbeAfter = 0
		w.apply(g)
		ids := w.up(8)
		w.pass(5 * time.Minute)
		w.cutOff(ids[:6]...)
		w.until(time.Minute, "it is a storm", func() bool { return w.storms("web") })
		one.kill()
		w.leads(10*time.Second, "two")
		w.always(time.Hour, "none is replaced", func() bool { return w.made() == 8 })
	})
}

// An operator may say that a storm is none: those that are lost are then replaced, spread over the
// cool-down and within the budgets.
//
// proves SAFE-2
// proves REC-16
func TestStormIsOverridden(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.group("web", 8)
		g.Budget.MaxExpansion = 10
		g.Storm.ProbeAfter = 0
		w.apply(g)
		ids := w.up(8)
		w.request("r0", store.Request{Kind: store.RequestOverrideStorm, Group: "web"})
		w.pass(5 * time.Minute)
		w.cutOff(ids[:6]...)
		w.until(time.Minute, "it is a storm", func() bool { return w.storms("web") })
		w.pass(5 * time.Minute)
		w.request("r1", store.Request{Kind: store.RequestOverrideStorm, Group: "web"})
		began := time.Now()
		w.until(10*time.Minute, "all lost are replaced", func() bool {
			return w.settled(8) && !slices.ContainsFunc(w.ids(),
				func(id string) bool { return slices.Contains(ids[:6], id) })
		})
		var at []time.Duration
		for _, l := range w.provider.Ledger() {
			if d := l.MadeAt.Sub(began); d > 0 {
				at = append(at, d)
			}
		}
		slices.Sort(at)
		if len(at) != 6 || at[0] == at[5] || at[5] > time.Minute+5*time.Second || at[5]-at[0] < 5*time.Second {
			t.Errorf("replacements were made at %v after the word: want them spread over 1m", at)
		}
		if r := w.refusals(); len(r) != 1 {
			t.Errorf("refused: %q, want the order that came before the storm", r)
		}
	})
}

// So that no group stays as it is for good, one lost instance after the other is replaced to see
// whether that helps; while the replacement does not get healthy no other is.
//
// proves SAFE-2
func TestStormIsProbed(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.group("web", 8)
		g.MaxChecking = store.Duration(30 * time.Minute)
		w.apply(g)
		ids := w.up(8)
		w.pass(5 * time.Minute)
		for _, id := range ids[6:] {
			w.setMood(id, mood{hook: time.Second})
		}
		w.setEveryone(mood{sick: true})
		w.cutOff(ids[:6]...)
		w.until(time.Minute, "it is a storm", func() bool { return w.storms("web") })
		began := time.Now()
		w.until(10*time.Minute, "one is probed", func() bool { return w.made() == 9 })
		if took := time.Since(began); took < 5*time.Minute || took > 5*time.Minute+10*time.Second {
			t.Errorf("probed after %s, want 5m", took)
		}
		w.always(20*time.Minute, "no other is while it is not healthy",
			func() bool { return w.made() == 9 && len(w.provider.Existing()) == 9 })
		w.setEveryone(mood{})
		most := 0
		w.until(20*time.Minute, "the storm ends with the losses", func() bool {
			most = max(most, len(w.ids())-w.phases(store.Deleting))
			return w.settled(8) && w.status("web").Storm == nil
		})
		if most > 9 || w.made() != 14 {
			t.Errorf("%d were there at most, %d machines were made", most, w.made())
		}
	})
}

// Losses in two groups at once are a storm of the shard, though each group alone has few.
//
// proves SAFE-2
func TestStormOfTheShard(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		for _, name := range []string{"web", "api"} {
			g := w.group(name, 10)
			g.Storm.ProbeAfter = 0
			w.apply(g)
		}
		ids := w.up(20)
		w.pass(5 * time.Minute)
		api, web := ids[:10], ids[10:]
		cut := slices.Concat(api[:4], web[:3])
		w.cutOff(cut...)
		w.until(time.Minute, "it is a storm for both", func() bool { return w.storms("web") && w.storms("api") })
		if !w.status("web").Storm.Shard || !w.status("api").Storm.Shard {
			t.Error("it is not said to be one of the shard")
		}
		w.always(time.Hour, "none is replaced", func() bool { return w.made() == 20 })
		w.back(cut...)
		w.until(10*time.Minute, "it is over",
			func() bool { return w.status("web").Storm == nil && w.status("api").Storm == nil })
		w.unchanged(ids)
	})
}

// Fewer are no storm: each is replaced as usual.
//
// proves SAFE-2
// proves SAFE-6
func TestFewLossesAreNoStorm(t *testing.T) {
	for name, c := range map[string]struct{ size, lost int }{"2 of 2": {2, 2}, "3 of 10": {10, 3}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				w.start("one")
				w.apply(w.group("web", c.size))
				ids := w.up(c.size)
				w.pass(5 * time.Minute)
				w.cutOff(ids[:c.lost]...)
				w.until(5*time.Minute, "they are replaced", func() bool {
					return w.settled(c.size) && !slices.ContainsFunc(ids[:c.lost],
						func(id string) bool { return slices.Contains(w.ids(), id) })
				})
				if w.told("", "SAFE-2") > 0 {
					t.Error("there was a storm")
				}
			})
		})
	}
}

// Creations keep their rate, which is all that holds them up where calls are quick.
//
// proves REC-9
func TestCreationsAreAsFastAsAllowed(t *testing.T) { manyFail(t, 120, 5, 10, 200*time.Millisecond) }
