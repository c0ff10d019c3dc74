package view

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/story"
)

// groupLook returns when something is decided next in a group, as far as its records say; nil if
// nothing is due, or nothing is decided at present.
func groupLook(c *cache.Content, group string, now time.Time) *story.Look {
	st := c.Status[group].Record
	if stands(c, group) {
		return nil
	}
	all := story.StatusLooks(st)
	for _, v := range c.Slots[group] {
		all = append(all, story.SlotLooks(v.Record)...)
	}
	for _, id := range c.ByGroup[group] {
		all = append(all, looksOf(c, id)...)
	}
	return story.FirstLook(all, now)
}

// instanceLook is groupLook for an instance and its slot.
func instanceLook(c *cache.Content, id string, now time.Time) *story.Look {
	i := c.Instances[id].Record
	if stands(c, i.Group) {
		return nil
	}
	return story.FirstLook(append(looksOf(c, id), story.SlotLooks(c.Slots[i.Group][i.Slot].Record)...), now)
}

// stands reports whether nothing is decided in a group: no replica leads, or the shard or the
// group is on hold.
func stands(c *cache.Content, group string) bool {
	g := c.Status[group].Record.Accepted
	return len(c.Leaders) == 0 || c.Shard.Record.Hold != nil || g != nil && g.Paused
}

func looksOf(c *cache.Content, id string) []story.Look {
	i := c.Instances[id].Record
	all := story.InstanceLooks(i)
	if v := c.Alive[id]; v.Present() {
		all = append(all, story.SilentLooks(i, v.Record)...)
	}
	return all
}
