package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/store"
)

// change is an edit of one group: the spec to write, and what was read before. It happens only while groups/<name> is
// still as it was read (REC-14).
type change struct {
	name   string
	before *store.Group   // nil: there is no group, or none that can be read
	was    store.Revision // of the key as read; 0: absent
	broken error          // why the spec as read cannot be used
	after  store.Group
}

// unchanged says that there is nothing to write.
func (c change) unchanged() bool {
	return c.before != nil && c.broken == nil && string(store.Encode(*c.before)) == string(store.Encode(c.after))
}

// readChange reads what is there of a group, to be changed. Without the key, was is 0 and before nil.
func (s *Session) readChange(ctx context.Context, name string) (change, error) {
	c := change{name: name}
	kv, err := s.find(ctx, s.keys().Group(name))
	if err != nil || kv.Modified == 0 {
		return c, err
	}
	c.was = kv.Modified
	g, broken, err := groupfile.ReadStored(kv.Value)
	if err != nil {
		return c, fmt.Errorf("read group %s: %w", name, err)
	}
	if broken == nil && g.Name != name {
		broken = fmt.Errorf("its name is %q, its key says %q", g.Name, name)
	}
	c.before, c.broken = &g, broken
	return c, nil
}

// readExisting is readChange for commands that change a part of what is there, and therefore need it whole.
func (s *Session) readExisting(ctx context.Context, name string) (change, error) {
	if !isName(name) {
		return change{}, noGroup(name)
	}
	c, err := s.readChange(ctx, name)
	switch {
	case err != nil:
		return c, err
	case c.was == 0:
		return c, noGroup(name)
	case c.broken != nil:
		return c, failure(Failed, "leasehold group apply -f FILE, with the whole spec", "group %s: its spec at revision %d cannot be used: %s", name, c.was, joined(c.broken))
	}
	c.after = *c.before
	return c, nil
}

// write puts the changes into etcd, all or none, each only if its group is still as it was read. again is the
// command with which the loser of a race may try once more.
func (s *Session) write(ctx context.Context, changes []change, again string) (store.Revision, error) {
	var txn store.Txn
	for _, c := range changes {
		key := s.keys().Group(c.name)
		txn.Conditions = append(txn.Conditions, store.At(key, c.was))
		txn.Writes = append(txn.Writes, store.Put(key, store.Encode(c.after)))
	}
	rev, err := s.commit(ctx, "write group", txn)
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		return 0, s.lost(ctx, changes, conflict, again)
	}
	return rev, err
}

// lost says who won when another edit came first.
func (s *Session) lost(ctx context.Context, changes []change, conflict *store.ConflictError, again string) error {
	c := changes[0]
	for _, other := range changes {
		if s.keys().Group(other.name) == conflict.Keys[0] {
			c = other
		}
	}
	now, err := s.find(ctx, s.keys().Group(c.name))
	if err != nil {
		return err
	}
	return failure(Conflict, again, "group %s: %s; that stands, and nothing of yours was written", c.name, whatHappened(c.was, now.Modified))
}

func whatHappened(was, now store.Revision) string {
	switch {
	case now == 0:
		return fmt.Sprintf("somebody removed it after revision %d, on which this edit was made", was)
	case was == 0:
		return fmt.Sprintf("somebody made it (revision %d) meanwhile", now)
	default:
		return fmt.Sprintf("somebody changed it (revision %d) after revision %d, on which this edit was made", now, was)
	}
}

// shrinks says that the change takes machines away.
func (c change) shrinks() bool {
	return c.before != nil && c.broken == nil && c.after.Size < c.before.Size
}

// shrinking says so, for whoever must confirm it.
func (c change) shrinking() string {
	return fmt.Sprintf("group %s shrinks from %d to %s", c.name, c.before.Size, counted(c.after.Size, "instance", "instances"))
}
