package plan

import "github.com/leasehold/leasehold/store"

// restFinished lets everybody else in the slot of a finished task go: what a roll or a failure had
// made in its place has nothing left to do (REC-12).
func (d *draft) restFinished() {
	for _, sl := range d.order {
		done := sl.finished()
		if done == nil || len(sl.members) == 1 {
			continue
		}
		for _, m := range sl.members {
			if m != done && !m.gone() && m.phase != store.Draining && !m.dead() {
				d.release(m, done, "REC-12", "withdrawn", because(done.ID()+" has finished the task of its slot"))
			}
		}
	}
}

// removeFinished lets a finished task go that was ordered to. Its slot is filled again, so that the
// task is done once more (REC-16).
func (d *draft) removeFinished() {
	for _, m := range d.members {
		c := m.Record.Condemned
		if m.phase != store.Finished || c == nil || m.touched || !m.Record.Managed || m.slot.touched {
			continue
		}
		if d.mayDelete(m.task(store.WorkRemove), m) {
			a := d.retire(m, "REC-16", "deleting", orderedBy(c.By), nil)
			d.writeSlot(a, m.slot)
		}
	}
}

// finished is the oldest member of the slot whose task is done; nil if there is none.
func (sl *slot) finished() *member {
	for _, m := range sl.members {
		if m.phase == store.Finished && m.Record.Condemned == nil {
			return m
		}
	}
	return nil
}
