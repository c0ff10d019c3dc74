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
