package cli

import (
	"time"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/store"
)

// change is an edit of one group: the new spec, and what was read before. It is written only while
// groups/<name> and static/<name> are still as they were read (REC-14). For a static group,
// groups/<name> holds an override (REC-6).
type groupChange struct {
	name      string
	before    *store.Group   // the previous spec; nil: no group, or none that can be read
	groupRev  store.Revision // revision of groups/<name> as read; 0: absent
	broken    error          // why what was read cannot be used
	remaining int            // number of instances of a group whose key is gone or whose spec is not in force
	after     store.Group
	file      *groupfile.Entry // the file of after; nil: none
	loadSize  *store.Scale     // the size that load has chosen; nil: none
	readAt    time.Time        // when it was read

	static         *store.Group   // as config apply wrote it; nil: the group is not static
	staticRev      store.Revision // revision of static/<name>; 0: absent
	overrideAfter  store.Override // content of groups/<name> for a static group: what commands have set
	overrideBefore store.Override
	staticAfter    *store.Group  // write it to static/<name>: only config apply does
	pruning        string        // what its deletion by apply --prune does; "": that does not delete it
	lostOverride   *store.Beside // an override that is in force although it is missing (SAFE-10)
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
	if c.after.OperatorState = c.before.OperatorState; !c.unchanged() {
		c.after.ScaleHold = nil
	}
}

// setSize changes the size.
func (c *groupChange) setSize(n int) {
	c.after.Size = n
	c.overrideAfter.Size = &n
}
