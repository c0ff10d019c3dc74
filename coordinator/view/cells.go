package view

// Cell is a slot with its instances: a replacement shares the cell of the instance that it
// replaces.
type Cell struct {
	Slot  int // -1: on demand
	Units []Unit
}

// CellsOf groups instances, which are ordered by slot, into the cells of their slots.
func CellsOf(units []Unit, size int) []Cell {
	var cells, onDemand []Cell
	next := 0
	vacant := func(until int) {
		for ; next < until; next++ {
			cells = append(cells, Cell{Slot: next})
		}
	}
	for _, u := range units {
		switch {
		case u.Slot < 0:
			onDemand = append(onDemand, Cell{Slot: -1, Units: []Unit{u}})
		case len(cells) > 0 && cells[len(cells)-1].Slot == u.Slot:
			last := &cells[len(cells)-1]
			last.Units = append(last.Units, u)
		default:
			vacant(min(u.Slot, size))
			cells = append(cells, Cell{Slot: u.Slot, Units: []Unit{u}})
			next = u.Slot + 1
		}
	}
	vacant(size)
	return append(cells, onDemand...)
}

// Counts counts the instances of each kind, and the vacant slots.
func Counts(cells []Cell) map[string]int {
	counts := map[string]int{}
	for _, c := range cells {
		for _, u := range c.Units {
			counts[u.Kind]++
		}
		if len(c.Units) == 0 {
			counts["vacant"]++
		}
	}
	return counts
}
