package judge

import (
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// tight is a group of two in which both are sick, with budgets.
func tight(t *testing.T, change func(*store.Group)) *story {
	s := web(t)
	s.group("web", 2, func(g *store.Group) {
		g.Budget.MaxUnavailable = nil
		change(g)
	})
	for _, id := range []string{one, "web-1-aaaaaa"} {
		s.harm(id, history.Sick)
		s.shows(id, false)
	}
	return s
}

func TestExpansionIsKept(t *testing.T) {
	both := func(most int) *story {
		s := tight(t, func(g *store.Group) { g.Budget.MaxExpansion = store.Amount(most) })
		s.requested("web", "web-0-bbbbbb", 0, one)
		s.requested("web", "web-1-bbbbbb", 1, "web-1-aaaaaa")
		return s
	}
	both(2).innocent()
	both(1).broken("HEAL-2")
}

func TestTheDeadUseNoExpansion(t *testing.T) {
	s := tight(t, func(*store.Group) {})
	s.harm(one, history.Crashed)
	s.machine(one, history.Ended, history.ByFault)
	s.requested("web", "web-1-bbbbbb", 1, "web-1-aaaaaa")
	s.txn(s.record(one, func(r *store.Instance) { r.Phase = store.Deleting }),
		put(s.keys.Instance("web-0-bbbbbb"), s.fresh("web", "web-0-bbbbbb", 0, one)),
		s.entry(store.JournalEntry{
			Instance: one, Verdict: store.Dead,
			What: "deleting; replacement web-0-bbbbbb requested", From: store.Running, To: store.Deleting,
		}))
	s.innocent()
}

func TestMaxCreatingIsKept(t *testing.T) {
	both := func(most int) *story {
		s := tight(t, func(g *store.Group) { g.Budget.MaxExpansion, g.Budget.MaxCreating = 2, most })
		s.requested("web", "web-0-bbbbbb", 0, one)
		s.requested("web", "web-1-bbbbbb", 1, "web-1-aaaaaa")
		return s
	}
	both(2).innocent()
	both(1).broken("HEAL-7")
}

func TestMaxDeletingIsKept(t *testing.T) {
	both := func(most int) *story {
		s := tight(t, func(g *store.Group) {
			g.Budget.MaxDeleting, g.Budget.MaxUnavailable = most, many(2)
		})
		s.step(one, store.Deleting)
		s.step("web-1-aaaaaa", store.Deleting)
		return s
	}
	both(0).innocent()
	both(2).innocent()
	both(1).broken("HEAL-7")
}

func TestMaxUnavailableIsKept(t *testing.T) {
	removed := func(most int) *story {
		s := tight(t, func(g *store.Group) { g.Budget.MaxUnavailable = many(store.Amount(most)) })
		s.step(one, store.Deleting)
		return s
	}
	removed(1).innocent()
	removed(0).broken("HEAL-3")

	s := tight(t, func(*store.Group) {}) // one that is covered by its replacement uses none
	s.requested("web", "web-0-bbbbbb", 0, one)
	s.made("web-0-bbbbbb")
	s.healthy("web-0-bbbbbb")
	s.step(one, store.Deleting)
	s.innocent()
}
