package plan

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// This is a second, simpler opinion on the budgets, after the words of the rules. It counts what is
// recorded, as it would be once some of a plan's actions have happened and the others were
// overtaken, and shares no code with budget.go.

// census is what a group's records come to.
type census struct {
	expansion int // instances that are there, without the dead, above size
	creating  int
	leaving   int
}

// auditor looks at one plan for one group.
type auditor struct {
	spec    *store.Group
	plan    *Plan
	now     time.Time
	records map[string]store.Instance // as they are
	started map[string]time.Time      // since when they are in their phases
	down    map[string]bool           // the provider calls it down, or its agent says that its workload has ended
	died    map[int]bool              // slots that are empty since their instances died
	changes [][]store.Instance        // by action: what it records of the group's managed instances
	before  census
}

func audit(s *Snapshot, g *Group, p *Plan, now time.Time) *auditor {
	a := &auditor{
		spec: inForce(s, g.Name, now), plan: p, now: now, records: map[string]store.Instance{},
		started: map[string]time.Time{}, down: map[string]bool{}, died: map[int]bool{},
	}
	for _, sl := range g.Slots {
		a.died[sl.Record.Number] = sl.Record.Vacated != nil && sl.Record.Vacated.Dead
	}
	for _, in := range g.Instances {
		a.records[in.Record.ID], a.started[in.Record.ID] = in.Record, in.PhaseStart
		a.down[in.Record.ID] = hasEnded(&in) || in.Sighting.Down && in.Sighting.Begun.After(in.PhaseStart) &&
			in.Sighting.Begun.After(in.StreamSince)
	}
	for i := range p.Actions {
		var next []store.Instance
		for _, op := range p.Actions[i].Writes {
			if p.Actions[i].Group != g.Name || op.Delete || !strings.HasPrefix(op.Key, s.Keys.Of(store.KindInstances)) {
				continue // that a record goes only makes room
			}
			v, err := store.Decode[store.Instance](store.KV{Key: op.Key, Value: op.Value})
			if err == nil && v.Record.Managed {
				next = append(next, v.Record)
			}
		}
		a.changes = append(a.changes, next)
	}
	if a.spec != nil {
		a.before = a.count(a.records)
	}
	return a
}

// overBudget returns which budget is exceeded when only these actions of the plan happen, in
// whatever order: no two change one record. "" if none is.
func (a *auditor) overBudget(happens func(i int) bool) string {
	if a.spec == nil {
		return ""
	}
	records := maps.Clone(a.records)
	free := 0 // made for the dead: they wait for no budget
	var made, left *Action
	var down []*Action
	for i := range a.changes {
		act := &a.plan.Actions[i]
		if !happens(i) {
			continue
		}
		for _, next := range a.changes[i] {
			old, there := records[next.ID]
			records[next.ID] = next
			switch dead := act.Verdict == store.Dead; {
			case !there && (dead || a.died[next.Slot]):
				free++
			case !there && act.Rule != "SPOT-2" && act.Rule != "REC-8":
				made = act
			case there && !goes(old.Phase) && goes(next.Phase) && !dead && act.Rule != "SPOT-2" &&
				!orderedRestart(act, next):
				left = act
				if a.available(old) && !unbound(act, old) {
					down = append(down, act)
				}
			}
		}
	}
	for _, act := range down {
		most, slots := a.spec.MaxUnavailable(act.To == store.Stopping), a.availableSlots(records)
		if n := a.spec.Size - len(slots); n > most && !slots[*act.Slot] {
			return fmt.Sprintf("max_unavailable is %d, and %d are once %s: %s %s", most, n, act.Instance, act.Rule,
				act.What())
		}
	}
	after, budget := a.count(records), a.spec.Budget
	switch {
	case after.expansion > max(a.spec.MaxExpansion(), a.before.expansion)+free:
		return fmt.Sprintf("max_expansion is %d, %d were in use, and %d are then", a.spec.MaxExpansion(),
			a.before.expansion, after.expansion)
	case made != nil && budget.MaxCreating != 0 && after.creating > budget.MaxCreating:
		return fmt.Sprintf("max_creating is %d, and %d come up once %s: %s", budget.MaxCreating, after.creating,
			made.Instance, made.What())
	case left != nil && budget.MaxDeleting != 0 && after.leaving > budget.MaxDeleting:
		return fmt.Sprintf("max_deleting is %d, and %d leave once %s: %s", budget.MaxDeleting, after.leaving,
			left.Instance, left.What())
	default:
		return ""
	}
}

// count counts what is recorded.
func (a *auditor) count(records map[string]store.Instance) census {
	var c census
	for id, rec := range records {
		if !rec.Managed {
			continue
		}
		v := a.plan.Judgments.Of(id).Verdict
		leaves := rec.Phase == store.Draining || rec.Phase == store.Deleting
		noticed := leaves && rec.Doomed != nil && rec.Doomed.Rule == "SPOT-2" // it cannot be kept (SPOT-2)
		exists := rec.Phase != store.Deleting || rec.Called && !rec.Dead      // until it is gone (REC-18)
		if exists && v != store.Dead && !noticed {
			c.expansion++
		}
		if goes(rec.Phase) {
			c.leaving++
		}
		switch rec.Phase {
		case store.Pending, store.Creating, store.Booting, store.Starting:
			if !v.Failed() {
				c.creating++
			}
		default:
		}
	}
	c.expansion -= a.spec.Size
	return c
}

// availableSlots are the slots with an available instance.
func (a *auditor) availableSlots(records map[string]store.Instance) map[int]bool {
	slots := map[int]bool{}
	for _, rec := range records {
		if rec.Managed && a.available(rec) {
			slots[rec.Slot] = true
		}
	}
	return slots
}

// hasEnded: by the word of its agent the workload has ended, and not as a task ends well (REC-18).
func hasEnded(in *Instance) bool {
	exit := in.Report.Record.Workload
	if !in.Alive.Present() || exit == nil || in.Report.Record.BootID != in.Alive.Record.BootID {
		return false
	}
	return in.Record.Spec.Lifecycle != store.LifecycleTask || exit.Code != 0 || exit.Signal != ""
}

func goes(p store.Phase) bool {
	return p == store.Draining || p == store.Stopping || p == store.Deleting
}

// available: booted, whatever its checks say (HEAL-5), for startup_duration (ROLL-3), and not down
// (REC-18); or its task is done, so that its slot needs no instance (REC-12).
func (a *auditor) available(rec store.Instance) bool {
	return rec.Phase == store.Finished ||
		rec.Phase == store.Running && !a.down[rec.ID] && a.plan.Judgments.Of(rec.ID).Verdict != store.Dead &&
			a.now.Sub(a.started[rec.ID]) >= a.spec.Rollout.StartupDuration.D()
}

// orderedRestart: it waits for no budget.
func orderedRestart(a *Action, next store.Instance) bool {
	return a.Rule == "REC-16" && next.Phase == store.Stopping
}

// unbound reports whether max_unavailable does not protect an instance: it is surplus, its group
// goes, or it was ordered to go now.
func unbound(a *Action, old store.Instance) bool {
	switch a.Rule {
	case "HEAL-9", "REC-7", "REC-11":
		return true
	default:
		return old.Condemned != nil && old.Condemned.Now
	}
}

// overBudgetSomehow tries parts of the plan: all of it, only one action, all but one, those before
// and those after each.
func (a *auditor) overBudgetSomehow() string {
	if problem := a.overBudget(func(int) bool { return true }); problem != "" {
		return problem
	}
	for k := range a.changes {
		for _, part := range []func(int) bool{
			func(i int) bool { return i == k }, func(i int) bool { return i != k }, func(i int) bool { return i < k },
			func(i int) bool { return i > k },
		} {
			if problem := a.overBudget(part); problem != "" {
				return problem
			}
		}
	}
	return ""
}
