package plan

// slotIndex finds slots by number. Nearly all numbers are below the number of slots, and looking
// those up in a map would take a large part of the time that a plan of a large group takes.
type slotIndex struct {
	near []*slot       // by number
	far  map[int]*slot // numbers beyond near
}

func newSlotIndex(size int) slotIndex { return slotIndex{near: make([]*slot, size)} }

// get returns nil if there is no slot with this number.
func (x *slotIndex) get(n int) *slot {
	if n >= 0 && n < len(x.near) {
		return x.near[n]
	}
	return x.far[n]
}

// set puts a slot at a number; nil removes what is there.
func (x *slotIndex) set(n int, sl *slot) {
	switch {
	case n >= 0 && n < len(x.near):
		x.near[n] = sl
	case sl == nil:
		delete(x.far, n)
	default:
		if x.far == nil {
			x.far = map[int]*slot{}
		}
		x.far[n] = sl
	}
}
