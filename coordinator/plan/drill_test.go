package plan

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A drill is refused where the group could not bear it, with the reason; the order is gone in the
// same transaction. What it can bear is marked, all instances in one transaction.
//
// proves DAY-6, REC-16
func TestWhatAGroupBears(t *testing.T) {
	one, zone := store.Request{Instance: "a"}, store.Request{Zone: "a"}
	spec := func(edit func(*store.Group)) func(*Snapshot) {
		return func(s *Snapshot) { edit(&s.Groups[0].Spec.Group) }
	}
	record := func(edit func(*store.Instance)) func(*Snapshot) {
		return func(s *Snapshot) { edit(&s.Groups[0].Instances[0].Record) }
	}
	two := store.Amount(2)
	for name, c := range map[string]struct {
		order   store.Request
		set     func(*Snapshot)
		refused string // "": carried out
		marked  int
	}{
		"one of four":       {one, nil, "", 1},
		"a zone, too large": {zone, nil, "2 would be down, and budget.max_unavailable allows 1", 0},
		"a zone within the budget": {
			zone, spec(func(g *store.Group) { g.Budget.MaxUnavailable = &two }), "", 2,
		},
		"no such zone": {store.Request{Zone: "z"}, nil, "no instance there", 0},
		"of no zone":   {store.Request{}, nil, "no instance there", 0},
		"on demand":    {store.Request{Instance: "x"}, nil, "on demand", 0},
		"paused":       {one, spec(func(g *store.Group) { g.Paused = true }), "it is paused", 0},
		"a task":       {one, spec(func(g *store.Group) { g.Lifecycle = store.LifecycleTask }), "has tasks", 0},
		"on hold":      {one, func(s *Snapshot) { s.Shard.Record.Hold = &store.Hold{} }, "on hold", 0},
		"a grace":      {one, func(s *Snapshot) { s.GraceEnd = s.GraceEnd.AddDate(100, 0, 0) }, "after a disturbance", 0},
		"protected":    {one, record(func(i *store.Instance) { i.Protected = store.ProtectRemoval }), "protected", 0},
		"sick itself": {
			one, func(s *Snapshot) { s.Groups[0].Instances[0].Report.Record.Healthy = false }, "not healthy and running", 0,
		},
		"one is sick":   {one, func(s *Snapshot) { s.Groups[0].Instances[3].Report.Record.Healthy = false }, "not all", 0},
		"too few there": {one, spec(func(g *store.Group) { g.Size = 5 }), "not all of its instances are healthy", 0},
		"its agent":     {store.Request{Instance: "a", Kind: store.RequestDrillAgent}, nil, "", 1},
		"its workload": {
			store.Request{Instance: "a", Kind: store.RequestDrillWorkload},
			record(func(i *store.Instance) { i.Spec.Workload.Run = []string{"./web"} }), "", 1,
		},
		"no workload": {
			store.Request{Instance: "a", Kind: store.RequestDrillWorkload},
			record(func(i *store.Instance) { i.Spec.Workload.Run = nil }), "runs no workload", 0,
		},
		"nothing heals": {
			store.Request{Instance: "a", Kind: store.RequestDrillAgent},
			spec(func(g *store.Group) { g.Heal.Policy = store.HealNone }), "heal.policy none", 0,
		},
		"the agent of another is upgraded": {
			one, func(s *Snapshot) {
				s.Groups[0].Instances[3].Record.Upgrade = &store.AgentUpgrade{Version: "v1.1.0", Token: "t"}
			}, "agent of d is being upgraded", 0,
		},
		"another drill": {
			one, func(s *Snapshot) {
				s.Groups[0].Instances[3].Record.Drill = &store.Drill{At: s.Groups[0].Instances[3].Record.Since, Asked: true}
			}, "another drill goes on", 0,
		},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 4 })
		for i, id := range []string{"a", "b", "c", "d"} {
			w.place(id, i, store.Running, func(r *store.Instance) { r.Zone = []string{"a", "a", "b", "b"}[i] })
		}
		w.place("x", -1, store.Running)
		s := w.snapshot()
		if s.GraceEnd.IsZero() {
			s.GraceEnd = w.now.Add(-time.Second)
		}
		if c.set != nil {
			c.set(&s)
		}
		c.order.ID, c.order.By, c.order.Kind = "r", "ada", cmp.Or(c.order.Kind, store.RequestDrill)
		if c.order.Instance == "" {
			c.order.Group = w.group
		}
		v := store.Versioned[store.Request]{Key: w.keys.Request("r"), Modified: 5, Record: c.order}
		s.Groups[0].Requests = []store.Versioned[store.Request]{v}
		var got []Action
		for _, a := range Compute(s, w.now).Actions {
			if slices.Contains(deleted(a), v.Key) {
				got = append(got, a)
			}
		}
		if len(got) != 1 || !slices.Contains(got[0].Conditions, v.Unchanged()) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		marked := 0
		for _, write := range got[0].Writes {
			if strings.Contains(string(write.Value), `"drill":{"request":"r","by":"ada"`) {
				marked++
			}
		}
		refused := got[0].Kind == store.EntryRefusal
		if refused && (got[0].Group != w.group || got[0].Facts[0].Text != c.order.Kind.Drill() ||
			got[0].Facts[0].Zone != c.order.Zone) {
			t.Errorf("%s: readers of drills do not find its refusal: %+v", name, got[0])
		}
		if marked != c.marked || refused != (c.refused != "") || refused && !strings.Contains(got[0].Why, c.refused) {
			t.Errorf("%s: %d marked, %s (%s)", name, marked, got[0].What(), got[0].Why)
		}
	}
}

// The provider is asked once, soon after the order, and only while nothing but the drill is wrong.
//
// proves DAY-6, SAFE-13
func TestWhenADrillEndsAMachine(t *testing.T) {
	for name, c := range map[string]struct {
		set   func(w *world, s *Snapshot, mark *store.Drill)
		calls int
	}{
		"ordered":       {nil, 1},
		"asked already": {func(_ *world, _ *Snapshot, mark *store.Drill) { mark.Asked = true }, 0},
		"ordered too long ago": {
			func(_ *world, _ *Snapshot, mark *store.Drill) { mark.At = mark.At.Add(-store.DrillBegins) }, 0,
		},
		"ordered by a clock that is ahead a little": {
			func(_ *world, _ *Snapshot, mark *store.Drill) { mark.At = mark.At.Add(30 * time.Second) }, 1,
		},
		"ordered in the future": {
			func(_ *world, _ *Snapshot, mark *store.Drill) { mark.At = mark.At.Add(time.Hour) }, 0,
		},
		"another is sick": {func(_ *world, s *Snapshot, _ *store.Drill) {
			s.Groups[0].Instances[2].Report.Record.Healthy = false
		}, 0},
		"another of the drill is down": {func(w *world, s *Snapshot, _ *store.Drill) {
			s.Groups[0].Instances[2].Record.Drill = &store.Drill{Request: "r", At: w.now, Asked: true}
			s.Groups[0].Instances[2].Report.Record.Healthy = false
		}, 1},
		"on hold": {func(_ *world, s *Snapshot, _ *store.Drill) { s.Shard.Record.Hold = &store.Hold{} }, 0},
		"a grace": {func(w *world, s *Snapshot, _ *store.Drill) { s.GraceEnd = w.now.Add(time.Second) }, 0},
		"it drains": {func(_ *world, s *Snapshot, _ *store.Drill) {
			s.Groups[0].Instances[0].Record.Phase = store.Draining
		}, 0},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 3 })
		for i, id := range []string{"a", "b", "c"} {
			w.place(id, i, store.Running)
		}
		s := w.snapshot()
		mark := store.Drill{Request: "r", By: "ada", At: w.now}
		s.Groups[0].Instances[0].Record.Drill = &mark
		if c.set != nil {
			c.set(w, &s, &mark)
		}
		calls := 0
		for _, call := range Compute(s, w.now).Calls {
			if call.Kind == CallHalt && call.Instance == "a" {
				calls++
			}
		}
		if calls != c.calls {
			t.Errorf("%s: %d calls, want %d", name, calls, c.calls)
		}
	}
}

// While a drill ends an agent or a workload, the group's own budget counts it as down before it is:
// nothing else is taken down beside it. When an agent can no longer receive the order and would be
// missed, the budget is free again. The end of a machine is not asked for while a roll is under
// way, so that the roll needs no room for it.
//
// proves DAY-6, REC-18
func TestADrillUsesTheBudgetOfItsGroup(t *testing.T) {
	one := store.Amount(1)
	for name, c := range map[string]struct {
		kind  store.DrillKind
		after time.Duration
		want  bool // an instance is taken down
	}{
		"an agent":                          {store.DrillAgent, time.Second, false},
		"a workload":                        {store.DrillWorkload, time.Second, false},
		"an agent that would be missed":     {store.DrillAgent, store.DrillTold + 16*time.Second, false},
		"an agent that was not reached":     {store.DrillAgent, store.DrillTold + 18*time.Second, true},
		"a machine that waits for its call": {store.DrillMachine, time.Second, true},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size, g.Budget.MaxExpansion, g.Budget.MaxUnavailable = 3, 0, &one })
		for i, id := range []string{"a", "b", "c"} {
			w.place(id, i, store.Running, func(r *store.Instance) {
				r.Template, r.Spec.Template.InstanceType = "t0", "small"
			})
		}
		w.pass(0)
		s := w.snapshot()
		s.Groups[0].Instances[0].Record.Drill = &store.Drill{
			Request: "r", Kind: c.kind, At: w.now.Add(-c.after), Asked: c.kind != store.DrillMachine, Epoch: 1,
		}
		taken := false
		for _, a := range Compute(s, w.now).Actions {
			taken = taken || a.Instance != ""
		}
		if taken != c.want {
			t.Errorf("%s: one is taken down: %t, want %t", name, taken, c.want)
		}
	}
}

// A drill opens no breaker: the slot that it has emptied does not count among those that fail.
//
// proves DAY-6, ROLL-7
func TestDrillOpensNoBreaker(t *testing.T) {
	for _, drilled := range []bool{false, true} {
		w := newTestWorld(t)
		two := store.Amount(2)
		w.edit(func(g *store.Group) { g.Size, g.Heal.MaxUnhealthy = 5, &two })
		for i, id := range []string{"a", "b", "c", "d", "e"} {
			w.place(id, i, store.Running)
		}
		s := w.snapshot()
		for i := range 3 {
			s.Groups[0].Instances[i].Report.Record.Healthy = false
		}
		if drilled {
			s.Groups[0].Instances[0].Record.Drill = &store.Drill{
				Request: "r", At: w.now, Kind: store.DrillWorkload, Asked: true,
			}
		}
		opened := slices.ContainsFunc(Compute(s, w.now).Actions, func(a Action) bool {
			return slices.ContainsFunc(a.JournalEntries(), func(e Action) bool { return e.Rule == "ROLL-7" })
		})
		if opened == drilled {
			t.Errorf("drilled %v: breaker opened %v", drilled, opened)
		}
	}
}
