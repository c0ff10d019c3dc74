package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// serves has a coordinator of a version serve a version of the agent.
func (w *world) serves(id, of string, versions ...string) {
	r := store.Replica{Schema: store.Schema, ID: id, Version: of, Downloads: "192.0.2.1:7430"}
	for _, v := range versions {
		r.AgentReleases = append(r.AgentReleases, store.AgentRelease{Version: v, Platform: "linux/amd64"})
	}
	w.put(w.keys.Replica(id), r)
}

// agentsOf makes a group of healthy instances whose agents are of a version.
func agentsOf(t *testing.T, version string, ids ...string) *world {
	t.Helper()
	w := newTestWorld(t)
	w.edit(func(g *store.Group) {
		g.Size = len(ids)
		g.Agent = store.AgentSpec{Version: store.AgentAuto, AtOnce: store.Percent(50)}
	})
	for i, id := range ids {
		w.place(id, i, store.Running)
		w.agents[id].version = version
		w.report(id)
	}
	w.step()
	return w
}

// offers are the instances whose agents have an offer, with its version.
func (w *world) offers() string {
	var out []string
	for _, in := range w.instances() {
		if u := in.Record.Upgrade; u != nil && !u.Withdrawn && in.Record.Phase != store.Deleting {
			out = append(out, in.Record.ID+"="+u.Version)
		}
	}
	return strings.Join(out, " ")
}

// answers has an agent say how its offer ended.
func (w *world) answers(id, result, why string) {
	w.t.Helper()
	u := w.instance(id).Record.Upgrade
	if u == nil {
		w.t.Fatalf("%s has no offer", id)
	}
	a := w.agents[id]
	if result == store.UpgradeInstalled {
		a.version = u.Version
	}
	a.upgrade = &store.UpgradeReport{Token: u.Token, Version: u.Version, Result: result, Why: why}
	w.report(id)
	w.step()
	w.step()
}

// verdict is how an instance is judged.
func (w *world) verdict(id string) store.Verdict {
	p := Compute(w.snapshot(), w.now)
	return p.Judgments.Of(id).Verdict
}

func (w *world) wave() store.AgentWave {
	if s := read[store.Status](w, w.keys.Status(w.group)).Record.Agents; s != nil {
		return *s
	}
	return store.AgentWave{}
}

// blockedOn are the kinds of what keeps agents from being upgraded.
func (w *world) blockedOn() string {
	var kinds []string
	for _, b := range read[store.Status](w, w.keys.Status(w.group)).Record.Blocked {
		if b.Work == store.WorkUpgrade {
			kinds = append(kinds, string(b.Kind))
		}
	}
	slices.Sort(kinds)
	return strings.Join(slices.Compact(kinds), " ")
}

// The first agent is upgraded alone, then as many at once as the group allows, and the journal says
// so. A version that is offered to all is not offered again.
//
// proves PROV-7
func TestAgentsComeInWaves(t *testing.T) {
	w := agentsOf(t, "v1.0.0", "a", "b", "c", "d")
	var told []string
	w.told = func(a Action) {
		for _, e := range a.JournalEntries() {
			if e.Rule == "PROV-7" {
				told = append(told, strings.TrimSpace(e.Instance+" "+e.What()))
			}
		}
	}
	if w.offers() != "" || w.blockedOn() != "no_release" {
		t.Errorf("nothing is served: offers %q, blocked %q", w.offers(), w.blockedOn())
	}
	w.serves("r1", "v1.1.0", "v1.0.0", "v1.1.0")
	for range 3 {
		w.step()
		w.pass(time.Second)
	}
	for _, c := range []struct{ offers, answer string }{
		{"a=v1.1.0", "a"}, {"b=v1.1.0 c=v1.1.0", "b"}, {"c=v1.1.0 d=v1.1.0", "d"}, {"c=v1.1.0", "c"},
	} {
		if w.offers() != c.offers {
			t.Fatalf("offers %q, want %q", w.offers(), c.offers)
		}
		w.planIsSound()
		if w.answers(c.answer, store.UpgradeInstalled, ""); w.offers() != c.offers {
			t.Fatalf("%s has proved nothing yet: offers %q, want %q", c.answer, w.offers(), c.offers)
		}
		w.pass(store.DefaultAgentWithin.D())
		w.step()
		w.step()
	}
	if got := w.wave(); w.offers() != "" || got.Done != 4 || got.Of != 4 || got.Stopped != "" {
		t.Errorf("offers %q, wave %+v", w.offers(), got)
	}
	want := []string{
		"a agent installed v1.1.0", "b agent installed v1.1.0", "c agent installed v1.1.0", "d agent installed v1.1.0",
		"upgrade of agents begun", "a agent offered v1.1.0", "a agent upgraded to v1.1.0", "b agent offered v1.1.0",
		"c agent offered v1.1.0", "b agent upgraded to v1.1.0", "d agent offered v1.1.0", "d agent upgraded to v1.1.0",
		"c agent upgraded to v1.1.0", "upgrade of agents complete",
	}
	slices.Sort(told)
	if slices.Sort(want); !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
	before := w.rev
	if w.step(); w.rev != before {
		t.Error("it goes on writing")
	}
	if ids := w.names(store.KindInstances); len(ids) != 4 {
		t.Errorf("instances: %v", ids)
	}
}

// One agent that does not come to the version stops the wave, whatever the reason: the next one is
// offered nothing, and status says what is wrong, until an operator orders it or names another
// version.
//
// proves PROV-7
func TestAWaveStops(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(w *world)
		why     string
	}{
		"it went back": {
			func(w *world) { w.answers("a", store.UpgradeBack, "exit status 3") }, "it went back: exit status 3",
		},
		"it refused": {func(w *world) { w.answers("a", store.UpgradeRefused, "no key") }, "no key"},
		"it could not be had": {
			func(w *world) { w.answers("a", store.UpgradeFailed, "disk full") }, "disk full",
		},
		"no answer": {func(w *world) {
			w.pass(10 * time.Minute)
			w.step()
			w.step()
		}, "gave no answer within 9m0s"},
		"its machine died": {func(w *world) {
			w.kill("a")
			w.pass(10 * time.Second)
			w.step()
			w.step()
		}, "it has failed meanwhile"},
		"it says so and is not": {func(w *world) {
			w.agents["a"].upgrade = &store.UpgradeReport{
				Token: w.instance("a").Record.Upgrade.Token, Result: store.UpgradeInstalled,
			}
			w.report("a")
			w.step()
			w.step()
		}, "is of version v1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := agentsOf(t, "v1.0.0", "a", "b", "c")
			w.serves("r1", "v1.1.0", "v1.1.0")
			w.step()
			if w.offers() != "a=v1.1.0" {
				t.Fatalf("offers %q", w.offers())
			}
			c.happens(w)
			for range 5 {
				w.pass(time.Second)
				w.step()
			}
			if got := w.wave(); got.Stopped != "a" || !strings.Contains(got.Why, c.why) {
				t.Errorf("wave %+v", got)
			}
			if w.offers() != "" || w.blockedOn() != string(store.BlockedByUpgradeStopped) {
				t.Errorf("offers %q, blocked %q", w.offers(), w.blockedOn())
			}
			w.order(store.RequestRetry, "")
			w.pass(time.Minute)
			for range 3 {
				w.step()
			}
			if got := w.wave(); got.Stopped != "" || strings.Count(w.offers(), "=") != 1 {
				t.Errorf("after the order: offers %q, wave %+v", w.offers(), got)
			}
		})
	}
}

// An agent that is installed proves its version before another one is offered it. One that fails
// meanwhile, or does not stay connected, stops the wave.
//
// proves PROV-7
func TestAgentsProveTheirVersion(t *testing.T) {
	const within = time.Minute
	for name, c := range map[string]struct {
		happens func(w *world)
		why     string // "": it is proved
	}{
		"it stays": {func(*world) {}, ""},
		"it is cut off for a moment": {func(w *world) {
			w.silence("a", true)
			w.pass(time.Second)
			w.step()
			w.comeBack("a")
			w.step()
			w.pass(within - 2*time.Second)
			if w.step(); w.offers() != "a=v1.1.0" {
				w.t.Fatalf("connected again for less than %s: offers %q", within, w.offers())
			}
			w.pass(2 * time.Second)
		}, ""},
		"it is unhealthy": {func(w *world) { w.turn("a", false) }, "it is unhealthy"},
		"it is lost":      {func(w *world) { w.silence("a", true) }, "it is lost"},
		"its machine dies": {func(w *world) {
			w.kill("a")
		}, "it has failed meanwhile"},
		"it crashes again and again": {func(w *world) {
			for range 20 {
				w.silence("a", true)
				w.pass(time.Second)
				w.step()
				w.comeBack("a")
				w.step()
				w.pass(30 * time.Second)
				w.step()
			}
		}, "was not connected and healthy for 1m0s on end"},
		"it is another version again": {func(w *world) {
			w.agents["a"].version = "v1.0.0"
			w.report("a")
		}, "is of version v1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := agentsOf(t, "v1.0.0", "a", "b", "c")
			w.edit(func(g *store.Group) { g.Agent.Within = new(store.Duration(within)) })
			w.serves("r1", "v1.1.0", "v1.1.0")
			w.step()
			w.answers("a", store.UpgradeInstalled, "")
			w.pass(within / 2)
			if w.step(); w.offers() != "a=v1.1.0" || w.wave().Proved || w.wave().Done != 0 {
				t.Fatalf("half way: offers %q, wave %+v", w.offers(), w.wave())
			}
			c.happens(w)
			for range 35 {
				w.pass(time.Second)
				w.step()
			}
			got := w.wave()
			if c.why == "" {
				if got.Stopped != "" || !got.Proved || got.Done != 1 || w.offers() != "b=v1.1.0 c=v1.1.0" {
					t.Errorf("offers %q, wave %+v", w.offers(), got)
				}
				return
			}
			if got.Stopped != "a" || got.Proved || !strings.Contains(got.Why, c.why) || w.offers() != "" {
				t.Errorf("offers %q, wave %+v", w.offers(), got)
			}
		})
	}
}

// A wave begins only while the group is well and nothing holds it back.
//
// proves PROV-7, ROLL-6, REC-13, SAFE-12
func TestWhatHoldsAgentsBack(t *testing.T) {
	change := func(f func(*store.Group)) func(*world) { return func(w *world) { w.edit(f) } }
	for name, c := range map[string]struct {
		when    func(*world)
		blocked string
	}{
		"nothing":             {func(*world) {}, ""},
		"off":                 {change(func(g *store.Group) { g.Agent.Version = "" }), ""},
		"stopped":             {change(func(g *store.Group) { g.Stopped = true }), ""},
		"paused":              {change(func(g *store.Group) { g.Paused = true }), ""},
		"an unhealthy one":    {func(w *world) { w.turn("c", false) }, "unsettled"},
		"one that is missing": {change(func(g *store.Group) { g.Size = 4 }), "unsettled"},
		"a freeze": {func(w *world) {
			w.editShard(func(s *store.Shard) { s.Freeze = &store.Freeze{To: w.now.Add(time.Hour), By: "ada"} })
		}, "freeze"},
		"a window": {windowFrom("22:00"), "window"},
		"a hold": {func(w *world) {
			w.editShard(func(s *store.Shard) { s.Hold = &store.Hold{By: "ada", At: w.now} })
		}, ""},
		"no such version":        {change(func(g *store.Group) { g.Agent.Version = "v2.0.0" }), "no_release"},
		"an earlier version":     {change(func(g *store.Group) { g.Agent.Version = "v0.9.0" }), ""},
		"an earlier coordinator": {func(w *world) { w.serves("r2", "v1.0.0") }, "old_coordinator"},
		"nothing served":         {func(w *world) { w.serves("r1", "v1.1.0") }, "no_release"},
	} {
		t.Run(name, func(t *testing.T) {
			w := agentsOf(t, "v1.0.0", "a", "b", "c")
			w.serves("r1", "v1.1.0", "v1.1.0", "v0.9.0")
			c.when(w)
			w.step()
			w.step()
			if offered := w.offers() != ""; offered != (name == "nothing") || w.blockedOn() != c.blocked {
				t.Errorf("offers %q, blocked %q", w.offers(), w.blockedOn())
			}
		})
	}
}

// An agent that is silent because it tries another version is not lost before it must be back; one
// that is silent for longer is.
//
// proves PROV-7, DET-17
func TestTheSilenceOfAnUpgradeIsNoLoss(t *testing.T) {
	w := agentsOf(t, "v1.0.0", "a", "b", "c")
	w.edit(func(g *store.Group) { g.Agent.Within = new(store.Duration(time.Minute)) })
	w.serves("r1", "v1.1.0", "v1.1.0")
	w.step()
	if w.offers() != "a=v1.1.0" {
		t.Fatalf("offers %q", w.offers())
	}
	w.silence("a", true)
	for passed := time.Duration(0); passed < 85*time.Second; passed += time.Second {
		w.pass(time.Second)
		w.step()
		if n := len(w.names(store.KindInstances)); n != 3 {
			t.Fatalf("after %s there are %d instances", passed, n)
		}
	}
	if v := w.verdict("a"); v != store.Suspect {
		t.Errorf("it is %s", v)
	}
	for range 20 {
		w.pass(time.Second)
		w.step()
	}
	if w.instance("a").Present() && len(w.names(store.KindInstances)) == 3 {
		t.Errorf("it is not replaced, and %s", w.verdict("a"))
	}
}

// An order to retry is for agents and slots alike: neither uses it up for the other.
//
// proves PROV-7, FLAP-3, REC-16
func TestARetryIsForAgentsAndSlots(t *testing.T) {
	w := agentsOf(t, "v1.0.0", "a", "b", "c")
	w.serves("r1", "v1.1.0", "v1.1.0")
	w.step()
	w.answers("a", store.UpgradeBack, "exit status 3")
	w.put(w.keys.Slot(w.group, 2), store.Slot{Schema: store.Schema, Group: w.group, Number: 2, Flapping: 1})
	w.step()
	w.order(store.RequestRetry, "")
	for range 3 {
		w.step()
	}
	if got := w.wave(); got.Stopped != "" {
		t.Errorf("wave %+v", got)
	}
	if slot := read[store.Slot](w, w.keys.Slot(w.group, 2)).Record; slot.Flapping != 0 {
		t.Errorf("slot %+v", slot)
	}
	if left := w.names(store.KindRequests); len(left) != 0 {
		t.Errorf("orders %v are left", left)
	}
}

// A grace keeps agents from being offered a version, and what waits says until when.
//
// proves PROV-7, SAFE-1
func TestAWaveWaitsForTheGraceAndSaysSo(t *testing.T) {
	w := agentsOf(t, "v1.0.0", "a", "b")
	w.serves("r1", "v2.0.0", "v2.0.0")
	for grace, want := range map[time.Duration]int{0: 0, time.Minute: 1} {
		d := w.drafted()
		d.s.GraceEnd = w.now.Add(grace)
		d.agents.follow()
		d.agents.offerNext()
		if len(d.blocked) != want {
			t.Fatalf("grace of %s: it waits as %+v", grace, d.blocked)
		}
		if want > 0 && (!d.blocked[0].Of.Opens.Equal(d.s.GraceEnd) || !strings.Contains(d.blocked[0].Until, "SAFE-1")) {
			t.Errorf("it waits as %+v", d.blocked[0])
		}
	}
}
