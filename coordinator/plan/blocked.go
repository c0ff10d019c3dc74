package plan

import (
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// task is work that may be blocked.
type task struct {
	work     store.Work
	instance string
	slot     int
	zone, to string
}

// task is work on the member.
func (m *member) task(work store.Work) task { return task{work: work, instance: m.ID()} }

// block records that a task is due and cannot be done yet.
func (d *draft) block(rule string, what task, why store.BlockedKind, of store.BlockedFacts) {
	of.Group = d.g.Name
	if what.work == store.WorkFill || what.work == store.WorkSlot {
		of.Slot = what.slot
	}
	if what.work == store.WorkRebalance {
		of.Zone, of.To = what.zone, what.to
	}
	b := store.Blocked{Rule: rule, Instance: what.instance, Kind: why, Work: what.work, Of: of}
	reason.Classify(&b)
	reason.Fill(&b)
	d.blocked = append(d.blocked, b)
}
