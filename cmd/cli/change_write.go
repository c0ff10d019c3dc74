package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// write writes all changes or none, each only if its group is still as it was read. again is the
// command to repeat after a lost race.
func (inv *Invocation) write(ctx context.Context, changes []groupChange, again string) (store.Revision, error) {
	return inv.writeWith(ctx, changes, nil, again)
}

// asRead are the conditions that the group is as it was read.
func (c groupChange) asRead(keys store.Keys) []store.Condition {
	return []store.Condition{
		store.At(keys.Group(c.name), c.groupRev),
		store.At(keys.Static(c.name), c.staticRev),
	}
}

// writeWith is write with orders in the same transaction.
func (inv *Invocation) writeWith(ctx context.Context, changes []groupChange, orders []store.Request, again string) (
	store.Revision, error,
) {
	var txn store.Txn
	for _, c := range changes {
		txn.Conditions = append(txn.Conditions, c.asRead(inv.keys())...)
		if c.staticAfter != nil {
			txn.Writes = append(txn.Writes, store.Put(inv.keys().Static(c.name), store.Encode(*c.staticAfter)))
			continue
		}
		txn.Writes = append(txn.Writes, store.Put(inv.keys().Group(c.name), c.value()))
	}
	for _, r := range orders {
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
		before, after := *c.before, c.after
		before.OperatorState, after.OperatorState = store.OperatorState{}, store.OperatorState{}
		if string(store.Encode(before)) != string(store.Encode(after)) {
			inv.warn("%s was applied from source %s: the next leasehold apply from there restores what its files say", c.name,
				c.before.Source)
		}
	}
}

// conflictError returns an error that says which other edit came first.
func (inv *Invocation) conflictError(ctx context.Context, changes []groupChange, conflict *store.ConflictError,
	again string,
) error {
	if inv.api != nil {
		inv.api.raced = true
	}
	key, what, read := inv.conflicting(changes, conflict)
	now, err := inv.find(ctx, key)
	if err != nil {
		return err
	}
	return failure(Conflict, again, "%s: %s; that change stands, and nothing was written", what,
		describeConflict(read, now.Modified))
}

// conflicting returns the first key that another edit changed, what it holds, and its revision as
// it was read. If the conflict names none of the keys, it is the first group's.
func (inv *Invocation) conflicting(changes []groupChange, conflict *store.ConflictError) (
	key, what string, read store.Revision,
) {
	for _, c := range changes {
		if key := inv.keys().Group(c.name); slices.Contains(conflict.Keys, key) {
			return key, "group " + c.name, c.groupRev
		}
		if key := inv.keys().Static(c.name); slices.Contains(conflict.Keys, key) {
			return key, "static group " + c.name, c.staticRev
		}
	}
	first := changes[0]
	return inv.keys().Group(first.name), "group " + first.name, first.groupRev
}

func describeConflict(read, now store.Revision) string {
	switch {
	case now == 0:
		return fmt.Sprintf("it was removed after revision %d, on which this edit was based", read)
	case read == 0:
		return fmt.Sprintf("it was created in the meantime (revision %d)", now)
	default:
		return fmt.Sprintf("it was changed (revision %d) after revision %d, on which this edit was based", now, read)
	}
}

// reportUnchanged reports that there was nothing to write. It is an error if the coordinator
// refuses the present spec: applying the same one again changes nothing.
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
