package view

import (
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// Roll is what the page shows of a roll: its stages, and its progress in each zone.
type Roll struct {
	Template string     `json:"template"`
	Halted   bool       `json:"halted"`          // it does not continue by itself
	Canary   *Canary    `json:"canary,omitzero"` // nil: it began with all slots
	Rests    time.Time  `json:"rests,omitzero"`  // it continues then, if the updated instances stay healthy
	Stalls   time.Time  `json:"stalls,omitzero"` // without progress it counts as stalled then
	Zones    []RollZone `json:"zones"`
}

// Canary is the progress of the first instances of a roll (ROLL-5).
type Canary struct {
	Of       int    `json:"of"`
	Slots    []int  `json:"slots"` // those that have the template
	Promoted string `json:"promoted,omitempty"`
}

// RollZone is a roll's progress in a zone, in slots.
type RollZone struct {
	Name    string `json:"name"`
	Done    int    `json:"done"`
	Failing int    `json:"failing"` // have the template and do not work
	Busy    int    `json:"under_way"`
	Waits   int    `json:"waiting"`
	Now     bool   `json:"now"` // the roll goes zone by zone, and is in this one now (ROLL-8)
}

// All returns how many slots the zone has.
func (z RollZone) All() int { return z.Done + z.Failing + z.Busy + z.Waits }

// rollOf returns the Roll of a group; nil if it has none.
func rollOf(on story.Group, cells []Cell) *Roll {
	if on.Roll == nil {
		return nil
	}
	of := on.Roll
	r := &Roll{Template: of.Template, Halted: of.Halted(), Rests: of.RestsTo(), Stalls: endOf(of.Stalls)}
	if of.Canary > 0 {
		r.Canary = &Canary{Of: of.Canary, Slots: append([]int{}, of.Canaries...), Promoted: of.Promoted}
	}
	zones := map[string]*RollZone{}
	for _, c := range cells {
		if c.Slot < 0 || len(c.Units) == 0 {
			continue
		}
		name := c.Units[0].Zone
		z := zones[name]
		if z == nil {
			z = &RollZone{Name: name, Now: of.Zone != "" && of.Zone == name}
			zones[name] = z
		}
		*z.at(c, of.Rollout)++
	}
	for _, name := range slices.Sorted(maps.Keys(zones)) {
		r.Zones = append(r.Zones, *zones[name])
	}
	return r
}

// at returns the count that a slot belongs to.
func (z *RollZone) at(c Cell, of store.Rollout) *int {
	isNew := func(u Unit) bool { return u.Template == of.Template && u.Relaunch >= of.Relaunch }
	switch {
	case slices.ContainsFunc(c.Units, func(u Unit) bool { return isNew(u) && Sick(u.Kind) }):
		return &z.Failing
	case len(c.Units) == 1 && isNew(c.Units[0]) && c.Units[0].Kind == "live":
		return &z.Done
	case len(c.Units) == 1 && !isNew(c.Units[0]) && c.Units[0].Kind != "leaving" && c.Units[0].Kind != "starting":
		return &z.Waits
	default:
		return &z.Busy
	}
}

func endOf(t *store.Timer) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.End()
}
