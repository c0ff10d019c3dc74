package story

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// While a wave brings agents to a version, the status does not ask for packages: it says how far
// the wave is, and when it goes on.
//
// proves DAY-3, PROV-7
func TestWhatToDoAboutAgentsOfAnotherVersion(t *testing.T) {
	group := func(name string, wave *store.AgentWave, blocked ...store.Blocked) Known {
		g := Known{Name: name, Stored: store.KV{Modified: 7}}
		g.Status.Record.Agents, g.Status.Record.Blocked = wave, blocked
		return g
	}
	wave := func(done int) *store.AgentWave { return &store.AgentWave{Version: "v2", Done: done, Of: 3} }
	stopped := wave(1)
	stopped.Stopped = "web-0-a"
	asks := func(name string, wave *store.AgentWave) Known {
		g := group(name, wave)
		g.Spec.Agent.Version = store.AgentAuto
		return g
	}
	unsettled := store.Blocked{Work: store.WorkUpgrade, Kind: store.BlockedByUnsettled, Rule: "PROV-7"}
	for name, c := range map[string]struct {
		groups []Known
		want   string
	}{
		"none is upgraded": {groups: []Known{group("web", nil)}, want: installAgents},
		"no group":         {want: installAgents},
		"the wave is complete": {
			groups: []Known{group("web", wave(3))}, want: installAgents,
		},
		"the wave to an earlier version is complete": {
			groups: []Known{
				asks("web", &store.AgentWave{Version: "v1", Done: 3, Of: 3}), asks("empty", &store.AgentWave{Version: "v1"}),
			},
			want: "agents are upgraded in waves: web: all 3 agents are of v1, the next wave begins when the coordinators " +
				"serve their own version, and agent.version allows it",
		},
		"no version is served": {
			groups: []Known{asks("web", nil), group("db", nil)},
			want: "agents are upgraded in waves: web: it begins when a coordinator serves a signed agent; in groups without " +
				"agent.version, " + installAgents,
		},
		"under way": {
			groups: []Known{group("web", wave(1))},
			want: "agents are upgraded in waves: web: 1 of 3 agents is of v2, the next follows when the one before it " +
				"has proved the version",
		},
		"waits": {
			groups: []Known{group("web", wave(1), unsettled)},
			want: "agents are upgraded in waves: web: 1 of 3 agents is of v2, the next follows when the whole group is " +
				"healthy and nothing drains",
		},
		"stopped, beside a group that is left alone": {
			groups: []Known{group("db", nil), group("web", stopped)},
			want: "agents are upgraded in waves: web: 1 of 3 agents is of v2, and the wave has stopped: leasehold group " +
				"retry web; in groups without agent.version, " + installAgents,
		},
		"many": {
			groups: []Known{group("a", stopped), group("b", stopped), group("c", stopped), group("d", stopped)},
			want: "agents are upgraded in waves: a: 1 of 3 agents is of v2, and the wave has stopped: leasehold group " +
				"retry a; b: 1 of 3 agents is of v2, and the wave has stopped: leasehold group retry b; c: 1 of 3 agents " +
				"is of v2, and the wave has stopped: leasehold group retry c; and 1 more group",
		},
	} {
		if got := otherAgentsNext(c.groups, "v2"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// While a wave is under way, what is said of the group says when it goes on.
//
// proves PROV-7
func TestAWaveUnderWaySaysWhenItGoesOn(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	wave := store.AgentWave{Version: "v2", Done: 1, Of: 3, Since: now.Add(-time.Minute)}
	grace := store.Blocked{
		Work: store.WorkUpgrade, Kind: store.BlockedByUnsettled, Rule: "PROV-7",
		Of: store.BlockedFacts{Opens: now.Add(time.Minute)},
	}
	for want, st := range map[string]store.Status{
		"agents: 1 of 3 of v2, begun 1m ago; the next follows when the one before it has proved the version (PROV-7)": {
			Agents: &wave,
		},
		"agents: 1 of 3 of v2, begun 1m ago; the next follows when the whole group is healthy and nothing drains, not " +
			"before 2026-01-02T03:05:05Z, when a grace ends (SAFE-1) (PROV-7)": {
			Agents: &wave, Blocked: []store.Blocked{grace},
		},
	} {
		if got := NowLines(st, nil, now); len(got) != 1 || got[0] != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}
