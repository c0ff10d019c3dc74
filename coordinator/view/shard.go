package view

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// Shard is a shard with its groups.
type Shard struct {
	Truth    Truth
	State    *story.Shard
	Problems []story.Problem
	Rows     []GroupRow
	Hold     *store.Hold
}

// GroupRow is a group in the table of a shard.
type GroupRow struct {
	story.Row
	Name   string
	Health int // percent; -1: unknown
}

// Shard returns the present state of the shard; false: nothing was read yet.
func (s *Source) Shard(now time.Time) (v Shard, read bool) {
	if !s.cache.View(func(c *cache.Content) { v.State = s.shardOf(c) }) {
		return v, false
	}
	v.Truth = s.Truth(now)
	v.Problems, v.Hold = story.Problems(v.State, now), v.State.Shard.Record.Hold
	for _, g := range v.State.Groups {
		v.Rows = append(v.Rows, rowOf(g))
	}
	return v, true
}

func rowOf(g story.Known) GroupRow {
	row := GroupRow{Row: story.RowOf(g), Name: g.Name, Health: -1}
	if g.Status.Present() && row.Row.Health != "-" {
		row.Health = g.Status.Record.Health
	}
	return row
}
