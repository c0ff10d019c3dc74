package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// BudgetTurn is the name of the key below turns/ that every change compares and writes which uses
// the budget of a group with a budget_group: of two that were planned with room for one, the second
// finds the key changed (REC-18). No group has such a name.
func BudgetTurn(budgetGroup string) string { return "@budget-" + budgetGroup }

// Down is how many of the wanted slots of a group have no instance that has fully booted, and how
// many have none that is healthy.
type Down struct{ Unavailable, Unwell int }

// sharedBudget is what groups may have down together that name the same budget_group (REC-18).
type sharedBudget struct {
	name   string
	most   int
	drafts []*draft
	others map[string]Down // groups that are not in the snapshot
}

// shareBudgets joins the drafts whose groups share a budget. Evidence has all of them planned
// together.
func shareBudgets(s *Snapshot, drafts []*draft) {
	var shared map[string]*sharedBudget
	for _, d := range drafts {
		if d.spec == nil || d.spec.BudgetGroup == "" {
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
		for _, m := range d.members {
			if d.endsSoon(m) {
				d.wake(m.Record.Drill.At.Add(store.DrillTime)) // others may wait for its place
			}
		}
	}
}

// down is how much of the group is down. What an operator stopped or deletes is wanted no more, and
// of what cannot be read nothing is known: it counts as down.
func (d *budget) down() Down {
	switch {
	case d.spec.Stopped || d.spec.Deleting || d.spec.Unstarted:
		return Down{}
	case d.g.Unreadable != "":
		return Down{d.spec.Size, d.spec.Size}
	default:
		down := Down{d.unavailable(), d.unwell()}
		for _, m := range d.members {
			if d.endsSoon(m) {
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

// endsSoon reports whether the machine of a member is being ended by a drill: it has its place in
// the shared budget before it is down (DAY-6).
func (v *view) endsSoon(m *member) bool {
	return m.Record.Managed && (m.drilled || m.Record.Drilled(v.now))
}

// all is how much is down in all groups together, and where.
func (b *sharedBudget) all() (sum Down, where string) { return b.without(nil) }

// usedByOthers reports whether nothing is left of the budget for a group, even if it has none down.
func (b *sharedBudget) usedByOthers(d *draft) bool {
	sum, _ := b.without(d)
	return max(sum.Unavailable, sum.Unwell) >= b.most
}

// without is how much is down in all groups but one.
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

// overShared reports whether the budget that the group shares with others keeps a member from being
// taken down, and records that: one that is down already, or counts as such, takes nothing down
// (HEAL-5).
func (d *budget) overShared(what task, m *member) bool {
	if d.shared == nil || !m.healthy() && !d.booted(m) || d.endsSoon(m) {
		return false
	}
	sum, where := d.shared.all()
	if (!m.healthy() || sum.Unwell < d.shared.most) && (!d.booted(m) || sum.Unavailable < d.shared.most) {
		return false
	}
	d.block("REC-18", what, store.BlockedBySharedBudget, store.BlockedFacts{
		Name: d.shared.name, Limit: d.shared.most, Count: max(sum.Unavailable, sum.Unwell), Text: where,
	})
	return true
}

// bears reports whether so many more may be down.
func (b *sharedBudget) bears(more int) bool {
	sum, _ := b.all()
	return more+max(sum.Unavailable, sum.Unwell) <= max(1, b.most)
}

// waitsForOthers reports whether work of the group waited for the shared budget when it was last
// planned, since the others alone use it up: that is no stall of its roll (ROLL-4). What the roll
// itself has taken down and cannot bring back is one.
func (d *budget) waitsForOthers() bool {
	return d.shared != nil && slices.ContainsFunc(d.g.Status.Record.Blocked,
		func(b store.Blocked) bool { return b.Kind == store.BlockedBySharedBudget }) &&
		d.shared.usedByOthers(d.draft) && !d.roll.unproven()
}
