package plan

import (
	"slices"
	"sort"
	"time"

	"github.com/leasehold/leasehold/store"
)

// fleet is the group's members in their slots, as they will be after the actions decided so far,
// and the counts that budgets rest on. Its methods look at members; none decides anything.
type fleet struct {
	view

	members []*member // in order of ID; new ones at the end
	slots   slotIndex
	order   []*slot // in order of number; new ones at the end
	spare   []slot  // places for slots without a record, of which most groups have as many as instances

	counts  counts
	crowd   map[string]int // those that will stay, by zone: see spread; nil until it is needed
	counted int            // how many these are
	spots   int            // of them, spot machines

	next time.Time // when something of the group has to be looked at again: see wake
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

// others lists the members in the same slot for which a property holds.
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

// surplus reports whether more slots have members, dead or not, than are wanted once this plan is
// carried out.
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

// inUse is how many slots have members that are not on their way out.
func (f *fleet) inUse() int {
	n := 0
	for _, sl := range f.order {
		if sl.occupied() {
			n++
		}
	}
	return n
}

// idle lists slots that may be filled: those that have a record first, each kind in order of
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
