package page

import (
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// groupRow is a group in the table of a shard.
type groupRow struct {
	story.Row
	Name   string
	Health int // percent; -1: unknown
}

// shardPage is what the templates of the page of a shard show.
type shardPage struct {
	Now      time.Time
	Shard    *story.Shard
	Problems []story.Problem
	Rows     []groupRow
	Events   []journal.Entry
	Hold     *store.Hold
}

const recentEvents = 12

func (p *Pages) shard(b *builder) Page {
	v := shardPage{Now: b.now}
	if !b.view(func(c *cache.Content) { v.Shard = p.shardOf(c) }) {
		return b.unread()
	}
	v.Problems, v.Hold = story.Problems(v.Shard, b.now), v.Shard.Shard.Record.Hold
	for _, g := range v.Shard.Groups {
		row := groupRow{Row: story.RowOf(g), Name: g.Name, Health: -1}
		if n, err := strconv.Atoi(strings.TrimSuffix(row.Row.Health, "%")); err == nil {
			row.Health = n
		}
		v.Rows = append(v.Rows, row)
	}
	v.Events = b.newest(recentEvents, func(*journal.Entry) bool { return true })
	page := b.page(p.truth(v.Shard, b.now), v.Shard.Revision)
	page.Title, page.Here, page.Command = p.cfg.Shard, "shard", "leasehold status"
	page.Said = reason.Counted(len(v.Problems), "problem", "problems")
	page.Main = []Fragment{
		b.fragment("problems", "problems", v), b.fragment("groups", "groups", v),
		b.fragment("recent", "recent", v), b.fragment("replicas", "replicas", v),
	}
	return page
}
