package story_test

import (
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
		"nothing runs": {
			of: &story.Shard{Name: "s"}, to: "v0.9.0", against: []string{"s: no coordinator", "s: there is no backup"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := story.PlanUpgrade(c.of, c.to, now)
			var steps []string
			for _, s := range u.Steps {
				steps = append(steps, s.What)
			}
			if got := strings.Join(steps, ", "); got != c.steps || u.Down != c.down {
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
