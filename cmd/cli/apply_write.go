package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// written is what an apply has written so far.
type written struct {
	groups   map[string]store.Revision
	settings store.Revision
}

func (w written) last() store.Revision {
	last := w.settings
	for _, rev := range w.groups {
		last = max(last, rev)
	}
	return last
}

// groupsAtOnce is the number of groups that fit into one transaction: each takes two comparisons,
// and the shard's record one.
const groupsAtOnce = (store.MaxOps - 1) / 2

// writeIntent writes the changes, each record only if it is still as it was read. If everything
// fits into one transaction, everything is written or nothing.
//
// etcd bounds the comparisons of a transaction. More groups than fit are written in several
// transactions, after a check that none of them has changed meanwhile. An edit between two of these
// transactions stops the rest; what was written stays, because machines may have been created for
// it already. The next apply continues from there.
func (inv *Invocation) writeIntent(ctx context.Context, in intent, again string) (written, error) {
	done := written{groups: map[string]store.Revision{}}
	var writes []groupChange
	for _, ch := range in.changes {
		if !ch.unchanged() {
			writes = append(writes, ch)
		}
	}
	settings := in.settings
	if len(writes) > groupsAtOnce {
		if err := inv.unchangedSince(ctx, writes, again); err != nil {
			return done, err
		}
	}
	for len(writes) > 0 || settings != nil {
		part := writes[:min(len(writes), groupsAtOnce)]
		rev, err := inv.writePart(ctx, part, settings, again)
		if err != nil {
			return done, afterPart(err, done, len(writes))
		}
		for _, ch := range part {
			done.groups[ch.name] = rev
		}
		if settings != nil {
			done.settings = rev
		}
		writes, settings = writes[len(part):], nil
	}
	return done, nil
}

// writePart writes one transaction.
func (inv *Invocation) writePart(ctx context.Context, changes []groupChange, settings *settingsChange, again string) (
	store.Revision, error,
) {
	var txn store.Txn
	for _, c := range changes {
		txn.Conditions = append(txn.Conditions, store.At(inv.keys().Group(c.name), c.groupRev),
			store.Absent(inv.keys().Static(c.name)))
		txn.Writes = append(txn.Writes, store.Put(inv.keys().Group(c.name), c.value()))
	}
	if settings != nil {
		txn.Conditions = append(txn.Conditions, settings.shard.Unchanged())
		txn.Writes = append(txn.Writes, store.Put(settings.shard.Key, store.Encode(settings.next)))
	}
	rev, err := inv.commit(ctx, "write groups", txn)
	var conflict *store.ConflictError
	switch {
	case !errors.As(err, &conflict):
		return rev, err
	case settings != nil && len(conflict.Keys) == 1 && conflict.Keys[0] == settings.shard.Key, len(changes) == 0:
		return 0, failure(Conflict, again,
			"shard %s: its record was changed in the meantime; nothing was written", inv.flags.Shard)
	default:
		return 0, inv.conflictError(ctx, changes, conflict, again)
	}
}

// afterPart adds to an error what was written before it.
func afterPart(err error, done written, left int) error {
	var why *Failure
	if len(done.groups) == 0 || !errors.As(err, &why) {
		return err
	}
	more := *why
	more.What += fmt.Sprintf(" in this step; %s before it %s written and stand, %s not",
		counted(len(done.groups), "group", "groups"), wasWere(len(done.groups)), isAre(left))
	return &more
}

func wasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// unchangedSince fails if one of the groups is no longer as it was read.
func (inv *Invocation) unchangedSince(ctx context.Context, changes []groupChange, again string) error {
	now := map[string]store.Revision{}
	for _, kind := range []string{store.KindGroups, store.KindStatic} {
		listing, err := inv.list(ctx, inv.keys().Of(kind), 0)
		if err != nil {
			return err
		}
		for _, kv := range listing.KVs {
			now[kv.Key] = kv.Modified
		}
	}
	var conflict store.ConflictError
	for _, c := range changes {
		if now[inv.keys().Group(c.name)] != c.groupRev {
			conflict.Keys = append(conflict.Keys, inv.keys().Group(c.name))
		}
		if now[inv.keys().Static(c.name)] != 0 {
			conflict.Keys = append(conflict.Keys, inv.keys().Static(c.name))
		}
	}
	if len(conflict.Keys) > 0 {
		return inv.conflictError(ctx, changes, &conflict, again)
	}
	return nil
}
