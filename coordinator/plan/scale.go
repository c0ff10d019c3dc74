package plan

import (
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/store"
)

// mostCreations and mostRemovals bound what one plan requests; the rest follows on the next picture.
const (
	mostCreations = 200
	mostRemovals  = 200
)

// scaleUp fills the slots that are missing: first those that have a record, then new ones with the lowest
// free numbers (REC-3, HEAL-10). It never makes more than size and max_expansion allow together: what drains still counts.
func (d *draft) scaleUp() {
	missing := d.spec.Size - d.inUse()
	if missing <= 0 {
		return
	}
	idle := d.idle(missing)
	have, full := d.spec.Size-missing, false
	for i, sl := range idle {
		switch {
		case i == mostCreations:
			return
		case sl.touched:
			continue
		case d.waits(sl, fmt.Sprintf("filling slot %d", sl.number), ""):
			continue
		case d.atCapacity() && !sl.diedLast():
			full = true // but not for the dead: they wait for no budget (HEAL-3)
			continue
		case !d.mayCreate("creation of the other missing instances", ""):
			return
		}
		why := fmt.Sprintf("%d of %d slots are filled", have, d.spec.Size)
		m, write := d.newMember(sl, sl.leaver(), "REC-3", why)
		a := Action{
			Group: d.g.Name, Instance: m.ID(), Slot: m.Record.Place(), Rule: "REC-3", What: "requested", Why: why, To: store.Pending, Otherwise: otherwise("REC-3", ""),
			Conditions: append(d.common(), store.Absent(m.Key)), Writes: []store.Write{write},
		}
		d.writeSlot(&a, sl)
		d.actions = append(d.actions, a)
		have++
	}
	if full {
		d.block("REC-18", "creation of the missing instances", fmt.Sprintf("%d machines are there, size and max_expansion allow %d",
			d.counts.standing, d.spec.Size+d.spec.Budget.MaxExpansion), "one of those that leave is gone", "")
	}
}

// leaver names the instance whose place the next one in the slot takes; "" if there is none.
func (sl *slot) leaver() string {
	if id := draining(sl); id != "" || sl.Record.Vacated == nil {
		return id
	}
	return sl.Record.Vacated.Instance
}

// diedLast says that the slot is empty since its instance died.
func (sl *slot) diedLast() bool { return sl.Record.Vacated != nil && sl.Record.Vacated.Dead }

// idle lists slots that may be filled: those that have a record first, each kind in order of number.
func (d *draft) idle(missing int) []*slot {
	var idle []*slot
	for _, sl := range d.order {
		if !sl.occupied() {
			idle = append(idle, sl)
		}
	}
	slices.SortFunc(idle, byNumber)
	for n := 0; len(idle) < missing; n++ {
		if d.slots[n] == nil {
			idle = append(idle, d.slot(n))
		}
	}
	return idle[:missing]
}

// cleanSlots forgets slots that nobody is in and that are not wanted any more.
func (d *draft) cleanSlots() {
	if len(d.order) <= d.spec.Size {
		return
	}
	used := 0
	var idle []*slot
	for _, sl := range d.order {
		switch {
		case slices.ContainsFunc(sl.members, func(m *member) bool { return !m.gone() }):
			used++
		case sl.Present() && !sl.touched:
			idle = append(idle, sl)
		}
	}
	slices.SortFunc(idle, func(a, b *slot) int { return byNumber(b, a) })
	for _, sl := range idle[:max(0, min(len(idle), used+len(idle)-d.spec.Size))] {
		sl.touched = true
		delete(d.slots, sl.number)
		d.order = slices.DeleteFunc(d.order, func(o *slot) bool { return o == sl })
		d.actions = append(d.actions, Action{
			Group: d.g.Name, Slot: &sl.number, Rule: "REC-4", What: "slot removed", Why: "nobody is in it and it is not wanted", Silent: true,
			Conditions: append(d.common(), sl.Unchanged()), Writes: []store.Write{store.Delete(sl.Key)},
		})
	}
}

// The order in which slots go when there are too many: HEAL-9.
const (
	slotFailed  = iota // somebody in it failed or is condemned, and nobody else works yet
	slotInWork         // somebody is coming up in it, nobody works yet
	slotWorking        // somebody in it works
)

// scaleDown removes whole slots while there are too many: REC-4, HEAL-9.
func (d *draft) scaleDown() {
	surplus := d.counts.filled - d.spec.Size
	if surplus <= 0 {
		return
	}
	healing := d.healingInProgress()
	list := d.candidates()
	for range min(surplus, mostRemovals) {
		c := list.take()
		if c == nil {
			d.block("REC-13", "scale-down", "the instances that are left are protected", "leasehold instance protect --off", "")
			return
		}
		if c.kind == slotWorking && healing != "" {
			d.block("REC-4", "scale-down by a healthy instance", "the replacement "+healing+" is in progress", healing+" is healthy or withdrawn", "")
			return
		}
		for _, m := range c.members {
			if m.touched {
				return // the rest on the next picture
			}
			if !d.mayDelete("scale-down", m) {
				return
			}
			what := map[int]string{slotFailed: "nobody wanted works in its slot", slotInWork: "it is not working yet", slotWorking: "it is the oldest of its zone"}[c.kind]
			d.retire(m, "HEAL-9", "deleting", fmt.Sprintf("%s above size %d, and %s", number(surplus, "slot"), d.spec.Size, what), m.evidence(), m.proof(d.s.Keys)...)
		}
	}
}

// healingInProgress names a replacement that is coming up for a failed one, if there is one.
func (d *draft) healingInProgress() string {
	for _, m := range d.members {
		if m.fills() && m.phase != store.Running && m.Record.Replaces != "" && len(d.others(m, func(o *member) bool { return o.failing() })) > 0 {
			return m.ID()
		}
	}
	return ""
}

// candidate is a slot that may go.
type candidate struct {
	kind    int
	members []*member // oldest first
}

// candidates are the slots that may go, and how many instances each zone has.
type candidates struct {
	list  []candidate
	crowd map[string]int
}

func (d *draft) candidates() candidates {
	all := candidates{crowd: map[string]int{}}
	for _, m := range d.members {
		if m.fills() {
			all.crowd[m.Record.Zone]++
		}
	}
	for _, sl := range d.order {
		if sl.filled == 0 {
			continue
		}
		c := candidate{kind: slotInWork, members: sl.staying()}
		protected := false
		for _, m := range c.members {
			switch {
			case m.unwanted() && c.kind != slotWorking:
				c.kind = slotFailed
			case m.phase == store.Running && !m.unwanted():
				c.kind = slotWorking
			}
			protected = protected || m.Record.Protected != ""
		}
		if !protected {
			all.list = append(all.list, c)
		}
	}
	return all
}

// staying lists who is in a slot and not on the way out.
func (sl *slot) staying() []*member {
	leaves := func(m *member) bool { return m.gone() || m.phase == store.Draining }
	if !slices.ContainsFunc(sl.members, leaves) {
		return sl.members
	}
	return slices.DeleteFunc(slices.Clone(sl.members), leaves)
}

// take takes out the slot that goes first: failed ones, then those that do not work yet, then the oldest in the
// fullest zone. It returns nil if none is left.
func (all *candidates) take() *candidate {
	if len(all.list) == 0 {
		return nil
	}
	first := 0
	for i := range all.list {
		if all.before(&all.list[i], &all.list[first]) {
			first = i
		}
	}
	c, last := all.list[first], len(all.list)-1
	all.list[first] = all.list[last]
	all.list = all.list[:last]
	for _, m := range c.members {
		if m.fills() {
			all.crowd[m.Record.Zone]--
		}
	}
	return &c
}

func (all *candidates) before(a, b *candidate) bool {
	if a.kind != b.kind {
		return a.kind < b.kind
	}
	if x, y := all.crowded(a), all.crowded(b); x != y {
		return x > y
	}
	return older(a.members[0], b.members[0])
}

// crowded is how many instances the fullest zone of a slot's members has.
func (all *candidates) crowded(c *candidate) int {
	most := 0
	for _, m := range c.members {
		most = max(most, all.crowd[m.Record.Zone])
	}
	return most
}
