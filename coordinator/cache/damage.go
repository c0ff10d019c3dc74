package cache

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Spoiled is what is known of a key whose value cannot be read.
type Spoiled struct {
	Modified store.Revision // revision of the unreadable value
	Lease    store.LeaseID
	Newer    bool // a newer program wrote it, so it must not be overwritten
}

// Missing is a lost record: the cache has read it, it is absent, and there is no note that it was
// deleted on purpose.
type Missing struct {
	Kind, Name string
	Last       store.Revision // revision of the record when it was last read
	At         store.Revision // revision at which the record was found absent
	Instance   *store.Instance
	Status     *store.Versioned[store.Status]
}

// Note is the part of a store.Gone that the cache keeps.
type Note struct {
	Revision store.Revision // revision of what was deleted
	Modified store.Revision // revision of the note itself
	Group    string
}

// Counts reports whether the note is about the record that was last read at a revision, and not
// about an earlier record with the same key.
func (n Note) Counts(last store.Revision) bool {
	return n.Modified != 0 && (n.Revision >= last || n.Revision == 0)
}

// DeletedOnPurpose reports whether a key is absent because it was deleted on purpose: last is its
// newest known revision.
func (c *Content) DeletedOnPurpose(key string, last store.Revision) bool {
	n, there := c.Gone[key]
	return there && n.Counts(last)
}

func (c *Content) spoil(kv store.KV, err error) {
	c.Unreadable[kv.Key] = err.Error()
	c.Spoiled[kv.Key] = Spoiled{Modified: kv.Modified, Lease: kv.Lease, Newer: errors.Is(err, store.ErrSchema)}
}

func (c *Content) takeNote(of string, v store.Versioned[store.Gone]) {
	note := Note{Revision: v.Record.Revision, Modified: v.Modified, Group: v.Record.Group}
	c.Gone[of] = note
	if id := v.Record.Instance; id != "" && v.Record.Group != "" {
		if c.GoneIn[note.Group] == nil {
			c.GoneIn[note.Group] = map[string]Note{}
		}
		c.GoneIn[note.Group][of] = note
	}
	if m, missing := c.Missing[of]; missing && note.Counts(m.Last) {
		delete(c.Missing, of)
	}
}

func (c *Content) dropNote(of string) {
	group := c.Gone[of].Group
	delete(c.Gone, of)
	if delete(c.GoneIn[group], of); len(c.GoneIn[group]) == 0 {
		delete(c.GoneIn, group)
	}
}

// noteMissing records that a key is about to be removed, unless it was deleted on purpose.
func (c *Content) noteMissing(keys store.Keys, kind, name, key string) {
	m, watched := c.remember(keys, kind, name)
	if !watched || c.DeletedOnPurpose(key, m.Last) {
		return
	}
	c.Missing[key] = m
}

// remember returns what is known of a record whose loss is damage: false for other records, and for
// those that were never read. Alive keys, reports, turns, requests and tokens are transient.
// SAFE-10 covers a group's spec.
func (c *Content) remember(keys store.Keys, kind, name string) (Missing, bool) {
	m := Missing{Kind: kind, Name: name, At: c.Revision + 1}
	switch kind {
	case store.KindInstances:
		v, there := c.Instances[name]
		if !there || !c.protects(keys, v.Record.Group) {
			return m, false
		}
		m.Instance, m.Last = &v.Record, v.Modified
	case store.KindStatus:
		v, there := c.Status[name]
		if !there || v.Record.Records == nil {
			return m, false
		}
		m.Status, m.Last = &v, v.Modified
	default:
		return m, false
	}
	return m, true
}

// protects reports whether the leader of a group writes gone notes. A leader of an earlier release
// does not, and leaves no count of records in the status: what it deletes is not missing.
func (c *Content) protects(keys store.Keys, group string) bool {
	if v, there := c.Status[group]; there {
		return v.Record.Records != nil
	}
	return c.Missing[keys.Status(group)].Status != nil
}

// forgiveMissing forgets the missing instances of a group: a leader of the previous release has
// written its status, so it may have deleted them before that.
func (c *Content) forgiveMissing(group string) {
	for key, m := range c.Missing {
		if m.Instance != nil && m.Instance.Group == group {
			delete(c.Missing, key)
		}
	}
}

// Inherit copies from the content before a fresh listing what the listing cannot show: what is
// missing, and the former values of unreadable keys. Age is how long that content was not updated:
// if notes may have expired meanwhile, an absent record may have been deleted on purpose, and only
// the count in the status shows it.
func (c *Content) Inherit(keys store.Keys, old *Content, age time.Duration) {
	if old == nil {
		return
	}
	for key, m := range old.Missing {
		if !c.there(m.Kind, m.Name, key) && !c.DeletedOnPurpose(key, m.Last) {
			c.Missing[key] = m
		}
	}
	if age < min(old.notesKept(), c.notesKept()) {
		for id := range old.Instances {
			c.inherit(keys, old, store.KindInstances, id, keys.Instance(id))
		}
		for group := range old.Status {
			c.inherit(keys, old, store.KindStatus, group, keys.Status(group))
		}
	}
	for key := range c.Unreadable {
		c.keepRead(keys, old, key)
	}
}

// notesKept is the minimum time for which gone notes are kept.
func (c *Content) notesKept() time.Duration {
	if c.settings == nil {
		return store.DefaultShardSettings().EventsKept.D()
	}
	return c.settings.EventsKept.D()
}

// inherit records one record of the old content as missing if it is.
func (c *Content) inherit(keys store.Keys, old *Content, kind, name, key string) {
	if c.there(kind, name, key) {
		return
	}
	m, watched := old.remember(keys, kind, name)
	if !watched || c.DeletedOnPurpose(key, m.Last) {
		return
	}
	if kind == store.KindInstances {
		if s, there := c.Status[m.Instance.Group]; there && s.Record.Records == nil {
			return // a leader of the release before has worked meanwhile
		}
	}
	m.At = c.Revision
	c.Missing[key] = m
}

// there reports whether a listing shows a key, readable or not.
func (c *Content) there(kind, name, key string) bool {
	if c.Unreadable[key] != "" {
		return true
	}
	there := false
	switch kind {
	case store.KindInstances:
		_, there = c.Instances[name]
	case store.KindStatus:
		_, there = c.Status[name]
	}
	return there
}

// keepRead keeps the last readable value of an unreadable key.
func (c *Content) keepRead(keys store.Keys, old *Content, key string) {
	kind, name, _ := keys.Split(key)
	switch kind {
	case store.KindShard:
		c.Shard = old.Shard
	case store.KindServed:
		c.Served = old.Served
	case store.KindInstances:
		if v, there := old.Instances[name]; there {
			c.takeInstance(v)
		}
	case store.KindStatus:
		keep(c.Status, old.Status, name)
	case store.KindAlive:
		keep(c.Alive, old.Alive, name)
	case store.KindReports:
		keep(c.Reports, old.Reports, name)
	case store.KindSlots:
		group, n, _ := store.SplitSlot(name)
		if v, there := old.Slots[group][n]; there {
			if c.Slots[group] == nil {
				c.Slots[group] = map[int]store.Versioned[store.Slot]{}
			}
			c.Slots[group][n] = v
		}
	}
}

func keep[T any](to, from map[string]T, name string) {
	if v, there := from[name]; there {
		to[name] = v
	}
}

// Uncounted returns how many of the records of a group that a leader has counted are missing
// without a trace: they are neither present nor among the known losses, and were neither deleted on
// purpose since then nor accepted as lost by an operator.
func (c *Content) Uncounted(group string, known int) int {
	status := c.Status[group].Record
	if status.Records == nil {
		return 0
	}
	if r := c.Shard.Record.Reviewed; r != nil && status.Counted <= r.Seen {
		return 0
	}
	missing := *status.Records - len(c.ByGroup[group]) - known
	if missing <= 0 { // nearly always; notes only make it fewer
		return 0
	}
	for _, n := range c.GoneIn[group] {
		if n.Modified > status.Counted {
			missing--
		}
	}
	return max(0, missing)
}
