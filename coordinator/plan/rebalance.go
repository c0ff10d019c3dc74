package plan

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// How long the next rebalance waits after one that was withdrawn, and for how long at most: it
// doubles each time (REC-17).
const (
	rebalanceWait     = 30 * time.Minute
	rebalanceWaitMost = 24 * time.Hour
)

// rebalance evens the zones of a group that wants it, one instance at a time. It has the lowest
// priority of all: it begins only while nothing else is to be done, makes the replacement first,
// and gives way to healing like a roll does (REC-17).
func (d *draft) rebalance() {
	if d.spec.Spread != store.SpreadEven {
		return
	}
	from, to, uneven := d.uneven()
	if !uneven || d.rebalancing() {
		return
	}
	what := task{work: store.WorkRebalance, zone: from, to: to}
	wait := d.ends(d.g.Due, store.TimerRebalance, d.rebalanceWaits())
	switch {
	case d.rollout != nil && d.spec.Rollout.Strategy == store.StrategyProactive:
		d.block("REC-17", what, store.BlockedByRoll, store.BlockedFacts{})
	case !d.allWell() || !d.settledDown():
		d.block("REC-17", what, store.BlockedByUnsettled, store.BlockedFacts{})
	case d.spec.Budget.MaxExpansion == 0:
		d.block("REC-17", what, store.BlockedByNoExpansion, store.BlockedFacts{})
	case wait.After(d.now):
		d.wake(wait)
		r := d.g.Status.Record.Rebalance
		d.block("REC-17", what, store.BlockedByWithdrawal, store.BlockedFacts{Text: r.Why, For: r.Wait.For})
	case d.full(d.spec.Provider, to):
		d.wake(d.s.Full[d.spec.Provider][to])
		d.block("REC-17", what, store.BlockedByFullZone, store.BlockedFacts{})
	case d.mayCreate(what):
		d.rebalanceOne(from, to, what)
	}
}

func (d *draft) rebalanceWaits() *store.Timer {
	if r := d.g.Status.Record.Rebalance; r != nil {
		return r.Wait
	}
	return nil
}

// settledDown reports whether every slot has one member that works, that no member has to go, and
// that this plan changes none.
func (d *draft) settledDown() bool {
	for _, sl := range d.order {
		for _, m := range sl.members {
			if len(sl.members) > 1 || sl.touched || m.touched || m.unwanted() || m.judgment.Verdict != store.Live {
				return false
			}
		}
	}
	return true
}

// rebalanceOne replaces the oldest instance of a zone that may be replaced by one in another zone.
func (d *draft) rebalanceOne(from, to string, what task) {
	var m *member
	for _, sl := range d.order {
		for _, o := range sl.members {
			if o.Record.Zone == from && o.Record.Protected == "" && o.healthy() && !sl.retry.After(d.now) &&
				sl.Record.Errored == "" && (m == nil || older(o, m)) {
				m = o
			}
		}
	}
	if m == nil {
		d.block("REC-17", what, store.BlockedByProtectedZone, store.BlockedFacts{})
		return
	}
	why := fmt.Sprintf("zone %s has %d instances, and zone %s has %d", from, d.spread()[from], to, d.spread()[to])
	a := d.step(m, m.phase, "REC-17", replaced, because(why), m.evidence(), nil)
	a.Conditions = append(a.Conditions, d.common()...)
	d.addReplacement(a, m.slot, m, "REC-17", because(why))
	d.writeSlot(a, m.slot)
}

// rebalancedBy is the member that was made to take a member's place in another zone; nil if there
// is none.
func (m *member) rebalancedBy() *member {
	if m.slot == nil {
		return nil
	}
	for _, o := range m.slot.members {
		if o.Record.Rebalances && o.Record.Replaces == m.ID() && o.fills() {
			return o
		}
	}
	return nil
}

// rebalancing reports whether a rebalance is under way.
func (d *draft) rebalancing() bool {
	for _, sl := range d.order {
		for _, m := range sl.members {
			if m.rebalancedBy() != nil && m.fills() {
				return true
			}
		}
	}
	return false
}

// withdrawRebalance withdraws a replacement that was to even the zones and whose zone has no room:
// in another zone it would not help. It returns false if the replacement is needed because the
// instance that it replaces no longer works.
func (d *draft) withdrawRebalance(m *member) bool {
	if !m.Record.Rebalances || len(d.others(m, usable)) == 0 || !d.mayDelete(m.task(store.WorkWithdraw), m) {
		return false
	}
	d.retire(m, "REC-17", "withdrawn",
		because("zone "+m.zone()+" has no room, and it was made to even the zones"),
		[]string{m.Calls.Problem})
	return true
}

// followRebalance is what the status remembers of rebalances that were withdrawn, so that the next
// one waits.
func (d *draft) followRebalance() *store.Rebalance {
	old := d.g.Status.Record.Rebalance
	tries, last := 0, ""
	if old != nil {
		tries, last = old.Withdrawn, old.Last
	}
	for _, sl := range d.order {
		for _, m := range sl.members {
			if !m.Record.Rebalances {
				continue
			}
			replaced := sl.member(m.Record.Replaces)
			switch {
			case replaced == nil:
			case m.fills() && d.proven(m):
				return nil // it takes its place
			case m.ID() != last && !m.fills() && replaced.fills():
				t := d.timer(min(rebalanceWait<<min(tries, 10), rebalanceWaitMost))
				return &store.Rebalance{Withdrawn: tries + 1, Last: m.ID(), Why: d.lastWhy(m), Wait: &t}
			}
		}
	}
	if _, _, uneven := d.uneven(); old != nil && !uneven && !d.rebalancing() {
		return nil
	}
	return old
}

// member is the one with an ID; nil if it is not in the slot.
func (sl *slot) member(id string) *member {
	for _, m := range sl.members {
		if m.ID() == id {
			return m
		}
	}
	return nil
}

// lastWhy is why a member leaves: as this plan decides, else as its record says.
func (d *draft) lastWhy(m *member) string {
	for i := range d.actions {
		if a := &d.actions[i]; a.Instance == m.ID() && a.To != a.From {
			return a.Why
		}
	}
	return m.Record.Last.Why
}
