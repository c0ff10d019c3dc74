package plan

import (
	"slices"

	"github.com/leasehold/leasehold/store"
)

// providerCalls lists the calls of providers that are due.
type providerCalls struct {
	*draft
	calls []Call
}

// follow lists the calls that are due. They follow from the phases in the records, not from the
// actions of this plan: an action must have happened before its call.
func (d *providerCalls) follow() {
	if d.s.Shard.Record.Hold != nil || d.s.stale() || d.paused() {
		return // SAFE-12, SAFE-3, REC-13: earlier decisions wait as well
	}
	tried := d.triedRefusals()
	for _, m := range d.members {
		if m.touched || m.Calls.Busy || m.byHand() || d.damage.untouchable(m) {
			continue
		}
		var kind CallKind
		spare, several := m.spareCopy()
		switch {
		case m.phase == store.Pending || m.phase == store.Creating:
			if d.spec == nil || d.g.Unreadable != "" {
				continue
			}
			of, r, refused := d.refusal(m)
			if refused && tried[of] {
				continue // one creation at a time retries: its result triggers a new plan for the others (PROV-5)
			}
			if refused && d.now.Before(r.Until) {
				d.wake(r.Until)
				continue
			}
			if refused {
				tried[of] = true
			}
			kind = CallCreate
		case m.mustRestart():
			if d.spec == nil {
				continue
			}
			kind = CallRestart
		case m.phase == store.Deleting && m.Record.Called && d.mustRemove(m) && d.traffic.removedFromTraffic(m):
			kind = CallRemove
		case several && m.phase != store.Deleting:
			kind = CallRemoveCopy
		case d.drills.mustHalt(m):
			kind = CallHalt
		default:
			continue
		}
		if d.now.Before(m.Calls.RetryAt) {
			d.wake(m.Calls.RetryAt)
			continue
		}
		d.calls = append(d.calls, Call{
			Kind: kind, Instance: m.ID(), Group: d.g.Name, Provider: m.Record.Spec.Provider, Rank: rank(kind, m),
			Record: m.Modified, Revision: d.s.Revision, Copy: spare,
			Conditions: append(d.common(), m.Unchanged()),
		})
	}
}

// spareCopy returns a second machine that one of our own calls created for the instance.
func (m *member) spareCopy() (c Copy, there bool) {
	i := slices.IndexFunc(m.Sighting.Copies, func(c Copy) bool { return c.Spare })
	if i < 0 {
		return Copy{}, false
	}
	return m.Sighting.Copies[i], true
}

// triedRefusals returns the refusals that a creation under way retries.
func (d *providerCalls) triedRefusals() map[Refused]bool {
	if len(d.s.Refusals) == 0 {
		return nil
	}
	tried := map[Refused]bool{}
	for _, m := range d.members {
		if of, _, refused := d.refusal(m); refused && m.Calls.Busy {
			tried[of] = true
		}
	}
	return tried
}

// halted returns the provider calls that were decided before the group was paused.
func (f *fleet) halted() (of store.BlockedFacts) {
	for _, m := range f.members {
		switch {
		case m.Calls.Busy || m.byHand():
		case m.phase == store.Pending || m.phase == store.Creating:
			of.Creations++
		case m.phase == store.Deleting && m.Record.Called && f.mustRemove(m):
			of.Removals++
		case m.mustRestart():
			of.Restarts++
		}
	}
	return of
}

// rank orders calls: healing of failed instances and of those about to end by a notice first, then
// other replacements, then growth, and removals last (REC-9).
func rank(kind CallKind, m *member) int {
	const healing, replacing, growing, removing = 0, 1, 2, 3
	made := m.Record.MadeFor()
	switch {
	case kind == CallRemove || kind == CallRemoveCopy:
		return removing
	case kind == CallHalt:
		return growing
	case kind == CallRestart && m.restartedToHeal(),
		kind == CallCreate && (made == store.PurposeHeal || made == store.PurposeNotice):
		return healing
	case kind == CallCreate && (made == store.PurposeSize || m.Record.Replaces == ""):
		return growing
	default:
		return replacing
	}
}

// mustRemove reports whether the machine has not been removed yet, or was listed again after its
// removal.
func (v *view) mustRemove(m *member) bool {
	if m.Calls.Deleted.IsZero() {
		return true
	}
	return m.Sighting.Listed && m.Sighting.Begun.After(m.Calls.Deleted) &&
		!m.Sighting.Begun.Before(m.Calls.ListedUntil) && !m.Sighting.Begun.Before(m.Calls.AbsentFrom)
}
