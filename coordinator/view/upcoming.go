package view

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/story"
)

// groupUpcoming returns when something is decided next in a group, as far as its records say; nil
// if nothing is due, or nothing is decided at present.
func groupUpcoming(c *cache.Content, group string, now time.Time) *story.Upcoming {
	st := c.Status[group].Record
	if stands(c, group) {
		return nil
	}
	all := story.StatusUpcoming(st)
	for _, v := range c.Slots[group] {
		all = append(all, story.SlotUpcoming(v.Record)...)
	}
	for _, id := range c.ByGroup[group] {
		all = append(all, upcomingOf(c, id)...)
	}
	return story.FirstUpcoming(all, now)
}

// instanceUpcoming is groupUpcoming for an instance and its slot.
func instanceUpcoming(c *cache.Content, id string, now time.Time) *story.Upcoming {
	i := c.Instances[id].Record
	if stands(c, i.Group) {
		return nil
	}
	return story.FirstUpcoming(append(upcomingOf(c, id), story.SlotUpcoming(c.Slots[i.Group][i.Slot].Record)...), now)
}

// stands reports whether nothing is decided in a group: no replica leads, or the shard or the
// group is on hold.
func stands(c *cache.Content, group string) bool {
	g := c.Status[group].Record.Accepted
	return len(c.Leaders) == 0 || c.Shard.Record.Hold != nil || g != nil && g.Paused
}

func upcomingOf(c *cache.Content, id string) []story.Upcoming {
	i := c.Instances[id].Record
	all := story.InstanceUpcoming(i)
	if v := c.Alive[id]; v.Present() {
		all = append(all, story.LeaseUpcoming(i, v.Record)...)
	}
	return all
}
