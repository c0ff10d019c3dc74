package plan

import "github.com/leasehold/leasehold/store"

// callProvider lists what is to be asked of the provider. It follows from the phases in the records, not from the actions of this plan: an
// action must have happened before its call.
func (d *draft) callProvider() {
	if d.s.Shard.Record.Hold != nil || d.s.Stale != "" {
		return // SAFE-12, SAFE-3: what was decided before waits too
	}
	for _, m := range d.members {
		if m.touched || m.Calls.Busy {
			continue
		}
		var kind CallKind
		switch {
		case m.phase == store.Pending || m.phase == store.Creating:
			if d.spec == nil || d.spec.Paused || d.g.Unreadable != "" {
				continue // REC-13
			}
			kind = CallCreate
		case m.mustRestart():
			if d.spec == nil || d.spec.Paused {
				continue
			}
			kind = CallRestart
		case m.phase == store.Deleting && m.Record.Called && d.mustRemove(m):
			kind = CallRemove
		default:
			continue
		}
		if d.now.Before(m.Calls.RetryAt) {
			d.wake(m.Calls.RetryAt)
			continue
		}
		conditions := []store.Condition{m.Unchanged(), d.s.Shard.Unchanged()}
		if kind != CallRemove {
			conditions = append(conditions, d.specUnchanged()...)
		}
		d.calls = append(d.calls, Call{
			Kind: kind, Instance: m.ID(), Group: d.g.Name, Rank: rank(kind, m), Record: m.Modified, Revision: d.s.Revision, Conditions: conditions,
		})
	}
}

// rank puts the healing of what has failed first, then other replacements, then growth, and all before removals (REC-9).
func rank(kind CallKind, m *member) int {
	switch {
	case kind == CallRemove:
		return 3
	case m.Record.Last.Rule == "ROLL-1" || m.Record.Last.Rule == "EXP-1":
		return 1
	case kind == CallRestart || m.Record.Replaces != "":
		return 0
	default:
		return 2
	}
}

// mustRemove says whether the machine has not been removed yet, or was seen again after it was.
func (d *draft) mustRemove(m *member) bool {
	if m.Calls.Deleted.IsZero() {
		return true
	}
	return m.Sighting.Listed && m.Sighting.Begun.After(m.Calls.Deleted) && !m.Sighting.Begun.Before(m.Calls.AbsentFrom)
}
