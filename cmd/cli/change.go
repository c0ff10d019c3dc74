package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/coordinator/story"
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

// write writes all changes or none, each only if its group is still as it was read. again is the
// command to repeat after a lost race.
func (inv *Invocation) write(ctx context.Context, changes []groupChange, again string) (store.Revision, error) {
	return inv.writeWith(ctx, changes, nil, again)
}

// writeWith is write with additional operations in the same transaction.
func (inv *Invocation) writeWith(ctx context.Context, changes []groupChange, also []store.Request, again string) (
	store.Revision, error,
) {
	var txn store.Txn
	for _, c := range changes {
		txn.Conditions = append(txn.Conditions, store.At(inv.keys().Group(c.name), c.groupRev),
			store.At(inv.keys().Static(c.name), c.staticRev))
		if c.staticAfter != nil {
			txn.Writes = append(txn.Writes, store.Put(inv.keys().Static(c.name), store.Encode(*c.staticAfter)))
			continue
		}
		txn.Writes = append(txn.Writes, store.Put(inv.keys().Group(c.name), c.value()))
	}
	for _, r := range also {
		key := inv.keys().Request(r.ID)
		txn.Conditions = append(txn.Conditions, store.Absent(key))
		txn.Writes = append(txn.Writes, store.Put(key, store.Encode(r)))
	}
	rev, err := inv.commit(ctx, "write group", txn)
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		return 0, inv.conflictError(ctx, changes, conflict, again)
	}
	if err == nil {
		inv.warnOfSources(changes)
	}
	return rev, err
}

// warnOfSources says that an edit by hand lasts until the group's source is applied again.
func (inv *Invocation) warnOfSources(changes []groupChange) {
	for _, c := range changes {
		if c.before == nil || c.before.Source == "" || c.after.Deleting {
			continue
		}
		was, ok := *c.before, c.after
		was.OperatorState, ok.OperatorState = store.OperatorState{}, store.OperatorState{}
		if string(store.Encode(was)) != string(store.Encode(ok)) {
			inv.warn("%s was applied from source %s: the next leasehold apply from there restores what its files say", c.name,
				c.before.Source)
		}
	}
}

// lost returns an error that says which other edit came first.
func (inv *Invocation) conflictError(ctx context.Context, changes []groupChange, conflict *store.ConflictError,
	again string,
) error {
	if inv.api != nil {
		inv.api.raced = true
	}
	first := changes[0]
	key, what, was := inv.keys().Group(first.name), "group "+first.name, first.groupRev
	for _, other := range changes {
		if k := inv.keys().Group(other.name); slices.Contains(conflict.Keys, k) {
			key, what, was = k, "group "+other.name, other.groupRev
			break
		}
		if k := inv.keys().Static(other.name); slices.Contains(conflict.Keys, k) {
			key, what, was = k, "static group "+other.name, other.staticRev
			break
		}
	}
	now, err := inv.find(ctx, key)
	if err != nil {
		return err
	}
	return failure(Conflict, again, "%s: %s; that change stands, and nothing was written", what,
		describeConflict(was, now.Modified))
}

func describeConflict(was, now store.Revision) string {
	switch {
	case now == 0:
		return fmt.Sprintf("it was removed after revision %d, on which this edit was based", was)
	case was == 0:
		return fmt.Sprintf("it was created in the meantime (revision %d)", now)
	default:
		return fmt.Sprintf("it was changed (revision %d) after revision %d, on which this edit was based", now, was)
	}
}

// sizes returns the sizes in force before and after the change. If the size follows the load, load
// continues from its last choice.
func (c groupChange) sizes() (before, after int) {
	return c.before.SizeAt(c.loadSize, c.readAt), c.after.SizeAt(c.loadSize, c.readAt)
}

// shrinks reports whether the change removes machines.
func (c groupChange) shrinks() bool {
	if c.isNew() || c.remaining > 0 {
		return c.after.SizeAt(nil, c.readAt) < c.remaining
	}
	if c.before == nil || c.broken != nil {
		return false
	}
	before, after := c.sizes()
	return after < before
}

// A typed digit too many costs money before anyone sees it: growth of this kind is confirmed.
const (
	growsMuchTimes = 10
	growsMuchBy    = 50 // instances
)

// leaps reports whether the group grows so much that the size may be a mistake.
func (c groupChange) growsMuch() bool {
	if c.isNew() || c.before == nil || c.broken != nil {
		return false
	}
	before, after := c.sizes()
	return after >= growsMuchTimes*before && after-before >= growsMuchBy
}

// growing describes a much larger size, for the confirmation.
func (c groupChange) describeGrowth() string {
	before, after := c.sizes()
	return fmt.Sprintf("group %s grows from %d to %s", c.name, before, counted(after, "instance", "instances"))
}

// shrinking describes a smaller size, for the confirmation.
func (c groupChange) describeShrinking() string {
	if c.isNew() {
		return fmt.Sprintf("group %s, whose key is missing, has %s left and shrinks to %s", c.name,
			counted(c.remaining, "instance", "instances"), counted(c.after.Size, "instance", "instances"))
	}
	if c.remaining > 0 {
		return fmt.Sprintf("group %s, whose spec of revision %d is not in force, has %s and shrinks to %s", c.name,
			c.rev(), counted(c.remaining, "instance", "instances"), counted(c.after.Size, "instance", "instances"))
	}
	before, after := c.sizes()
	return fmt.Sprintf("group %s shrinks from %d to %s", c.name, before, counted(after, "instance", "instances"))
}

// leftAlone reports that there was nothing to write. It is an error if the coordinator refuses the
// present spec: applying the same one again changes nothing.
func (inv *Invocation) reportUnchanged(ctx context.Context, c groupChange, shown store.Revision) error {
	status, _, err := findRecord[store.Status](ctx, inv, inv.keys().Status(c.name))
	if err != nil {
		return err
	}
	bad := status.Record.Invalid
	if bad == nil || bad.Revision != c.rev() {
		fmt.Fprintf(inv.env.Stdout, "%s unchanged rev %d\n", c.name, shown)
		return nil
	}
	fmt.Fprintf(inv.env.Stdout, "%s refused rev %d\n", c.name, shown)
	next := "leasehold group edit " + c.name
	if c.static != nil {
		next = "correct the shard's file, then leasehold config apply -f FILE; or " + next
	}
	return failure(Failed, next, "group %s: the coordinator refuses its spec (revision %d): %s; %s", c.name,
		bad.Revision, bad.Why, story.InForce(status.Record))
}
