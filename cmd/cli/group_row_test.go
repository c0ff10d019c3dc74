package cli

import (
	"testing"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

func row(mark, state, health, run, now string) story.Row {
	return story.Row{Mark: mark, State: state, Health: health, Run: run, Now: now, Since: noon}
}

func TestRowOf(t *testing.T) {
	stored := func(g store.Group) group {
		return group{
			Name: g.Name, Spec: g, Stored: store.KV{Modified: 5},
			Status: store.Versioned[store.Status]{Modified: 6, Record: statusOf(g, 5, 2)},
		}
	}
	for _, c := range []struct {
		name   string
		change func(g *group)
		want   story.Row
	}{
		{"well", func(*group) {}, row(" ", "started", "100%", "2/2", "-")},
		{"refused", func(g *group) {
			g.Status.Record = store.Status{
				State: store.GroupRefused, Health: 100,
				Invalid: &store.InvalidSpec{Revision: 5, Why: "no such provider"},
			}
		}, row("!", "refused", "-", "-", "spec refused")},
		{"refused and gone", func(g *group) {
			g.Stored, g.Status.Record = store.KV{}, store.Status{State: store.GroupRefused}
		}, row("!", "refused", "-", "-", "spec is gone")},
		{"refused, then corrected", func(g *group) {
			g.Status.Record = store.Status{State: store.GroupRefused, Invalid: &store.InvalidSpec{Revision: 3}}
		}, row("!", "refused", "-", "-", "spec not seen yet, spec refused")},
		{"refused, then deleted", func(g *group) {
			g.Status.Record, g.Spec.Deleting = store.Status{State: store.GroupRefused}, true
		}, row("!", "deleting", "-", "-", "spec not seen yet, spec refused")},
		{"deleting and errored", func(g *group) {
			g.Status.Record.State, g.Status.Record.Accepted.Deleting = store.GroupErrored, true
		}, row("!", "deleting", "100%", "2/2", "-")},
		{"deleting, its key overwritten", func(g *group) {
			g.Status.Record.State, g.Bad = store.GroupDeleting, store.ErrSchema
		}, row("!", "deleting", "100%", "2/2", "spec not in force")},
		{"deleting, its key gone", func(g *group) {
			g.Status.Record.State, g.Stored = store.GroupDeleting, store.KV{}
		}, row(" ", "deleting", "100%", "2/2", "-")},
		{"deleting, never seen", func(g *group) {
			g.Status, g.Spec.Deleting = store.Versioned[store.Status]{}, true
		}, row("~", "deleting", "-", "-/2", "no coordinator has accepted it yet")},
		{"stopped", func(g *group) {
			g.Status.Record.State, g.Status.Record.OK, g.Status.Record.Health,
				g.Status.Record.Phases = store.GroupStopped, false, 0, nil
		}, row(" ", "stopped", "0%", "0/2", "-")},
		{"stopping", func(g *group) {
			g.Status.Record.State, g.Status.Record.OK = store.GroupStopped, false
			g.Status.Record.Phases = map[store.Phase]int{store.Draining: 2}
		}, row("~", "stopped", "100%", "0/2", "2 draining")},
		{"a storm", func(g *group) {
			g.Status.Record.Storm = &store.Storm{Lost: 1, Of: 2}
			g.Status.Record.Blocked = []store.Blocked{{Rule: "SAFE-2", What: "replacement of a"}}
		}, row("!", "started", "100%", "2/2", "STORM: held")},
		{"a roll whose turn comes", func(g *group) {
			g.Status.Record.Rollout = &store.Rollout{Template: "t1", Done: 1, Total: 2}
			g.Status.Record.Blocked = []store.Blocked{{Rule: "ROLL-1", What: "replacement of a"}}
		}, row("~", "started", "100%", "2/2", "rolling t1 1/2")},
		{"a roll that makes no progress", func(g *group) {
			g.Status.Record.Rollout, g.Status.Record.Outdated = &store.Rollout{Template: "t1", Done: 1, Total: 2}, 1
			g.Status.Record.Accepted.Rollout.Strategy = store.StrategyOpportunistic
		}, row("~", "started", "100%", "2/2", "1 outdated")},
		{"a static group without an override", func(g *group) {
			g.Static, g.Stored = store.KV{Modified: 5}, store.KV{}
		}, row(" ", "started", "100%", "2/2", "-")},
		{"a static group whose override is newer than what is in force", func(g *group) {
			g.Static, g.Stored = store.KV{Modified: 5}, store.KV{Modified: 9}
		}, row("~", "started", "100%", "2/2", "spec not seen yet")},
		{"stuck in checking", func(g *group) {
			g.Status.Record.OK = false
			g.Status.Record.Phases = map[store.Phase]int{store.Running: 1, store.Checking: 2}
			g.Status.Record.Verdicts = map[store.Verdict]int{store.Live: 2, store.Stuck: 1}
		}, row("~", "started", "100%", "1/2", "1 stuck, 1 checking")},
		{"stuck before its agent came", func(g *group) {
			g.Status.Record.OK = false
			g.Status.Record.Phases = map[store.Phase]int{store.Running: 1, store.Booting: 1}
			g.Status.Record.Verdicts = map[store.Verdict]int{store.Live: 1, store.Stuck: 1}
		}, row("~", "started", "100%", "1/2", "1 stuck")},
	} {
		g := stored(webGroup(2))
		c.change(&g)
		got := story.RowOf(g)
		got.Since = noon
		if got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}
