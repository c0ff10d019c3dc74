package plan

import (
	"slices"
	"sort"
	"time"

	"github.com/leasehold/leasehold/store"
)

// fleet is the group's members in their slots, as they will be after the actions decided so far,
// and the counts that budgets are based on. Its methods read members and decide nothing.
type fleet struct {
	view

	members []*member // ordered by ID; new ones at the end
	slots   slotIndex
	order   []*slot // ordered by number; new ones at the end
	spare   []slot  // preallocated slots without a record; most groups need as many as they have instances

	counts  counts
	crowd   map[string]int // members that will stay, by zone: see spread; nil until needed
	counted int            // number of members in crowd
	spots   int            // number of spot machines among them

	next time.Time // when the group has to be planned again: see wake
}

func (f *fleet) find(id string) *member {
	for _, m := range f.members {
		if m.ID() == id {
			return m
		}
	}
	return nil
}

// place puts a member into its slot.
func (f *fleet) place(m *member) {
	sl := f.slot(m.Record.Slot)
	m.slot = sl
	if len(sl.members) == 0 {
		sl.only[0] = m
		sl.members = sl.only[:]
		return
	}
	sl.members = append(slices.Clone(sl.members), m)
	sort.SliceStable(sl.members, func(i, j int) bool { return older(sl.members[i], sl.members[j]) })
}

// slot returns the slot with this number, drafting one if there is none.
func (f *fleet) slot(n int) *slot {
	if sl := f.slots.get(n); sl != nil {
		return sl
	}
	if len(f.spare) == 0 {
		f.spare = make([]slot, max(1, len(f.g.Instances)-len(f.order)))
	}
	sl := &f.spare[0]
	f.spare, sl.number = f.spare[1:], n
	sl.Key = f.s.Keys.Slot(f.g.Name, n)
	sl.Record = store.Slot{Schema: store.Schema, Group: f.g.Name, Number: n}
	f.slots.set(n, sl)
	f.order = append(f.order, sl)
	return sl
}

func (f *fleet) wake(at time.Time) {
	if !at.IsZero() && at.After(f.now) {
		f.next = Sooner(f.next, at)
	}
}

// others lists the other members of the slot that have a property.
func (f *fleet) others(m *member, property func(*member) bool) []*member {
	if m.slot == nil {
		return nil
	}
	var out []*member
	for _, o := range m.slot.members {
		if o != m && !o.gone() && property(o) {
			out = append(out, o)
		}
	}
	return out
}

// surplus reports whether, once this plan is carried out, more slots have members, dead or not,
// than are wanted.
func (f *fleet) surplus() bool {
	if len(f.order) <= f.spec.Size {
		return false
	}
	n := 0
	for _, sl := range f.order {
		if sl.damaged != nil || slices.ContainsFunc(sl.members,
			func(m *member) bool { return m.phase.Fills() || m.phase == store.Finished }) {
			n++
		}
	}
	return n > f.spec.Size
}

// inUse returns how many slots have members that are not leaving.
func (f *fleet) inUse() int {
	n := 0
	for _, sl := range f.order {
		if sl.occupied() {
			n++
		}
	}
	return n
}

// idle lists slots that may be filled: slots with a record first, then new ones, each ordered by
// number.
func (f *fleet) idle(missing int) []*slot {
	var idle []*slot
	for _, sl := range f.order {
		if !sl.occupied() {
			idle = append(idle, sl)
		}
	}
	slices.SortFunc(idle, byNumber)
	for n := 0; len(idle) < missing; n++ {
		if f.slots.get(n) == nil {
			idle = append(idle, f.slot(n))
		}
	}
	return idle[:missing]
}
