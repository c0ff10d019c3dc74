package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/store"
)

// readChange reads a group to be changed, and checks the revision that an API request is based on.
// If the group does not exist, before is nil and isNew true.
func (inv *Invocation) readChange(ctx context.Context, name string) (groupChange, error) {
	c, err := inv.readGroup(ctx, name)
	if err == nil {
		err = inv.api.checkBase(c)
	}
	return c, err
}

func (inv *Invocation) readGroup(ctx context.Context, name string) (groupChange, error) {
	c := groupChange{name: name, readAt: inv.env.Now()}
	group, err := inv.find(ctx, inv.keys().Group(name))
	if err != nil {
		return c, err
	}
	static, err := inv.find(ctx, inv.keys().Static(name))
	if err != nil {
		return c, err
	}
	status, err := inv.find(ctx, inv.keys().Status(name))
	if err != nil {
		return c, err
	}
	c.groupRev, c.staticRev = group.Modified, static.Modified
	switch {
	case static.Modified != 0:
		return c, c.readStatic(static, group, status)
	case group.Modified == 0:
		c.remaining, err = inv.countInstances(ctx, name, status)
		return c, err
	default:
		return c, inv.readSpec(ctx, &c, group, status)
	}
}

// readSpec reads the spec of a group that is not static. If the spec is not in force, it counts the
// instances, with which a smaller size is compared.
func (inv *Invocation) readSpec(ctx context.Context, c *groupChange, group, status store.KV) error {
	spec, broken, err := groupfile.ReadStored(group.Value)
	if err != nil {
		return fmt.Errorf("read group %s: %w", c.name, err)
	}
	if broken == nil && spec.Name != c.name {
		broken = fmt.Errorf("its name is %q, its key says %q", spec.Name, c.name)
	}
	c.before, c.broken = &spec, broken
	st, unreadable := store.Decode[store.Status](status)
	c.loadSize = st.Record.Scale
	refused := unreadable != nil || st.Record.Invalid != nil && st.Record.Invalid.Revision == c.groupRev
	if broken == nil && (status.Modified == 0 || !refused) {
		return nil
	}
	c.remaining, err = inv.countInstances(ctx, c.name, status)
	if accepted := st.Record.Accepted; accepted != nil {
		c.remaining = max(c.remaining, accepted.Size)
	}
	return err
}

// countInstances counts the instances that fill slots of a group, by its status, or by their
// records if the status cannot be read.
func (inv *Invocation) countInstances(ctx context.Context, name string, status store.KV) (n int, err error) {
	if status.Modified == 0 {
		return 0, nil
	}
	st, err := store.Decode[store.Status](status)
	if err != nil {
		some, err := inv.instancesOf(ctx, inv.keys(), name, unlimited)
		return len(some.records), err
	}
	for phase, count := range st.Record.Phases {
		if phase.Fills() {
			n += count
		}
	}
	return n, nil
}

// readStatic reads a static group and its override, the value of groups/<name>. If the static group
// cannot be used, overrideBefore is set nevertheless: config apply replaces such a group.
func (c *groupChange) readStatic(static, override, status store.KV) error {
	group, err := store.ReadStatic(static.Value)
	if err == nil && group.Name != c.name {
		err = fmt.Errorf("its name is %q, its key says %q", group.Name, c.name)
	}
	if errors.Is(err, store.ErrSchema) {
		return fmt.Errorf("read static group %s: %w", c.name, err)
	}
	if o, unreadable := store.ReadOverride(override.Value); override.Modified != 0 && unreadable == nil {
		c.overrideBefore = o
	}
	if err != nil {
		return failure(Failed, "leasehold config apply -f FILE, with the whole group",
			"group %s: the static group at revision %d cannot be used: %s", c.name, static.Modified, joined(err))
	}
	c.static = &group
	c.overrideBefore = store.Override{Schema: store.Schema, Name: c.name}
	var value []byte // of the override in force; nil: none
	if override.Modified != 0 {
		value = override.Value
		flags, _, err := groupfile.ReadStored(value)
		if errors.Is(err, store.ErrSchema) {
			return fmt.Errorf("read group %s: %w", c.name, err)
		}
		c.overrideBefore.OperatorState = flags.OperatorState
	}
	if st, err := store.Decode[store.Status](status); err == nil { // without a status nothing was accepted
		c.loadSize = st.Record.Scale
		if c.lostOverride = st.Record.LostBeside(group, override.Modified); c.lostOverride != nil {
			value = store.Encode(c.lostOverride.Override)
		}
	}
	inForce, err := store.ReadInForce(static.Value, value)
	switch o, unreadable := store.ReadOverride(value); {
	case value == nil:
	case err != nil || unreadable != nil: // of such an override, only the operator's state is known
		inForce = c.overrideBefore.Over(group)
		c.broken = err
	default:
		c.overrideBefore = o
	}
	c.before, c.overrideAfter = &inForce, c.overrideBefore
	return nil
}

// readExisting is readChange for commands that change a part of the spec: the group must exist, and
// its spec must be usable.
func (inv *Invocation) readExisting(ctx context.Context, name string) (groupChange, error) {
	if !isName(name) {
		return groupChange{}, inv.noGroup(ctx, name)
	}
	c, err := inv.readChange(ctx, name)
	switch {
	case err != nil:
		return c, err
	case c.isNew():
		return c, inv.noGroup(ctx, name)
	case c.broken != nil && c.static != nil:
		return c, failure(Failed, "leasehold group apply -f FILE, with the overrides",
			"group %s: the override of revision %d cannot be used: %s", name, c.groupRev, joined(c.broken))
	case c.broken != nil:
		return c, failure(Failed, "leasehold group apply -f FILE, with the whole spec",
			"group %s: its spec at revision %d cannot be used: %s", name, c.groupRev, joined(c.broken))
	}
	c.after = *c.before
	return c, nil
}
