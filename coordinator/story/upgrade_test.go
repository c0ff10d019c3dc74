package story_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// proves DAY-3
func TestUpgradeIsPlanned(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	shard := func(versions ...string) *story.Shard {
		st := &story.Shard{Name: "default", Leads: true}
		st.Leader.Record.Replica = "a"
		st.Backup.Record.At = now.Add(-time.Hour)
		for i, v := range versions {
			st.Replicas = append(st.Replicas, store.Versioned[store.Replica]{
				Record: store.Replica{ID: string(rune('a' + i)), Version: v},
			})
		}
		return st
	}
	lags := shard("v0.9.0", "v0.9.0")
	lags.Replicas[1].Record.OtherAgents, lags.Replicas[1].Record.OtherVersions = 1, []string{"v0.7.2"}
	done := shard("v0.9.0")
	done.Backup.Record.At = time.Time{} // nothing begins
	fell := shard("v0.8.0", "v0.8.0")   // b did not come up again
	fell.Served.Record.Replicas = []store.SeenReplica{{ID: "b", At: now.Add(-time.Minute)}}
	fell.Replicas = fell.Replicas[:1]
	ill := shard("v0.8.0")
	ill.Etcd = &store.Members{All: []store.Member{{Name: "b", Down: "timeout"}, {Name: "c", Learner: true}}}
	ill.Backup.Record.At = time.Time{}
	ill.Shard.Record.Hold = &store.Hold{}
	for name, c := range map[string]struct {
		of      *story.Shard
		to      string
		steps   string
		against []string
		down    bool
	}{
		"up": {
			of: shard("v0.8.0", "v0.8.3-2-gabc", "v0.9.0"), to: "v0.9.0",
			steps: "coordinator b, coordinator a, agents",
		},
		"done but for the agents": {of: shard("v0.9.0", "v0.8.0"), to: "v0.9.0", steps: "coordinator b, agents"},
		"nothing to do":           {of: done, to: "v0.9.0"},
		"down":                    {of: shard("v0.9.1"), to: "v0.9.0", steps: "agents, coordinator a", down: true},
		"too far": {
			of: shard("v0.7.0"), to: "v0.9.0", steps: "coordinator a, agents", against: []string{"a: it is of v0.7.0"},
		},
		"another major": {
			of: shard("v0.9.0"), to: "v1.0.0", steps: "coordinator a, agents", against: []string{"a: it is of v0.9.0"},
		},
		"an agent too old": {of: lags, to: "v0.9.0", steps: "agents", against: []string{"agents of b: it is of v0.7.2"}},
		"no release": {
			of: shard("v0.9.0"), to: "dev", steps: "coordinator a, agents", against: []string{"dev: it is no release"},
		},
		"not now": {
			of: ill, to: "v0.9.0", steps: "coordinator a, agents",
			against: []string{
				"default: the shard is on hold", "etcd b: it does not answer", "etcd c: it is a learner",
				"default: there is no backup",
			},
		},
		"a coordinator that is down": {
			of: fell, to: "v0.9.0", steps: "coordinator a, agents",
			against: []string{"b: this coordinator is down: it was seen 1m ago"},
		},
		"nothing runs": {
			of: &story.Shard{Name: "s"}, to: "v0.9.0", against: []string{"s: no coordinator", "s: there is no backup"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := story.PlanUpgrade(c.of, story.Release{Version: c.to}, story.Found{}, now)
			var steps []string
			for _, s := range u.Steps {
				steps = append(steps, s.What)
			}
			if got := strings.Join(steps, ", "); got != c.steps || u.Down != c.down || !u.Unchecked {
				t.Errorf("steps %q, down %t", got, u.Down)
			}
			if len(u.Against) != len(c.against) {
				t.Fatalf("against it: %+v", u.Against)
			}
			for i, want := range c.against {
				if got := u.Against[i].About + ": " + u.Against[i].What; !strings.HasPrefix(got, want) {
					t.Errorf("against it: %q, want %q", got, want)
				}
			}
		})
	}
}

// Agents that come in waves need no package, which would undo a wave.
//
// proves DAY-3, PROV-7
func TestUpgradeLeavesWavesToThemselves(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for version, waves := range map[string]bool{"": false, store.AgentAuto: true, "v0.9.0": true} {
		for replica, down := range map[string]bool{"v0.8.0": false, "v0.9.1": true} {
			g := story.Known{Name: "web", Stored: store.KV{Modified: 7}}
			g.Spec.Agent.Version = version
			st := &story.Shard{Name: "default", Groups: []story.Known{g}, Replicas: []store.Versioned[store.Replica]{
				{Record: store.Replica{ID: "a", Version: replica}},
			}}
			steps := story.PlanUpgrade(st, story.Release{Version: "v0.9.0"}, story.Found{}, now).Steps
			i := slices.IndexFunc(steps, func(s story.Step) bool { return s.What == "agents" })
			if got := strings.HasPrefix(steps[i].How, "serve the signed agent: "); got != (waves && !down) {
				t.Errorf("agent.version %q, from %s: %s", version, replica, steps[i].How)
			}
		}
	}
}

// proves DAY-3: a release that could not read what is stored, or not be spoken to, is named before
// anything of it is installed
func TestUpgradeComparesFormats(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	own := story.Formats{Schema: 1, Oldest: 2, Newest: 3, Etcd: "3.7.3"}
	agent := func(replica string, protocol uint32, goodbye store.Goodbye) store.Alive {
		return store.Alive{Replica: replica, Protocol: protocol, Agent: "v0.7.0", Goodbye: goodbye}
	}
	etcd := func(versions ...string) (all []store.Member) {
		for i, v := range versions {
			all = append(all, store.Member{Name: string(rune('a' + i)), Version: v})
		}
		return all
	}
	elsewhere := etcd("3.4.30")
	elsewhere[0].Name = "infra"
	for name, c := range map[string]struct {
		found    story.Found
		etcd     []store.Member
		versions [2]string // of the coordinators, if not both v0.8.0
		against  []string
	}{
		"all goes together": {
			found: story.Found{Newer: []story.Newer{{Key: "groups/web", Schema: 1}}, Agents: []store.Alive{agent("a", 2, "")}},
			etcd:  etcd("3.7.1", "3.7.3"),
		},
		"newer records": {
			found: story.Found{Newer: []story.Newer{{Key: "groups/web", Schema: 2}, {Key: "slots/web/0", Schema: 2}}},
			against: []string{
				"groups/web: it has schema 2, and this release reads up to 1, and 1 more record",
			},
		},
		"agents that are too old": {
			found: story.Found{Agents: []store.Alive{
				agent("a", 1, ""), agent("b", 1, ""), agent("b", 0, store.GoodbyeRefused),
			}},
			against: []string{"agents: 2 agents of v0.7.0 cannot speak version 2"}, // b speaks no newer version itself
		},
		"hosts whose etcd is too old": {
			etcd: etcd("3.5.35"), against: []string{"host a: its etcd is 3.5.35, this release's is 3.7.3"},
		},
		"the next etcd": {etcd: etcd("3.6.16", "3.6.16")},
		"hosts whose etcd would go back": {
			etcd: etcd("3.8.0"), against: []string{"host a: its etcd is 3.8.0", "etcd a: it is of version 3.8.0"},
		},
		"an etcd between two releases": {
			etcd: etcd("3.6.16", "3.7.3"), against: []string{"etcd: its members are of 3.6 and 3.7"},
		},
		"an etcd that this upgrade brings": {etcd: etcd("3.6.16", "3.7.3"), versions: [2]string{"v0.8.0", "v0.9.0"}},
		"an etcd that it has not brought": {
			etcd: etcd("3.6.16", "3.6.16"), versions: [2]string{"v0.8.0", "v0.9.0"},
		},
		"an etcd of one's own, not tried": {etcd: elsewhere, against: []string{"etcd infra: it is of version 3.4.30"}},
		"a member that does not say":      {etcd: etcd("")},
	} {
		t.Run(name, func(t *testing.T) {
			st := &story.Shard{Name: "default", Leads: true, Etcd: &store.Members{All: c.etcd}}
			st.Leader.Record.Replica = "a"
			st.Backup.Record.At = now.Add(-time.Hour)
			for i, id := range []string{"a", "b"} {
				st.Replicas = append(st.Replicas, store.Versioned[store.Replica]{
					Record: store.Replica{ID: id, Version: cmp.Or(c.versions[i], "v0.8.0"), Protocol: uint32(2 - i)},
				})
			}
			u := story.PlanUpgrade(st, story.Release{Version: "v0.9.0", Formats: &own}, c.found, now)
			if u.Unchecked || len(u.Against) != len(c.against) {
				t.Fatalf("against it: %+v", u.Against)
			}
			for i, want := range c.against {
				if got := u.Against[i].About + ": " + u.Against[i].What; !strings.HasPrefix(got, want) {
					t.Errorf("against it: %q, want %q", got, want)
				}
			}
			if len(c.etcd) == 2 && c.versions[1] == "" && (u.Steps[0].What != "host b" || u.Steps[1].What != "host a") {
				t.Errorf("steps: %+v", u.Steps)
			}
		})
	}
}
