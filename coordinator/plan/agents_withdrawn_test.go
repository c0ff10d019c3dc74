package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// An earlier version is offered only to a group that asks for it, and a protected instance is left
// out.
//
// proves PROV-7, REC-13
func TestAgentsGoBackByOrder(t *testing.T) {
	w := agentsOf(t, "v1.1.0", "a", "b")
	w.place("a", 0, store.Running, func(r *store.Instance) { r.Protected = store.ProtectRemoval })
	w.serves("r1", "v1.1.0", "v1.0.0")
	w.edit(func(g *store.Group) { g.Agent.Version, g.Agent.Downgrade = "v1.0.0", true })
	w.step()
	if u := w.instance("b").Record.Upgrade; w.offers() != "b=v1.0.0" || !u.Downgrade {
		t.Errorf("offers %q, %+v", w.offers(), u)
	}
	w.edit(func(g *store.Group) { g.Agent = store.AgentSpec{} })
	w.step()
	if w.offers() != "" {
		t.Errorf("offers %q after they were withdrawn", w.offers())
	}
}

// An agent whose offer is withdrawn may have begun its trial before it heard of that: its silence
// is no loss until it has reported since, or until the offer would have ended.
//
// proves PROV-7, DET-17
func TestAgentsBeginBeforeTheyHearOfAWithdrawal(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*world)
		covered bool
		kept    bool // the withdrawn offer
	}{
		"it falls silent at once": {func(w *world) { w.silence("b", true) }, true, true},
		"it reports first": {func(w *world) {
			w.turn("b", false)
			w.turn("b", true)
			w.step()
			w.silence("b", true)
		}, false, false},
		"it tells how its trial ended": {func(w *world) {
			w.answers("b", store.UpgradeBack, "exit status 3")
			w.silence("b", true)
		}, false, false},
		"the offer would have ended": {func(w *world) {
			w.pass(9 * time.Minute)
			w.step()
			w.silence("b", true)
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := agentsOf(t, "v1.0.0", "a", "b", "c", "d")
			w.serves("r1", "v1.1.0", "v1.1.0")
			w.step()
			w.answers("a", store.UpgradeInstalled, "")
			w.pass(store.DefaultAgentWithin.D())
			w.step()
			w.step()
			if w.offers() != "b=v1.1.0 c=v1.1.0" {
				t.Fatalf("offers %q", w.offers())
			}
			w.answers("c", store.UpgradeRefused, "no key")
			if u := w.instance("b").Record.Upgrade; w.offers() != "" || u == nil || !u.Withdrawn {
				t.Fatalf("offers %q, %+v", w.offers(), u)
			}
			c.happens(w)
			for range 60 {
				w.pass(time.Second)
				w.step()
			}
			in := w.instance("b")
			whole := len(w.names(store.KindInstances)) == 4 && in.Present() && in.Record.Phase == store.Running
			if whole != c.covered || whole && (in.Record.Upgrade != nil) != c.kept {
				t.Errorf("it is %s: %+v", w.verdict("b"), in.Record.Upgrade)
			}
		})
	}
}

// `auto` leaves a version that is withdrawn, but not one whose coordinator may only be away.
//
// proves PROV-7
func TestAVersionThatIsWithdrawn(t *testing.T) {
	for name, c := range map[string]struct {
		seen []store.SeenReplica // nil: no leader has noted any
		want string
	}{
		"all are at work":             {[]store.SeenReplica{{ID: "r1"}, {ID: "was", Address: "192.0.2.1:7420"}}, "v1.1.0"},
		"one is away":                 {[]store.SeenReplica{{ID: "r1"}, {ID: "r2", Address: "192.0.2.2:7420"}}, "v1.2.0"},
		"it is not known who else is": {nil, "v1.2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := agentsOf(t, "v1.0.0", "a", "b")
			w.serves("r1", "v1.2.0", "v1.1.0", "v1.2.0")
			w.step()
			w.answers("a", store.UpgradeBack, "exit status 3")
			if got := w.wave(); got.Version != "v1.2.0" || got.Stopped != "a" {
				t.Fatalf("wave %+v", got)
			}
			if c.seen != nil {
				w.put(w.keys.Served(), store.Served{Schema: store.Schema, Replicas: c.seen})
			}
			w.put(w.keys.Replica("r1"), store.Replica{
				Schema: store.Schema, ID: "r1", Version: "v1.2.0", Downloads: "192.0.2.1:7430", Address: "192.0.2.1:7420",
				AgentReleases: []store.AgentRelease{{Version: "v1.1.0", Platform: "linux/amd64"}},
			})
			for range 3 {
				w.step()
				w.pass(time.Second)
			}
			got := w.wave()
			if got.Version != c.want || (got.Stopped == "") != (c.want == "v1.1.0") {
				t.Errorf("wave %+v", got)
			}
			if offered := w.offers() == "a=v1.1.0"; offered != (c.want == "v1.1.0") {
				t.Errorf("offers %q", w.offers())
			}
		})
	}
}

// A version that has proved itself and is taken back by its machine later stops the wave, until an
// operator orders another try.
//
// proves PROV-7
func TestAVersionThatIsTakenBackLater(t *testing.T) {
	w := agentsOf(t, "v1.0.0", "a", "b", "c")
	w.serves("r1", "v1.1.0", "v1.1.0")
	w.step()
	w.answers("a", store.UpgradeInstalled, "")
	for range 3 {
		w.pass(store.DefaultAgentWithin.D())
		w.step()
	}
	if w.offers() != "b=v1.1.0 c=v1.1.0" {
		t.Fatalf("offers %q", w.offers())
	}
	a := w.agents["a"]
	a.version, a.upgrade = "v1.0.0", &store.UpgradeReport{
		Token: "t", Version: "v1.1.0", Result: store.UpgradeBack, Why: "it ended by itself 3 times within 10m0s",
	}
	w.report("a")
	for range 3 {
		w.step()
		w.pass(time.Second)
	}
	if got := w.wave(); got.Stopped != "a" || !strings.Contains(got.Why, "3 times") || w.offers() != "" {
		t.Fatalf("offers %q, wave %+v", w.offers(), got)
	}
	w.order(store.RequestRetry, "")
	w.pass(10 * time.Minute)
	for range 5 {
		w.step()
		w.pass(time.Second)
	}
	if got := w.wave(); got.Stopped != "" || strings.Count(w.offers(), "=") != 1 {
		t.Errorf("after the order: offers %q, wave %+v", w.offers(), got)
	}
}
