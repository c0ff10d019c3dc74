package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// sharing is a world with two groups that make room before they replace, each one at a time.
func sharing(seed uint64, limits store.Limits, observer sim.Observer, change func(*store.Group)) *sim.World {
	var groups []store.Group
	for _, name := range []string{"api", "web"} {
		g := web(3)
		g.Name, g.BudgetGroup = name, "shop"
		g.Budget.MaxExpansion, g.Budget.MaxUnavailable = 0, new(store.Amount(1))
		if change != nil {
			change(&g)
		}
		g.Complete()
		groups = append(groups, g)
	}
	return sim.New(sim.Config{
		Seed: seed, Groups: groups, Settings: store.ShardSettings{BudgetGroups: limits}, Observer: observer,
	})
}

func roll(w *sim.World, groups ...string) {
	for _, name := range groups {
		w.Edit(name, func(g *store.Group) { g.Template.InstanceType = "large" })
	}
}

func rolled(w *sim.World, group string) bool {
	st := sim.Read[store.Status](w, w.Keys().Status(group)).Record
	return st.Outdated == 0 && st.Rollout == nil && st.Healthy == 3
}

// Two groups that name the same budget_group are never down together, though each would allow it,
// and both changes complete. A limit of the shard allows more.
//
// proves REC-18
func TestGroupsThatShareABudgetAreNotDownTogether(t *testing.T) {
	for _, test := range []struct {
		limits      store.Limits
		leave, most int
		change      func(*store.Group)
	}{
		{most: 1},
		{most: 1, change: func(g *store.Group) { g.Rollout.MinimalAction = store.ActionRestart }},
		{limits: "shop:2,other:1", most: 2},
		{limits: "shop:5", most: 2},
		{most: 2, change: func(g *store.Group) { g.BudgetGroup = "" }},
	} {
		for seed := range uint64(5) {
			most := 0
			var w *sim.World
			begun := false
			w = sharing(seed, test.limits, sim.Observer{Stirred: func(string) {
				if begun {
					most = max(most, 6-w.Working("api")-w.Working("web"))
				}
			}}, test.change)
			w.RunUntil(w.Now().Add(2 * time.Minute))
			begun = true
			roll(w, "api", "web")
			w.RunUntil(w.Now().Add(15 * time.Minute))
			if !rolled(w, "api") || !rolled(w, "web") {
				t.Fatalf("%+v, seed %d: the rolls are not done", test, seed)
			}
			if most != test.most {
				t.Errorf("%+v, seed %d: %d were down together", test, seed, most)
			}
		}
	}
}

// While one group has an instance down, the other takes none down, and its status says why. Its
// dead instances are replaced nevertheless, and what was stopped on purpose delays nothing. A drill
// is refused.
//
// proves REC-18, DAY-6
func TestASharedBudgetThatIsUsedUp(t *testing.T) {
	refused := false
	w := sharing(3, "", sim.Observer{Committed: func(_ time.Time, a *plan.Action, _ store.Revision) {
		refused = refused || strings.Contains(a.What()+a.Why, "budget_group shop does not allow it")
	}}, nil)
	w.RunUntil(w.Now().Add(2 * time.Minute))
	w.Fill("cloud", "a", true)
	w.Fill("cloud", "b", true)
	first := func(group string) string {
		for _, id := range w.Instances() {
			if w.Instance(id).Record.Group == group {
				return id
			}
		}
		t.Fatal("no instance")
		return ""
	}
	w.Kill(first("api"))
	w.RunUntil(w.Now().Add(time.Minute))
	w.Order(store.Request{Kind: store.RequestDrill, Instance: first("web"), By: "ada"})
	w.RunUntil(w.Now().Add(time.Minute))
	if n := w.Working("web"); n != 3 || !refused {
		t.Fatalf("%d of web work after a drill that the shared budget does not allow", n)
	}
	roll(w, "web")
	w.RunUntil(w.Now().Add(5 * time.Minute))
	blocked := sim.Read[store.Status](w, w.Keys().Status("web")).Record.Blocked
	if n := w.Working("web"); n != 3 || !slices.ContainsFunc(blocked, func(b store.Blocked) bool {
		return b.Rule == "REC-18" && b.Why == "budget_group shop allows 1 down at once, and 1 is: 1 in api"
	}) {
		t.Fatalf("%d of web work while one of api is down, and it is blocked by %+v", n, blocked)
	}
	w.RunUntil(w.Now().Add(20 * time.Minute))
	if r := sim.Read[store.Status](w, w.Keys().Status("web")).Record.Rollout; r == nil || r.Stalled != "" {
		t.Fatalf("a roll that waits for another group is not going on: %+v", r)
	}
	dead := first("web")
	w.Kill(dead)
	w.RunUntil(w.Now().Add(time.Minute))
	if slices.Contains(w.Instances(), dead) {
		t.Fatal("a dead instance waits for the shared budget")
	}
	w.Edit("api", func(g *store.Group) { g.Stopped = true })
	w.Fill("cloud", "a", false)
	w.Fill("cloud", "b", false)
	w.RunUntil(w.Now().Add(15 * time.Minute))
	if !rolled(w, "web") {
		t.Error("the roll waits for a group that was stopped")
	}
}

// Of two drills in groups that share a budget one is refused, whether they are ordered at once or
// while the first machine still works.
//
// proves REC-18, DAY-6
func TestDrillsShareABudget(t *testing.T) {
	for _, between := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, time.Second} {
		most, begun := 0, false
		var w *sim.World
		w = sharing(3, "", sim.Observer{Stirred: func(string) {
			if begun {
				most = max(most, 6-w.Working("api")-w.Working("web"))
			}
		}}, nil)
		w.RunUntil(w.Now().Add(2 * time.Minute))
		begun = true
		drilled := map[string]bool{}
		for _, id := range w.Instances() {
			if group := w.Instance(id).Record.Group; !drilled[group] {
				drilled[group] = true
				w.Order(store.Request{Kind: store.RequestDrill, Instance: id, By: "ada"})
				w.RunUntil(w.Now().Add(between))
			}
		}
		w.RunUntil(w.Now().Add(5 * time.Minute))
		if most != 1 {
			t.Errorf("%s between the orders: %d were down together", between, most)
		}
	}
}

// A roll to a template of which no machine can be made uses the shared budget up itself. That is a
// stall, and the group goes back. While the other group uses it up, the roll only waits.
//
// proves REC-18, ROLL-4, ROLL-5
func TestARollThatUsesUpTheSharedBudgetStalls(t *testing.T) {
	stalled := false
	w := sharing(3, "", sim.Observer{Committed: func(_ time.Time, a *plan.Action, _ store.Revision) {
		for _, told := range a.JournalEntries() {
			stalled = stalled || told.Group == "web" && told.What() == "roll is stalled"
		}
	}}, func(g *store.Group) {
		g.Budget.MaxUnavailable, g.Rollout.AutoRollback = new(store.Amount(2)), true
	})
	w.RunUntil(w.Now().Add(2 * time.Minute))
	w.Fill("cloud", "a", true)
	w.Fill("cloud", "b", true)
	roll(w, "web")
	w.RunUntil(w.Now().Add(30 * time.Minute))
	if g, _ := w.Group("web"); !stalled || g.Template.InstanceType == "large" {
		t.Errorf("it is stalled: %t, and the template is of type %s", stalled, g.Template.InstanceType)
	}
}

// Every change that uses the shared budget compares its key, which the one before wrote.
//
// proves REC-18, SAFE-4
func TestChangesOfASharedBudgetTakeTurns(t *testing.T) {
	turns := map[string]bool{}
	w := sharing(1, "", sim.Observer{Committed: func(_ time.Time, a *plan.Action, _ store.Revision) {
		if a.Turn {
			turns[fmt.Sprint(a.Group, " ", a.BudgetGroup)] = true
		}
	}}, nil)
	key := w.Keys().Turn(plan.BudgetTurn("shop"))
	w.RunUntil(w.Now().Add(2 * time.Minute))
	before := w.Revision(key)
	roll(w, "web")
	w.RunUntil(w.Now().Add(10 * time.Minute))
	if before == 0 || w.Revision(key) <= before || len(turns) != 2 || !turns["api shop"] || !turns["web shop"] {
		t.Errorf("the key of the budget went from revision %d to %d; changes were of %v", before, w.Revision(key), turns)
	}
}
