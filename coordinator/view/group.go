package view

import (
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// Group is a group with its instances.
type Group struct {
	Truth    Truth
	Revision store.Revision
	Name     string
	Found    bool
	Known    story.Known
	Row      GroupRow
	On       story.Group
	Problems []story.Problem
	Lines    []string // what is in progress
	Blocked  []story.Blockage
	Upcoming *story.Upcoming  // what is decided next; nil: nothing is due
	Turns    []story.Blockage // planned work that waits as intended
	Planned  []Planned        // nil: it may begin at any time
	Roll     *Roll
	Scale    *Scale
	Trend    []Moment
	Protects []Protected
	Busy     []Busy
	Units    []Unit // in order of slot
	Cells    []Cell
}

// Group returns the present state of a group; false: nothing was read yet.
func (s *Source) Group(name string, now time.Time) (v Group, read bool) {
	v.Name = name
	var st *story.Shard
	var slots []store.Versioned[store.Slot]
	if !s.cache.View(func(c *cache.Content) {
		st = s.shardOf(c)
		at := slices.IndexFunc(st.Groups, func(g story.Known) bool { return g.Name == name })
		if v.Found = at >= 0; !v.Found {
			return
		}
		v.Known = st.Groups[at]
		v.Units = s.unitsOf(c, name, now)
		v.Protects, v.Busy = held(c, name)
		v.Upcoming = groupUpcoming(c, name, now)
		for _, n := range slices.Sorted(maps.Keys(c.Slots[name])) {
			slots = append(slots, c.Slots[name][n])
		}
	}) {
		return v, false
	}
	v.Truth, v.Revision = s.Truth(now), st.Revision
	if !v.Found {
		return v, true
	}
	status := v.Known.Status.Record
	v.Row, v.On = rowOf(v.Known), story.Of(status)
	for _, found := range story.Problems(st, now) {
		if found.About == name || slices.Contains(found.Groups, name) {
			v.Problems = append(v.Problems, found)
		}
	}
	inProgress := status
	if v.On.Storm != nil {
		inProgress.Storm = nil // shown as a problem instead
	}
	inProgress.Blocked, inProgress.Scale = nil, nil // shown as Turns and Scale
	v.Lines = story.NowLines(inProgress, slots, now)
	v.Blocked, v.Turns = story.Merge(v.On.Blocked), story.Merge(v.On.Turns)
	v.Planned = plannedOf(status.Accepted, st.Shard.Record.Freeze, now)
	v.Scale, v.Trend = s.scaleOf(&status, now), s.Trend(name)
	size := 0
	if status.Accepted != nil {
		size = status.Accepted.Size
	}
	v.Cells = CellsOf(v.Units, size)
	v.Roll = rollOf(v.On, v.Cells)
	return v, true
}
