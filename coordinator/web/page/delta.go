package page

import (
	"html/template"
	"slices"
	"sort"
)

// Change is an element that is different now. Changes are made in their order.
type Change struct {
	ID   string        `json:"id"` // "main": all fragments
	HTML template.HTML `json:"html,omitempty"`
	// In is the element in which it is placed, behind After or, if that is empty, first; without HTML
	// it is moved there. "": it takes the place of the element of its ID.
	In    string `json:"in,omitempty"`
	After string `json:"after,omitempty"`
	Gone  bool   `json:"gone,omitempty"` // it is removed
}

// Changes are what a reader of a page needs for the next state of the same page.
func Changes(old, next []Fragment) []Change {
	changes := Fragment{ID: "main", Parts: next, List: true}.changes(Fragment{ID: "main", Parts: old, List: true})
	// What moves from one list to another is removed before it is placed: its ID is there once.
	slices.SortStableFunc(changes, func(a, b Change) int {
		switch {
		case a.Gone == b.Gone:
			return 0
		case a.Gone:
			return -1
		default:
			return 1
		}
	})
	return changes
}

func whole(all []Fragment) Change {
	return Change{ID: "main", HTML: Fragment{Parts: all}.HTML()}
}

// changes are the parts that differ, or the whole fragment where that is not enough.
func (f Fragment) changes(old Fragment) []Change {
	switch {
	case f.Head != old.Head || f.Tail != old.Tail || f.List != old.List:
		return []Change{{ID: f.ID, HTML: f.HTML()}}
	case f.List:
		return f.moves(old)
	case !slices.EqualFunc(f.Parts, old.Parts, alike):
		return []Change{{ID: f.ID, HTML: f.HTML()}}
	}
	var changes []Change
	for i := range f.Parts {
		changes = append(changes, f.Parts[i].changes(old.Parts[i])...)
	}
	return changes
}

// alike reports whether one part can become the other by changes of its own.
func alike(a, b Fragment) bool {
	return a.ID == b.ID && (a.ID != "" || a.HTML() == b.HTML())
}

// moves are what makes one list of the other: the fewest parts are placed again.
func (f Fragment) moves(old Fragment) []Change {
	was := make(map[string]int, len(old.Parts))
	for i := range old.Parts {
		was[old.Parts[i].ID] = i
	}
	var changes []Change
	var places, known []int // where the known parts were, and where they are
	there := make(map[string]bool, len(f.Parts))
	for i := range f.Parts {
		there[f.Parts[i].ID] = true
		if place, is := was[f.Parts[i].ID]; is {
			places, known = append(places, place), append(known, i)
		}
	}
	for i := range old.Parts {
		if id := old.Parts[i].ID; !there[id] {
			changes = append(changes, Change{ID: id, Gone: true})
		}
	}
	stays := make(map[int]bool, len(known))
	for _, n := range rising(places) {
		stays[known[n]] = true
	}
	after := ""
	for i := range f.Parts {
		p := f.Parts[i]
		place, is := was[p.ID]
		switch {
		case stays[i]:
			changes = append(changes, p.changes(old.Parts[place])...)
		case is && p.HTML() == old.Parts[place].HTML():
			changes = append(changes, Change{ID: p.ID, In: f.ID, After: after})
		default:
			changes = append(changes, Change{ID: p.ID, In: f.ID, After: after, HTML: p.HTML()})
		}
		after = p.ID
	}
	return changes
}

// rising are the indexes of a longest rising sequence of numbers.
func rising(numbers []int) []int {
	var ends []int // the index at which the best sequence of each length ends
	before := make([]int, len(numbers))
	for i, n := range numbers {
		length := sort.Search(len(ends), func(k int) bool { return numbers[ends[k]] >= n })
		before[i] = -1
		if length > 0 {
			before[i] = ends[length-1]
		}
		if length == len(ends) {
			ends = append(ends, i)
		} else {
			ends[length] = i
		}
	}
	if len(ends) == 0 {
		return nil
	}
	out := make([]int, len(ends))
	for k, i := len(ends)-1, ends[len(ends)-1]; k >= 0; k, i = k-1, before[i] {
		out[k] = i
	}
	return out
}
