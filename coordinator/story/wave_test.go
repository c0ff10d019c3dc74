package story

import (
	"testing"

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
		if got := otherAgentsNext(c.groups); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}
