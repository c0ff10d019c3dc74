package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// BudgetTurn is the name of the key below turns/ that every change compares and writes if it uses a
// budget_group's budget: if two changes were planned with room for one, the second finds the key
// changed (REC-18). No group has this name.
func BudgetTurn(budgetGroup string) string { return "@budget-" + budgetGroup }

// Down counts the wanted slots of a group without a fully booted instance, and those without a
// healthy one.
type Down struct{ Unavailable, Unwell int }

// sharedBudget is the budget of the groups with the same budget_group (REC-18).
type sharedBudget struct {
	name   string
	most   int
	drafts []*draft
	others map[string]Down // groups that are not in the snapshot
}

// shareBudgets connects the drafts whose groups share a budget. Evidence plans all of them
// together.
func shareBudgets(s *Snapshot, drafts []*draft) {
	var shared map[string]*sharedBudget
	for _, d := range drafts {
		if d.spec == nil {
			continue
		}
		d.budget.reserveForDrills()
		if d.spec.BudgetGroup == "" {
			continue
		}
		name := d.spec.BudgetGroup
		b := shared[name]
		if b == nil {
			b = &sharedBudget{name: name, most: s.Shard.Record.Settings.BudgetOf(name), others: s.DownElsewhere}
			if shared == nil {
				shared = map[string]*sharedBudget{}
			}
			shared[name] = b
		}
		b.drafts, d.budget.shared = append(b.drafts, d), b
	}
}

// reserveForDrills finds the members that drills end soon.
func (d *budget) reserveForDrills() {
	for _, m := range d.members {
		if d.endsSoon(m) {
			d.wake(drillOver(m.Record.Drill, m)) // others may wait for its room
			if m.Record.Drill.Kind != store.DrillMachine {
				d.ending = append(d.ending, m)
			}
		}
	}
}

// down returns how much of the group is down. Slots that an operator stopped or deletes are not
// wanted. An unreadable group counts as down.
func (d *budget) down() Down {
	switch {
	case d.spec.Stopped || d.spec.Deleting || d.spec.Unstarted:
		return Down{}
	case d.g.Unreadable != "":
		return Down{d.spec.Size, d.spec.Size}
	default:
		down := Down{d.unavailable(), d.unwell()}
		for _, m := range d.members {
			if d.endsSoon(m) && !slices.Contains(d.ending, m) { // those are counted
				if m.slot.up == 1 && d.up(m) {
					down.Unavailable++
				}
				if m.slot.well == 1 && m.healthy() {
					down.Unwell++
				}
			}
		}
		return Down{min(down.Unavailable, d.spec.Size), min(down.Unwell, d.spec.Size)}
	}
}

// endsSoon reports whether a drill is ending the member: it uses the shared budget before it is
// down (DAY-6).
func (v *view) endsSoon(m *member) bool {
	return m.Record.Managed && (m.drilled || m.Record.Drilled(v.now) && v.now.Before(drillOver(m.Record.Drill, m)))
}

// drillOver is when what a drill ends has ended, or never will: an agent that has not received the
// order by then does not receive it any more, and one that has is missed.
func drillOver(drill *store.Drill, m *member) time.Time {
	if drill.Kind == store.DrillMachine {
		return drill.At.Add(store.DrillTime)
	}
	return drill.At.Add(store.DrillTold + m.Record.Spec.Report.LeaseTTL.D())
}

// all returns how much is down in all groups together, and in which.
func (b *sharedBudget) all() (sum Down, where string) { return b.without(nil) }

// usedByOthers reports whether the others leave a group nothing of the budget, even if it has no
// instance down.
func (b *sharedBudget) usedByOthers(d *draft) bool {
	sum, _ := b.without(d)
	return max(sum.Unavailable, sum.Unwell) >= b.most
}

// without returns how much is down in all groups but one.
func (b *sharedBudget) without(but *draft) (sum Down, where string) {
	var groups []string
	add := func(name string, down Down) {
		sum.Unavailable, sum.Unwell = sum.Unavailable+down.Unavailable, sum.Unwell+down.Unwell
		if n := max(down.Unavailable, down.Unwell); n > 0 {
			groups = append(groups, fmt.Sprintf("%d in %s", n, name))
		}
	}
	for _, d := range b.drafts {
		if d != but {
			add(d.g.Name, d.budget.down())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.others)) {
		add(name, b.others[name])
	}
	return sum, strings.Join(groups, ", ")
}

// sharedBlocker returns the shared budget if it forbids taking a member down. A member that is
// down, or counts as down, takes nothing down (HEAL-5).
func (d *budget) sharedBlocker(m *member) *blocker {
	if d.shared == nil || !m.healthy() && !d.booted(m) || d.endsSoon(m) {
		return nil
	}
	sum, where := d.shared.all()
	if (!m.healthy() || sum.Unwell < d.shared.most) && (!d.booted(m) || sum.Unavailable < d.shared.most) {
		return nil
	}
	return blocked("REC-18", store.BlockedBySharedBudget, store.BlockedFacts{
		Name: d.shared.name, Limit: d.shared.most, Count: max(sum.Unavailable, sum.Unwell), Text: where,
	})
}

// bears reports whether the budget allows this many more to be down.
func (b *sharedBudget) bears(more int) bool {
	sum, _ := b.all()
	return more+max(sum.Unavailable, sum.Unwell) <= max(1, b.most)
}

// waitsForOthers reports whether the group's work waited, in its last plan, for a shared budget
// that the others used up alone: that is no stall of its roll (ROLL-4). Members that the roll
// itself took down and cannot bring back are a stall.
func (d *budget) waitsForOthers() bool {
	return d.shared != nil && slices.ContainsFunc(d.g.Status.Record.Blocked,
		func(b store.Blocked) bool { return b.Kind == store.BlockedBySharedBudget }) &&
		d.shared.usedByOthers(d.draft) && !d.roll.unproven()
}
