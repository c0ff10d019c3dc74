package discovery

import (
	"strings"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// Incomplete reports whether records of a group are lost or unreadable that this replica has never
// read: their instances may be in service, and Endpoints leaves them out. A replica that started
// after the loss learns of it only from others (SAFE-18).
func Incomplete(c *cache.Content, group string) bool {
	if len(c.Unreadable) > 0 && unreadable(c, group) {
		return true
	}
	status, there := c.Status[group]
	if !there {
		return claimed(c, group)
	}
	inMemory := 0 // lost, and not acknowledged
	for _, lost := range c.Missing {
		if lost.Instance != nil && lost.Instance.Group == group && lost.At > Acknowledged(c) {
			inMemory++
		}
	}
	return c.Uncounted(group, inMemory) > 0 || named(c, status.Record)
}

// Acknowledged returns the revision up to which an operator has accepted losses.
func Acknowledged(c *cache.Content) store.Revision {
	if r := c.Shard.Record.Reviewed; r != nil {
		return r.Seen
	}
	return 0
}

// unreadable reports whether the group has, or may have, an unreadable instance of which no former
// value is known, or an unreadable status.
func unreadable(c *cache.Content, group string) bool {
	for key := range c.Unreadable {
		shard, _ := store.ShardOf(key)
		switch kind, name, _ := store.KeysOf(shard).Split(key); kind {
		case store.KindStatus:
			if _, known := c.Status[name]; name == group && !known {
				return true
			}
		case store.KindInstances:
			place, ours := strings.CutPrefix(name, group+"-")
			if _, known := c.Instances[name]; ours && !known && strings.Count(place, "-") <= 1 {
				return true
			}
		}
	}
	return false
}

// claimed reports whether an agent without a record claims to belong to the group.
func claimed(c *cache.Content, group string) bool {
	for id := range c.Claiming[group] {
		if _, recorded := c.Instances[id]; !recorded {
			return true
		}
	}
	return false
}

// named reports whether a leader has named a lost record that this replica has never read.
func named(c *cache.Content, status store.Status) bool {
	for i := range status.Damaged {
		d := &status.Damaged[i]
		if d.Instance == "" || d.Reviewed(&c.Shard.Record) || c.DeletedOnPurpose(d.Key, d.Last) {
			continue // losses without a name are counted in Records
		}
		_, recorded := c.Instances[d.Instance]
		if _, inMemory := c.Missing[d.Key]; !recorded && !inMemory && c.Unreadable[d.Key] == "" {
			return true
		}
	}
	return false
}
