package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/store"
)

// readChange reads a group to be changed. If the group does not exist, before is nil and isNew
// true.
func (inv *Invocation) readChange(ctx context.Context, name string) (groupChange, error) {
	c, err := inv.readGroup(ctx, name)
	if err == nil {
		err = inv.api.checkBase(c)
	}
	return c, err
}

func (inv *Invocation) readGroup(ctx context.Context, name string) (groupChange, error) {
	c := groupChange{name: name, readAt: inv.env.Now()}
	kv, err := inv.find(ctx, inv.keys().Group(name))
	if err != nil {
		return c, err
	}
	static, err := inv.find(ctx, inv.keys().Static(name))
	if err != nil {
		return c, err
	}
	c.groupRev, c.staticRev = kv.Modified, static.Modified
	if static.Modified != 0 {
		status, err := inv.find(ctx, inv.keys().Status(name))
		if err != nil {
			return c, err
		}
		return c, c.readStatic(static, kv, status)
	}
	if kv.Modified == 0 {
		c.remaining, err = inv.countInstances(ctx, name)
		return c, err
	}
	g, broken, err := groupfile.ReadStored(kv.Value)
	if err != nil {
		return c, fmt.Errorf("read group %s: %w", name, err)
	}
	if broken == nil && g.Name != name {
		broken = fmt.Errorf("its name is %q, its key says %q", g.Name, name)
	}
	c.before, c.broken = &g, broken
	c.remaining, err = inv.countUnlessInForce(ctx, &c)
	return c, err
}

// leftUnless returns how many instances a group has if its spec, as it was read, is not in force,
// and 0 if it is. A smaller size is compared with them.
func (inv *Invocation) countUnlessInForce(ctx context.Context, c *groupChange) (int, error) {
	kv, err := inv.find(ctx, inv.keys().Status(c.name))
	if err != nil {
		return 0, err
	}
	st, err := store.Decode[store.Status](kv)
	c.loadSize = st.Record.Scale
	refused := err != nil || st.Record.Invalid != nil && st.Record.Invalid.Revision == c.groupRev
	if c.broken == nil && (kv.Modified == 0 || !refused) {
		return 0, nil
	}
	left, err := inv.countInstances(ctx, c.name)
	if accepted := st.Record.Accepted; accepted != nil {
		left = max(left, accepted.Size)
	}
	return left, err
}

// leftOf returns how many instances a group without a spec still has, according to its status.
func (inv *Invocation) countInstances(ctx context.Context, name string) (left int, err error) {
	kv, err := inv.find(ctx, inv.keys().Status(name))
	if err != nil || kv.Modified == 0 {
		return 0, err
	}
	st, err := store.Decode[store.Status](kv)
	if err != nil { // the records themselves are counted
		some, err := inv.instancesOf(ctx, inv.keys(), name, unlimited)
		return len(some.records), err
	}
	for phase, n := range st.Record.Phases {
		if phase.Fills() {
			left += n
		}
	}
	return left, nil
}

// readStatic reads a static group and its override.
func (c *groupChange) readStatic(static, beside, status store.KV) error {
	g, err := store.ReadStatic(static.Value)
	if err == nil && g.Name != c.name {
		err = fmt.Errorf("its name is %q, its key says %q", g.Name, c.name)
	}
	if errors.Is(err, store.ErrSchema) {
		return fmt.Errorf("read static group %s: %w", c.name, err)
	}
	if o, unreadable := store.ReadOverride(beside.Value); beside.Modified != 0 && unreadable == nil {
		c.overrideBefore = o
	}
	if err != nil {
		return failure(Failed, "leasehold config apply -f FILE, with the whole group",
			"group %s: the static group at revision %d cannot be used: %s", c.name, static.Modified, joined(err))
	}
	c.static = &g
	c.overrideBefore = store.Override{Schema: store.Schema, Name: c.name}
	var value []byte
	if beside.Modified != 0 {
		value = beside.Value
		flags, _, err := groupfile.ReadStored(value)
		if errors.Is(err, store.ErrSchema) {
			return fmt.Errorf("read group %s: %w", c.name, err)
		}
		c.overrideBefore.OperatorState = flags.OperatorState
	}
	if st, err := store.Decode[store.Status](status); err == nil { // without a status nothing was accepted
		c.loadSize = st.Record.Scale
		if c.lostOverride = st.Record.LostBeside(g, beside.Modified); c.lostOverride != nil {
			value = store.Encode(c.lostOverride.Override)
		}
	}
	force, err := store.ReadInForce(static.Value, value)
	switch o, unreadable := store.ReadOverride(value); {
	case value == nil:
	case err != nil || unreadable != nil:
		force = c.overrideBefore.Over(g)
		c.broken = err
	default:
		c.overrideBefore = o
	}
	c.before, c.overrideAfter = &force, c.overrideBefore
	return nil
}

// readExisting is readChange for commands that change a part of the spec, and therefore need it
// whole.
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
