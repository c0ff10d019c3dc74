package coordinator_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// serving is a group with a workload and vars.
func (w *world) serving(size int) store.Group {
	g := w.group("web", size)
	g.Workload.Run = []string{"serve"}
	g.Vars = map[string]string{"greeting": "hello"}
	g.MaxChecking = store.Duration(30 * time.Second)
	return g
}

// working counts the instances that run and are healthy by their agents' word.
func (w *world) working() int {
	w.t.Helper()
	healthy := map[string]bool{}
	for _, r := range records[store.Report](w, store.KindReports) {
		healthy[r.Record.Instance] = r.Record.Healthy
	}
	n := 0
	for _, in := range w.instances() {
		if in.Record.Phase == store.Running && healthy[in.Record.ID] {
			n++
		}
	}
	return n
}

// rolls waits for the end of a roll that has begun, and returns how few were at work, and how many
// there were before deleting, meanwhile.
func (w *world) rolls(limit time.Duration) (least, most int) {
	w.t.Helper()
	least = 1000
	look := func() {
		least, most = min(least, w.working()), max(most, len(w.ids())-w.phases(store.Deleting))
	}
	w.until(time.Minute, "the roll begins",
		func() bool { look(); return w.status("web").Rollout != nil || w.toldOf("is complete") > 0 })
	w.until(limit, "the roll is complete",
		func() bool { look(); return w.status("web").Rollout == nil && w.status("web").OK })
	return least, most
}

// toldOf counts the journal's entries that say something.
func (w *world) toldOf(what string) int {
	w.t.Helper()
	n := 0
	for _, e := range w.journal() {
		if strings.Contains(e.Record.What, what) {
			n++
		}
	}
	return n
}

// New vars that no command line names reach the agents without taking anything down, one after the
// other.
//
// proves ROLL-1
// proves ROLL-2
func TestVarsAreUpdatedLive(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.serving(3))
		ids := w.up(3)
		g := w.edit("web", func(g *store.Group) { g.Vars["greeting"] = "hi" })
		hash := g.InstanceSpec().ConfigHash()
		if least, _ := w.rolls(5 * time.Minute); least < 3 {
			t.Errorf("only %d were at work meanwhile", least)
		}
		w.unchanged(ids)
		for _, id := range ids {
			if _, n := w.work(id).runs(); n != 1 || w.work(id).config != hash || !maps.Equal(w.work(id).vars, g.Vars) {
				t.Errorf("%s: started %d times, has config %s %v, want %s", id, n, w.work(id).config, w.work(id).vars,
					hash)
			}
		}
		var order []string
		for _, e := range w.story() {
			if e.Rule == "ROLL-2" {
				order = append(order, e.Instance)
			}
		}
		if len(order) != 3 {
			t.Errorf("updated: %q", order)
		}
	})
}

// An instance that has not confirmed its update delays the next one.
//
// proves ROLL-2
// proves ROLL-4
func TestLiveUpdateThatIsNotConfirmedKeepsTheOthers(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.setEveryone(mood{ignores: true})
		g := w.serving(3)
		w.apply(g)
		ids := w.up(3)
		w.edit("web", func(g *store.Group) { g.Vars["greeting"] = "hi" })
		updated := func() (n int) {
			for _, id := range ids {
				if w.instance(id).Spec.Vars["greeting"] == "hi" {
					n++
				}
			}
			return n
		}
		w.until(time.Minute, "the first is sent it", func() bool { return updated() == 1 })
		w.always(9*time.Minute, "no other is", func() bool { return updated() == 1 })
		w.until(2*time.Minute, "the roll is stalled",
			func() bool { r := w.status("web").Rollout; return r != nil && r.Stalled != "" })
		w.setEveryone(mood{})
		for _, id := range ids {
			w.provider.Crash(id, "exit 1") // only a new stream is told again
		}
		w.until(5*time.Minute, "all have it",
			func() bool { return w.status("web").Rollout == nil && w.status("web").OK })
	})
}

// A rollback is complete when the agents confirm it: what they reported before the change says the
// same, and confirms nothing.
//
// proves ROLL-2
// proves ROLL-4
func TestRollbackIsConfirmedByAFreshReport(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.serving(3)
		w.apply(g)
		ids := w.up(3)
		w.setEveryone(mood{ignores: true})
		w.edit("web", func(g *store.Group) { g.Vars = map[string]string{"greeting": "hi"} })
		w.until(time.Minute, "the first is sent it", func() bool {
			return slices.ContainsFunc(ids,
				func(id string) bool { return w.instance(id).Spec.Vars["greeting"] == "hi" })
		})
		w.apply(g)
		w.until(time.Minute, "all records are as before", func() bool {
			return !slices.ContainsFunc(ids,
				func(id string) bool { return w.instance(id).Spec.Vars["greeting"] == "hi" })
		})
		w.always(5*time.Minute, "the rollback is not complete",
			func() bool { return w.status("web").Rollout != nil && w.toldOf("is complete") == 0 })
		w.setEveryone(mood{})
		for _, id := range ids {
			w.provider.Crash(id, "exit 1") // only a new stream is told again
		}
		w.until(5*time.Minute, "the rollback is complete",
			func() bool { return w.status("web").Rollout == nil && w.status("web").OK })
	})
}

// Another command is run by a restart in place, within max_unavailable.
//
// proves ROLL-2
// proves HEAL-3
func TestCommandIsRolledByRestarts(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.serving(4))
		ids := w.up(4)
		w.edit("web", func(g *store.Group) { g.Workload.Run = []string{"serve", "--better"} })
		if least, _ := w.rolls(5 * time.Minute); least < 3 {
			t.Errorf("only %d were at work meanwhile", least)
		}
		w.unchanged(ids)
		for _, id := range ids {
			if s, n := w.work(id).runs(); n != 2 || !slices.Equal(s.run, []string{"serve", "--better"}) ||
				w.provider.Life(id).Boots != 1 {
				t.Errorf("%s: started %d times, last with %q; booted %d times", id, n, s.run, w.provider.Life(id).Boots)
			}
		}
	})
}

// Another template needs other machines: each is made first, within max_expansion, and no instance
// misses one meanwhile.
//
// proves ROLL-1
// proves HEAL-2
func TestTemplateIsRolledByReplacement(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.serving(4))
		ids := w.up(4)
		w.edit("web", func(g *store.Group) { g.Template.Settings = map[string]any{"image": "2"} })
		least, most := w.rolls(10 * time.Minute)
		if least < 4 || most != 5 {
			t.Errorf("%d at work at least, %d there at most: want 4 and 5", least, most)
		}
		w.up(4)
		for _, in := range w.instances() {
			if slices.Contains(ids, in.Record.ID) || in.Record.Spec.Template.Settings["image"] != "2" {
				t.Errorf("%s is of %v", in.Record.ID, in.Record.Spec.Template)
			}
		}
		if w.made() != 8 {
			t.Errorf("%d machines were made for 4 and their replacements", w.made())
		}
	})
}

// What fails during a roll is healed before the roll goes on.
//
// proves HEAL-8
// proves REC-5
func TestHealingComesBeforeTheRoll(t *testing.T) {
	config := quick
	config.Boot = 20 * time.Second
	inWorld(t, config, func(w *world) {
		w.start("one")
		g := w.serving(5)
		g.MaxChecking = store.Duration(2 * time.Minute)
		w.apply(g)
		ids := w.up(5)
		w.edit("web", func(g *store.Group) { g.Template.Settings = map[string]any{"image": "2"} })
		w.until(2*time.Minute, "one was replaced", func() bool { return w.toldOf("replacement") >= 2 })
		sick := ids[4]
		w.setMood(sick, mood{sick: true})
		w.until(10*time.Minute, "the roll is complete",
			func() bool { return w.status("web").Rollout == nil && w.settled(5) })
		// After the one replacement under way, the failed one is replaced next.
		var order []string
		failed := false
		for _, e := range w.story() {
			failed = failed || e.Instance == sick && e.Verdict == store.Unhealthy
			if failed && strings.Contains(e.What, "replacement") {
				order = append(order, e.Instance+" "+e.Rule)
			}
		}
		if len(order) == 0 || order[0] != sick+" HEAL-2" {
			t.Errorf("replaced in this order: %q, want %s first", order, sick)
		}
	})
}

// A template with which no instance gets healthy is taken for the cause: the roll stops, and the
// old instances stay.
//
// proves FLAP-5
// proves FLAP-7
func TestBadTemplateStopsItsRoll(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.serving(5))
		ids := w.up(5)
		for _, id := range ids {
			w.setMood(id, mood{hook: time.Second})
		}
		w.setEveryone(mood{sick: true}) // all who come
		good := w.edit("web", func(*store.Group) {})
		w.edit("web", func(g *store.Group) { g.Template.Settings = map[string]any{"image": "2"} })
		w.until(15*time.Minute, "the template is blamed",
			func() bool { r := w.status("web").Rollout; return r != nil && r.Blamed != "" })
		w.until(5*time.Minute, "what failed is gone", func() bool { return slices.Equal(w.ids(), ids) })
		made := w.made()
		w.always(30*time.Minute, "the old ones stay and none is made",
			func() bool { return slices.Equal(w.ids(), ids) && w.made() == made && w.working() == 5 })
		st := w.status("web")
		if !slices.ContainsFunc(st.Blocked,
			func(b store.Blocked) bool { return b.Rule == "FLAP-5" && strings.Contains(b.Until, "rollback") }) {
			t.Errorf("the status does not say what stopped the roll and what helps: %+v", st.Blocked)
		}
		if st.LastGood == nil || st.LastGood.Template != good.InstanceSpec().TemplateHash() {
			t.Errorf("last good is %+v", st.LastGood)
		}
		w.setEveryone(mood{})
		w.edit("web", func(g *store.Group) { g.Template.Settings = map[string]any{"image": "3"} })
		w.until(15*time.Minute, "a better one is rolled out", func() bool {
			return w.settled(5) && w.status("web").Rollout == nil &&
				w.instances()[0].Record.Spec.Template.Settings["image"] == "3"
		})
	})
}

// proves ROLL-4
func TestRollThatMakesNoProgressIsStalled(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.serving(3)
		g.MaxChecking = store.Duration(time.Hour)
		g.Rollout.ProgressDeadline = store.Duration(3 * time.Minute)
		w.apply(g)
		ids := w.up(3)
		for _, id := range ids {
			w.setMood(id, mood{hook: time.Second})
		}
		w.setEveryone(mood{sick: true})
		w.edit("web", func(g *store.Group) { g.Template.Settings = map[string]any{"image": "2"} })
		stalled := func() bool { r := w.status("web").Rollout; return r != nil && r.Stalled != "" }
		began := time.Now()
		w.until(10*time.Minute, "the roll is stalled", stalled)
		if took := time.Since(began); took < 3*time.Minute || took > 3*time.Minute+5*time.Second ||
			w.told("", "ROLL-4") != 1 {
			t.Errorf("stalled after %s, told %d times", took, w.told("", "ROLL-4"))
		}
		w.setEveryone(mood{})
		w.until(10*time.Minute, "it goes on", func() bool { return w.status("web").Rollout == nil && w.settled(3) })
	})
}

// An operator may have all relaunched as they are.
//
// proves ROLL-1
func TestRelaunch(t *testing.T) {
	for action, again := range map[string]bool{store.ActionRestart: false, store.ActionRecreate: true} {
		t.Run(action, func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				w.start("one")
				w.apply(w.serving(3))
				ids := w.up(3)
				w.edit("web", func(g *store.Group) { g.Relaunch = store.Relaunch{Number: 1, Action: action} })
				w.rolls(5 * time.Minute)
				w.pass(time.Minute)
				now := w.up(3)
				if again != !slices.Equal(now, ids) || again && w.made() != 6 {
					t.Errorf("there were %v and are %v; %d machines were made", ids, now, w.made())
				}
				for _, id := range now {
					if _, n := w.work(id).runs(); !again && n != 2 {
						t.Errorf("%s was started %d times", id, n)
					}
				}
			})
		})
	}
}

// proves ROLL-1
func TestOpportunisticRollWaitsForOpportunities(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.serving(3)
		g.Rollout.Strategy = store.StrategyOpportunistic
		w.apply(g)
		ids := w.up(3)
		w.edit("web", func(g *store.Group) { g.Template.Settings = map[string]any{"image": "2"} })
		w.pass(10 * time.Minute)
		w.unchanged(ids)
		if n := w.status("web").Outdated; n != 3 {
			t.Errorf("%d are said to be outdated", n)
		}
		w.provider.Crash(ids[0], "exit 1")
		w.until(time.Minute, "it is replaced", func() bool { return w.settled(3) && !slices.Contains(w.ids(), ids[0]) })
		w.pass(10 * time.Minute)
		images := map[string]int{}
		for _, in := range w.instances() {
			image, _ := in.Record.Spec.Template.Settings["image"].(string)
			images[image]++
		}
		if !maps.Equal(images, map[string]int{"": 2, "2": 1}) {
			t.Errorf("images %v", images)
		}
	})
}
