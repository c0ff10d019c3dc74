package plan

import (
	"slices"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// The least that brings an instance up to date: a live update for checks and for variables that no
// running program has seen, a restart of the workload for its command, its arguments and its
// environment, another machine for the template. An operator may ask for more, never for less.
//
// proves ROLL-1, ROLL-2
func TestTheLeastThatBringsUpToDate(t *testing.T) {
	run := []string{"./web", "--greet=${greeting}"}
	checks := []store.Check{{Name: "up"}}
	base := func() *store.Group {
		g := store.DefaultGroup()
		g.Name, g.Provider = "web", "cloud"
		g.Workload.Run, g.Vars = run, map[string]string{"greeting": "hello", "color": "red"}
		g.Secrets = map[string]string{"TOKEN": "web/token"}
		g.Checks = checks
		return &g
	}
	for name, test := range map[string]struct {
		now  func(g *store.Group)
		was  func(r *store.Instance)
		want string
		why  string
	}{
		"nothing": {func(*store.Group) {}, nil, store.ActionLiveUpdate, ""},
		"the template": {
			func(g *store.Group) { g.Template.InstanceType = "large" }, nil,
			store.ActionRecreate, "template",
		},
		"the provider": {
			func(g *store.Group) { g.Provider = "else" }, nil,
			store.ActionRecreate, "template",
		},
		"the command": {
			func(g *store.Group) { g.Workload.Run = []string{"./web"} }, nil,
			store.ActionRestart, "workload.run",
		},
		"a variable that no command has": {
			func(g *store.Group) { g.Vars["color"] = "blue" }, nil,
			store.ActionLiveUpdate, "vars",
		},
		"a variable that its command has": {
			func(g *store.Group) { g.Vars["greeting"] = "bye" }, nil,
			store.ActionRestart, "vars",
		},
		"a variable of its command is new": {
			nil,
			func(r *store.Instance) { r.Spec.Vars = map[string]string{"color": "red"} }, store.ActionRestart, "vars",
		},
		"a variable of its command is gone": {
			func(g *store.Group) { delete(g.Vars, "greeting") }, nil,
			store.ActionRestart, "vars",
		},
		"a variable of its command was empty, and is not set": {
			func(g *store.Group) { delete(g.Vars, "greeting") },
			func(r *store.Instance) {
				r.Spec.Vars = map[string]string{"color": "red", "greeting": ""}
			}, store.ActionRestart, "vars",
		},
		"a variable is gone that no command has": {
			func(g *store.Group) { delete(g.Vars, "color") }, nil,
			store.ActionLiveUpdate, "vars",
		},
		"a secret": {
			func(g *store.Group) { g.Secrets["TOKEN"] = "web/other" }, nil,
			store.ActionRestart, "secrets",
		},
		"a check": {
			func(g *store.Group) { g.Checks = []store.Check{{Name: "down"}} }, nil,
			store.ActionLiveUpdate, "checks",
		},
		"one more check": {func(g *store.Group) {
			g.Checks = append(slices.Clone(checks), store.Check{Name: "more"})
		}, nil, store.ActionLiveUpdate, "checks"},
		"its first check": {
			nil, func(r *store.Instance) { r.Spec.Checks = nil },
			store.ActionLiveUpdate, "checks",
		},
		"its only check is gone": {
			func(g *store.Group) { g.Checks = nil }, nil, store.ActionLiveUpdate,
			"checks",
		},
		"the command and the template": {func(g *store.Group) {
			g.Workload.Run, g.Template.InstanceType = nil, "large"
		}, nil, store.ActionRecreate, "template, workload.run"},
		"the template and a check": {func(g *store.Group) {
			g.Template.InstanceType, g.Checks = "large", nil
		}, nil, store.ActionRecreate, "template, checks"},
		"what it was is unknown": {
			func(*store.Group) {},
			func(r *store.Instance) { r.Template = templateUnknown }, store.ActionRecreate,
			"what it was made from is unknown",
		},
		"a relaunch by a restart": {func(g *store.Group) {
			g.Relaunch = store.Relaunch{Number: 1, Action: store.ActionRestart}
		}, nil, store.ActionRestart, "relaunch 1"},
		"a relaunch by another machine": {func(g *store.Group) {
			g.Relaunch = store.Relaunch{Number: 1, Action: store.ActionRecreate}
		}, nil, store.ActionRecreate, "relaunch 1"},
		"a relaunch that it has been through": {func(g *store.Group) {
			g.Relaunch = store.Relaunch{Number: 1, Action: store.ActionRecreate}
		}, func(r *store.Instance) { r.Relaunch = 1 }, store.ActionLiveUpdate, ""},
		"a relaunch by a restart, and another template": {func(g *store.Group) {
			g.Relaunch, g.Template.InstanceType = store.Relaunch{Number: 1, Action: store.ActionRestart}, "large"
		}, nil, store.ActionRecreate, "template, relaunch 1"},
		"an operator wants a restart": {func(g *store.Group) {
			g.Checks, g.Rollout.MinimalAction = nil, store.ActionRestart
		}, nil, store.ActionRestart, "checks"},
		"an operator wants another machine": {func(g *store.Group) {
			g.Checks, g.Rollout.MinimalAction = nil, store.ActionRecreate
		}, nil, store.ActionRecreate, "checks"},
		"an operator wants less than it takes": {func(g *store.Group) {
			g.Template.InstanceType, g.Rollout.MinimalAction = "large", store.ActionLiveUpdate
		}, nil, store.ActionRecreate, "template"},
		"an operator wants a restart, and it takes more": {func(g *store.Group) {
			g.Template.InstanceType, g.Rollout.MinimalAction = "large", store.ActionRestart
		}, nil, store.ActionRecreate, "template"},
	} {
		was, now := base(), base()
		if test.now != nil {
			test.now(now)
		}
		m := &member{Instance: &Instance{}}
		m.Record.Spec, m.Record.Template, m.Record.Managed = was.InstanceSpec(), was.InstanceSpec().TemplateHash(), true
		if test.was != nil {
			test.was(&m.Record)
			if m.Record.Template != templateUnknown {
				m.Record.Template = m.Record.Spec.TemplateHash()
			}
		}
		d := draftWith(func(d *draft) {
			d.spec = now
			d.hash = now.InstanceSpec().TemplateHash()
		})
		action, why := d.change(m)
		if action != test.want || why.Text != test.why || why.Kind != store.CauseOutdated {
			t.Errorf("%s: %s, %s, want %s for %s", name, action, why.Text, test.want, test.why)
		}
		if outdated := d.outdated(m); outdated != (test.why != "") {
			t.Errorf("%s: outdated %t", name, outdated)
		}
	}
	for _, test := range []struct {
		run      []string
		was, now map[string]string
		want     bool
	}{
		{[]string{"a", "${x}"}, map[string]string{"x": "1"}, map[string]string{"x": "2"}, true},
		{[]string{"${x}", "b"}, map[string]string{"x": "1"}, map[string]string{"x": "2"}, true},
		{[]string{"pre${x}post"}, map[string]string{"x": "1"}, map[string]string{"x": "2"}, true},
		{[]string{"$x", "{x}", "x"}, map[string]string{"x": "1"}, map[string]string{"x": "2"}, false},
		{[]string{"${x}"}, map[string]string{"x": "1"}, map[string]string{"x": "1"}, false},
		{[]string{"${x}"}, map[string]string{"x": ""}, nil, true},
		{[]string{"${x}"}, nil, map[string]string{"x": ""}, true},
		{[]string{"${x}"}, map[string]string{"x": "1", "y": "1"}, map[string]string{"x": "1", "y": "2"}, false},
		{[]string{"${x}"}, nil, nil, false},
	} {
		if got := runUses(test.run, test.was, test.now); got != test.want {
			t.Errorf("%q, from %v to %v: %t", test.run, test.was, test.now, got)
		}
	}
}
