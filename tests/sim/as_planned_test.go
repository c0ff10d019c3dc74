package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// proves that the judge counts a restart unless it was carried out after the plan, and all else
// that comes up.
func TestTheJudgeOfMaxCreating(t *testing.T) {
	const run, stop, start = store.Running, store.Stopping, store.Starting
	for name, c := range map[string]struct {
		planned, now []store.Phase // of the same instances
		fails        bool
	}{
		"room for one":                          {[]store.Phase{run, start}, []store.Phase{run, start}, false},
		"no room":                               {[]store.Phase{start, start}, []store.Phase{start, start}, true},
		"no room, one is still to be restarted": {[]store.Phase{stop, start}, []store.Phase{stop, start}, false},
		"one was restarted meanwhile":           {[]store.Phase{stop, start}, []store.Phase{start, start}, false},
		"one was restarted, and another was made": {
			[]store.Phase{stop, start}, []store.Phase{start, start, store.Pending}, true,
		},
		"one was begun and restarted meanwhile": {[]store.Phase{run, start}, []store.Phase{start, start}, true},
	} {
		tr := &trial{w: sim.New(sim.Config{})}
		g := store.DefaultGroup()
		g.Budget.MaxCreating = 2
		member := func(i int, p store.Phase) store.Instance {
			return store.Instance{ID: string(rune('a' + i)), Group: "web", Managed: true, Phase: p}
		}
		seen, members := plan.Group{Name: "web"}, []store.Instance(nil)
		for i, p := range c.planned {
			var m plan.Instance
			m.Record = member(i, p)
			seen.Instances = append(seen.Instances, m)
		}
		for i, p := range c.now {
			members = append(members, member(i, p))
		}
		in := &inquiry{
			tr: tr, a: &plan.Action{Group: "web"}, s: &plan.Snapshot{Groups: []plan.Group{seen}}, p: &plan.Plan{},
			changes: []change{{next: store.Instance{ID: "new", Group: "web", Managed: true, Phase: store.Pending}}},
			force:   inForce{spec: g, there: true},
		}
		if in.creating(members); (tr.failed != "") != c.fails {
			t.Errorf("%s: failed %q", name, tr.failed)
		}
	}
}

// proves that the judge of a shared budget counts what the plan knew was wanted of the other
// groups.
func TestTheJudgeOfASharedBudget(t *testing.T) {
	group := func(name string, size int) store.Group {
		g := store.DefaultGroup()
		g.Name, g.Provider, g.Size, g.BudgetGroup = name, "cloud", size, "shop"
		g.Complete()
		return g
	}
	at := func(g store.Group, rev store.Revision) plan.Group {
		return plan.Group{Name: g.Name, Spec: plan.Spec{Group: g, Modified: rev}}
	}
	other := group("db", 5)
	other.BudgetGroup = "other"
	stopped, accepted := group("db", 5), group("db", 5)
	stopped.Stopped = true
	unread := at(store.Group{Name: "db"}, 1)
	unread.Spec.Problem, unread.Status.Record.Accepted = "it cannot be read", &accepted
	for name, c := range map[string]struct {
		edited  int         // size of db now; it has three instances
		before  bool        // the edit came before the plan
		planned *plan.Group // db as the plan saw it
		fails   bool
	}{
		"none is missing":                        {edited: 3, before: true},
		"one is missing":                         {edited: 4, before: true, fails: true},
		"one is missing, and was when planned":   {edited: 4, planned: new(at(group("db", 5), 1)), fails: true},
		"one was asked for after the plan":       {edited: 4, planned: new(at(group("db", 3), 1))},
		"it asks for fewer since":                {edited: 2, planned: new(at(group("db", 4), 1)), fails: true},
		"it shares the budget since":             {edited: 4, planned: new(at(other, 1))},
		"it shares the budget since: not seen":   {edited: 4},
		"it was stopped until then":              {edited: 4, planned: new(at(stopped, 1))},
		"what was accepted last counted":         {edited: 4, planned: &unread, fails: true},
		"what is wanted now, for it stands long": {edited: 3, before: true, planned: new(at(group("db", 5), 1))},
	} {
		tr := &trial{specs: map[string]inForce{}, spoiled: map[string]bool{}}
		tr.w = sim.New(sim.Config{Groups: []store.Group{group("web", 3), group("db", 3)}})
		tr.w.RunUntil(tr.w.Now().Add(2 * time.Minute))
		if n := tr.w.Working("db"); n != 3 {
			t.Fatalf("%d of db work", n)
		}
		s := &plan.Snapshot{Revision: tr.w.Revision(tr.w.Keys().Group("db"))}
		tr.w.Edit("db", func(g *store.Group) { g.Size = c.edited })
		if c.before {
			s.Revision = tr.w.Revision(tr.w.Keys().Group("db"))
		}
		if c.planned != nil {
			s.Groups = []plan.Group{*c.planned}
		}
		in := &inquiry{
			tr: tr, a: &plan.Action{Group: "web"}, s: s, p: &plan.Plan{}, force: tr.inForce("web"),
		}
		in.shared(1)
		if (tr.failed != "") != c.fails || c.fails && !strings.Contains(tr.failed, "budget_group shop allows 1") {
			t.Errorf("%s: failed %q", name, tr.failed)
		}
	}
}
