package cli

import (
	"time"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/store"
)

// groupChange is a change of one group, from the spec that was read to another one. It is written
// only while groups/<name> and static/<name> are as they were read (REC-14).
//
// A group is defined in groups/<name>, by commands, or in static/<name>, by config apply. For a
// static group, groups/<name> holds an override: what commands have set on top of it (REC-6).
type groupChange struct {
	name   string
	before *store.Group // the spec with its override; nil: none, or none that can be read
	after  store.Group
	file   *groupfile.Entry // the file of after; nil: none
	readAt time.Time

	groupRev  store.Revision // revision of groups/<name> as read; 0: it is absent
	staticRev store.Revision // revision of static/<name>; 0: it is absent
	broken    error          // why the spec or the override that was read cannot be used
	loadSize  *store.Scale   // the size that load has chosen; nil: none
	remaining int            // instances of a group whose spec is gone or not in force; else 0

	static         *store.Group   // static/<name> as read; nil: the group is not static
	staticAfter    *store.Group   // what config apply writes to static/<name>; nil for all other commands
	overrideBefore store.Override // groups/<name> of a static group, as read
	overrideAfter  store.Override
	lostOverride   *store.Beside // an override that is in force although it is missing (SAFE-10)

	pruning string // what follows if apply --prune deletes the group; "": it does not
}

// value returns the new value of groups/<name>.
func (c groupChange) value() []byte {
	if c.static == nil {
		return store.Encode(c.after)
	}
	o := c.overrideAfter
	o.Schema, o.Name = store.Schema, c.name
	o.OperatorState = c.after.OperatorState
	if c.static.Deleting { // the static group defines it
		o.Deleting = c.overrideBefore.Deleting
	}
	return store.Encode(o)
}

// rev returns the revision of what was read: the newer one of a static group and its override.
func (c groupChange) rev() store.Revision { return max(c.groupRev, c.staticRev) }

// isNew reports whether no group had this name.
func (c groupChange) isNew() bool { return c.rev() == 0 }

// unchanged reports whether there is nothing to write.
func (c groupChange) unchanged() bool {
	switch {
	case c.before == nil || c.broken != nil || c.lostOverride != nil:
		return false
	case c.static != nil:
		return string(store.Encode(c.overrideBefore)) == string(c.value())
	default:
		return string(store.Encode(*c.before)) == string(store.Encode(c.after))
	}
}

// keepState keeps what commands have set. A size that overrides the load does so until the group is
// changed (AUTO-3).
func (c *groupChange) keepState() {
	if c.before == nil {
		return
	}
	c.after.OperatorState = c.before.OperatorState
	if !c.unchanged() {
		c.after.ScaleHold = nil
	}
}

// setSize changes the size.
func (c *groupChange) setSize(n int) {
	c.after.Size = n
	c.overrideAfter.Size = &n
}
