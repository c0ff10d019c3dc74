package story

import (
	"slices"
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

// An upgrade of agents under way is work, and says what the next agent waits for. Its instance says
// when the version is proved, and when the upgrade stops otherwise.
//
// proves PROV-7, REC-15
func TestWhatAWaveWaitsFor(t *testing.T) {
	wave := func(done int, stopped string) store.Status {
		return store.Status{Agents: &store.AgentWave{Version: "v2", Done: done, Of: 3, Stopped: stopped}}
	}
	want := "1 of 3 agents is of v2, the next follows when the one before it has proved the version"
	if got := WaveNow(wave(1, "")); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, st := range []store.Status{{}, wave(3, ""), wave(1, "web-0")} {
		if got := WaveNow(st); got != "" {
			t.Errorf("%+v: %q", st.Agents, got)
		}
	}
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	timer := store.Timer{Start: begun, For: store.Duration(5 * time.Minute)}
	for name, c := range map[string]struct {
		upgrade store.AgentUpgrade
		want    []Upcoming
	}{
		"offered": {store.AgentUpgrade{}, []Upcoming{
			{begun.Add(5 * time.Minute), "the upgrade of agents stops, unless the agent of web-0 has answered", "PROV-7"},
		}},
		"installed": {store.AgentUpgrade{Installed: true}, []Upcoming{
			{begun.Add(2 * time.Minute), "the agent of web-0 has proved v2, if it stays connected and healthy", "PROV-7"},
			{begun.Add(5 * time.Minute), "the upgrade of agents stops, unless the agent of web-0 has proved v2", "PROV-7"},
		}},
		"withdrawn": {store.AgentUpgrade{Withdrawn: true}, nil},
	} {
		c.upgrade.Version, c.upgrade.Within, c.upgrade.Timer = "v2", store.Duration(2*time.Minute), timer
		got := InstanceUpcoming(store.Instance{ID: "web-0", Phase: store.Running, Upgrade: &c.upgrade})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What to do about an upgrade of agents that cannot go on is something that an operator can do.
//
// proves PROV-7
func TestWhatToDoAboutAWaveThatWaits(t *testing.T) {
	for want, b := range map[string]store.Blocked{
		"put the agent and its .sig (leasehold upgrade sign) into the directory of the coordinators' --agents, and restart " +
			"them one after the other; or leasehold group edit web, for another agent.version": {
			Kind: store.BlockedByNoRelease, Of: store.BlockedFacts{Name: "v2"},
		},
		"put the agent and its .sig (leasehold upgrade sign) into the directory of the coordinators' --agents, and restart " +
			"them one after the other": {
			Kind: store.BlockedByNoRelease, Of: store.BlockedFacts{Name: store.AgentAuto},
		},
		"upgrade coordinator b: leasehold upgrade check --to v2 lists the steps; or leasehold group edit web, for another " +
			"agent.version": {
			Kind: store.BlockedByOldCoordinator, Of: store.BlockedFacts{Name: "v2", Other: "b", Text: "v1"},
		},
		"once web-0 can run it, leasehold group retry web; or leasehold group edit web, for another agent.version": {
			Kind: store.BlockedByUpgradeStopped, Of: store.BlockedFacts{Name: "v2", Other: "web-0", Text: "it went back"},
		},
	} {
		b.Rule, b.Work, b.Of.Group = "PROV-7", store.WorkUpgrade, "web"
		g := Known{Name: "web", Stored: store.KV{Modified: 7}}
		g.Status.Record.Blocked = []store.Blocked{b}
		problems := GroupProblems(g, true, time.Now())
		i := slices.IndexFunc(problems, func(p Problem) bool { return p.Rule == "PROV-7" })
		if i < 0 || problems[i].Remedies.String() != want {
			t.Errorf("%s: %+v", b.Kind, problems)
		}
	}
}

// A roll that waits says what has to stay healthy, and for how long.
//
// proves ROLL-5, ROLL-8, REC-15
func TestWhatARollWaitsFor(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rests := &store.Timer{Start: now, For: store.Duration(3 * time.Minute)}
	for want, r := range map[string]store.Rollout{
		"": {},
		": its canaries are to stay healthy for another 3m": {Rests: rests},
		": zone a is to stay healthy for another 3m":        {Rests: rests, Zone: "a"},
		": its canaries are to stay healthy for another 4m": {Rests: rests, GraceUntil: now.Add(4 * time.Minute)},
	} {
		if got := RollProves(r, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
