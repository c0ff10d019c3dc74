package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// Repair is the command repair (SAFE-16): it shows which records of the shard were lost or cannot
// be read, and restores them from etcd's history.
type Repair struct {
	Key     []string `arg:"" optional:"" help:"Repair only these keys, such as instances/web-1-x (default: all damaged keys)."`
	At      int64    `help:"Take every value from this revision, and restore all that was lost or damaged since (default: the last revision in which each key was readable)." placeholder:"REVISION"`
	Forget  bool     `help:"Declare the named records lost for good: nothing is restored, and their machines are removed."`
	Confirm []string `help:"Confirm the change by naming the shard; with --forget, the record." placeholder:"NAME"`
}

// repair is one damaged key, and what would be written.
type repair struct {
	Key      string         `json:"key"`
	What     string         `json:"what"` // store.DamageLost or store.DamageUnreadable
	Why      string         `json:"why,omitempty"`
	From     store.Revision `json:"from,omitempty"` // revision of the value that would be written; 0: unknown
	group    string         // group whose status names it; "" if none does
	now      store.Revision // present revision; 0: absent
	value    []byte
	doubtful bool // an operator may have deleted it: restored only if it is named
}

const (
	// repairBatch is how many keys one transaction restores.
	repairBatch = 50
	// stepsBack bounds how many unreadable values of one key are skipped.
	stepsBack = 10
	// goneKept is for how long a record that is declared gone is remembered, like those that a
	// leader has deleted.
	goneKept = 7 * 24 * time.Hour
)

// Run shows the damage, and repairs it after confirmation.
func (c *Repair) Run(ctx context.Context, inv *Invocation) error {
	if err := inv.onlyShows(c.Confirm); err != nil {
		return err
	}
	switch {
	case c.At < 0:
		return failure(Usage, "leasehold repair --help", "--at: %d: must be a revision", c.At)
	case c.Forget && (len(c.Key) == 0 || c.At != 0):
		return failure(Usage, "leasehold repair --help", "--forget: needs the names of the records, and no --at")
	}
	found, err := inv.damage(ctx, store.Revision(c.At))
	if err != nil {
		return err
	}
	if found, err = c.chosen(inv, found); err != nil {
		return err
	}
	if done, err := inv.records(found); done || err != nil {
		return err
	}
	if len(found) == 0 {
		if c.At != 0 {
			inv.note("everything that was there at revision %d is there now, or was deleted on purpose; "+
				"leasehold repair shows what else is damaged", c.At)
			return nil
		}
		inv.note("nothing is damaged")
		return nil
	}
	if err := showRepairs(inv, found, c.Forget); err != nil {
		return err
	}
	if c.Forget {
		return inv.forget(ctx, c, found)
	}
	able := slices.DeleteFunc(slices.Clone(found), func(r repair) bool { return r.From == 0 })
	if n := len(found) - len(able); n > 0 {
		inv.warn("%s cannot be restored from etcd's history: apply a group again; for the shard and its instances, "+
			"see leasehold recover --help, or declare an instance's record lost with --forget", counted(n, "key", "keys"))
	}
	if len(able) == 0 {
		return nil
	}
	act := fmt.Sprintf("write back %s of shard %s", counted(len(able), "key", "keys"), inv.flags.Shard)
	if err := inv.confirm(ctx, c.Confirm, inv.flags.Shard, act); err != nil {
		return err
	}
	return inv.putBack(ctx, able)
}

// chosen returns the keys that were named.
func (c *Repair) chosen(inv *Invocation, found []repair) ([]repair, error) {
	if len(c.Key) == 0 {
		return slices.DeleteFunc(found, func(r repair) bool { return r.doubtful }), nil
	}
	var chosen []repair
	for _, name := range c.Key {
		key := name
		if !strings.HasPrefix(name, store.Root) {
			key = inv.keys().Prefix() + name
		}
		i := slices.IndexFunc(found, func(r repair) bool { return r.Key == key })
		if i < 0 {
			return nil, failure(NotFound, "leasehold repair",
				"%s is not known to be damaged: it can be read, or no other record refers to it; to inspect an older state: "+
					"--at REVISION", name)
		}
		chosen = append(chosen, found[i])
	}
	return chosen, nil
}

func showRepairs(inv *Invocation, found []repair, forget bool) error {
	t := output.Table{Columns: []output.Column{
		{Title: "KEY"},
		{Title: "DAMAGE"},
		{Title: "WOULD BE"},
		{Title: "WHY", Cut: true},
	}}
	for _, r := range found {
		would := "restored from rev " + revision(r.From)
		switch {
		case forget:
			would = "declared lost"
		case r.From == 0:
			would = "left unchanged"
		}
		t.Add(strings.TrimPrefix(r.Key, inv.keys().Prefix()), r.What, would, orDash(r.Why))
	}
	return t.Write(inv.screen(), inv.wide())
}

// damage finds what was lost or cannot be read: from the leader and the statuses or, with a
// revision, from the content at that revision.
func (inv *Invocation) damage(ctx context.Context, at store.Revision) ([]repair, error) {
	now, err := inv.durable(ctx, 0)
	if err != nil {
		return nil, err
	}
	gone, err := inv.goneNotes(ctx, now.revision)
	if err != nil {
		return nil, err
	}
	if at != 0 {
		return inv.damageSince(ctx, at, now, gone)
	}
	found, err := inv.spoiled(ctx, now)
	if err != nil {
		return nil, err
	}
	lost, err := inv.lostRecords(ctx, now, gone)
	if err != nil {
		return nil, err
	}
	return sortedRepairs(append(found, lost...)), nil
}

// durableKeys are the state at one revision that cannot be derived from anything else.
type durableKeys struct {
	revision store.Revision
	kvs      map[string]store.KV
}

func (inv *Invocation) durable(ctx context.Context, at store.Revision) (durableKeys, error) {
	d := durableKeys{revision: at, kvs: map[string]store.KV{}}
	keys := inv.keys()
	for _, kind := range store.DurableKinds() {
		prefix := keys.Of(kind)
		if kind == store.KindShard || kind == store.KindServed {
			prefix = strings.TrimSuffix(prefix, "/")
		}
		l, err := inv.list(ctx, prefix, d.revision)
		if err != nil {
			return d, err
		}
		d.revision = l.Revision
		for _, kv := range l.KVs {
			if k, _, ok := keys.Split(kv.Key); ok && k == kind {
				d.kvs[kv.Key] = kv
			}
		}
	}
	return d, nil
}

// goneNotes returns the keys that were deleted on purpose, and when.
func (inv *Invocation) goneNotes(ctx context.Context, at store.Revision) (map[string]store.Revision, error) {
	l, err := inv.list(ctx, inv.keys().Of(store.KindGone), at)
	if err != nil {
		return nil, err
	}
	gone := map[string]store.Revision{}
	for _, kv := range l.KVs {
		_, name, _ := inv.keys().Split(kv.Key)
		gone[inv.keys().OfGone(name)] = kv.Modified
	}
	return gone, nil
}

// spoiled returns the keys whose values cannot be read, each with its newest readable value.
func (inv *Invocation) spoiled(ctx context.Context, now durableKeys) ([]repair, error) {
	var found []repair
	for key, kv := range now.kvs {
		bad := inv.keys().Readable(kv)
		if bad == nil {
			continue
		}
		r := repair{Key: key, What: store.DamageUnreadable, Why: unreadable(key, bad), now: kv.Modified}
		for at, step := kv.Modified-1, 0; at > 0 && step < stepsBack; step++ {
			before, err := inv.keyAt(ctx, key, at)
			if err != nil {
				return nil, err
			}
			if before.Modified == 0 {
				break
			}
			if inv.keys().Readable(before) == nil {
				r.From, r.value = before.Modified, before.Value
				break
			}
			at = before.Modified - 1
		}
		found = append(found, r)
	}
	return found, nil
}

// unreadable returns why a value cannot be read, without the key, which is shown beside it.
func unreadable(key string, bad error) string {
	return strings.TrimPrefix(joined(bad), "read "+key+": ")
}

// lostRecords returns the records that a status reports as lost, and the shard's own, each with its
// last value.
func (inv *Invocation) lostRecords(ctx context.Context, now durableKeys, gone map[string]store.Revision) (
	[]repair, error,
) {
	var found []repair
	add := func(r repair, last store.Revision) error {
		if _, there := now.kvs[r.Key]; there || gone[r.Key] != 0 {
			return nil
		}
		if last <= now.revision { // a later revision belongs to the history of an etcd that was lost
			kv, err := inv.keyAt(ctx, r.Key, last)
			if err != nil {
				return err
			}
			r.From, r.value = kv.Modified, kv.Value
		}
		found = append(found, r)
		return nil
	}
	for key, kv := range now.kvs {
		kind, group, _ := inv.keys().Split(key)
		if kind != store.KindStatus {
			continue
		}
		status, err := store.Decode[store.Status](kv)
		if err != nil {
			continue // it is among the spoiled keys
		}
		if r, lost := inv.lostSpec(group, status, now, gone); lost {
			found = append(found, r)
		}
		for _, d := range status.Record.Damaged {
			if d.What != store.DamageLost {
				continue
			}
			if err := add(repair{Key: d.Key, What: d.What, Why: d.Why, group: group}, d.Last); err != nil {
				return nil, err
			}
		}
	}
	waits, err := inv.waits(ctx)
	if err == nil && waits != nil {
		err = add(repair{Key: inv.keys().Shard(), What: store.DamageLost, Why: waits.Why}, waits.Highest)
	}
	return found, err
}

// lostSpec returns the key of a group that is gone although its spec is in force. It is restored
// from the status, which survives the loss of etcd's history and of the key.
func (inv *Invocation) lostSpec(name string, status store.Versioned[store.Status], now durableKeys,
	gone map[string]store.Revision,
) (repair, bool) {
	key := inv.keys().Group(name)
	_, there := now.kvs[key]
	_, static := now.kvs[inv.keys().Static(name)]
	spec := status.Record.Accepted
	// a note from before the spec was accepted is about an earlier group of that name
	deleted := max(gone[key], gone[inv.keys().Static(name)]) > status.Record.AcceptedRevision
	if there || static || spec == nil || spec.Deleting || status.Record.Beside != nil || deleted {
		return repair{}, false
	}
	return repair{
		Key: key, What: store.DamageLost, Why: "the key is gone without an order to delete it; " +
			"its status holds the spec in force",
		From: status.Modified, value: store.Encode(*spec), group: name,
	}, true
}

// waits returns the report of a replica that waits for its shard; nil if none does.
func (inv *Invocation) waits(ctx context.Context) (*store.Waits, error) {
	l, err := inv.list(ctx, inv.keys().Of(store.KindReplicas), 0)
	if err != nil {
		return nil, err
	}
	var known *store.Waits
	for _, kv := range l.KVs {
		r, err := store.Decode[store.Replica](kv)
		if err != nil || r.Record.Waits == nil || r.Record.Waits.ShardID == "" {
			continue
		}
		if known == nil || r.Record.Waits.Highest > known.Highest {
			known = r.Record.Waits
		}
	}
	return known, nil
}

// damageSince returns what could be read at a revision and is lost or spoiled now.
func (inv *Invocation) damageSince(ctx context.Context, at store.Revision, now durableKeys,
	gone map[string]store.Revision,
) ([]repair, error) {
	if at > now.revision {
		return nil,
			failure(NotFound,
				"leasehold status; restore a snapshot of the lost etcd with etcdutl, or without one see leasehold recover --help",
				"etcd has no revision %d yet: it is at %d, so this is not the etcd with the lost history", at,
				now.revision)
	}
	then, err := inv.durable(ctx, at)
	if errors.Is(err, store.ErrCompacted) {
		return nil, compacted(at)
	}
	if err != nil {
		return nil, err
	}
	var found []repair
	for key, before := range then.kvs {
		if inv.keys().Readable(before) != nil {
			continue
		}
		after, there := now.kvs[key]
		switch {
		case !there && gone[key] > at:
			continue // deleted on purpose since
		case !there:
			kind, id, _ := inv.keys().Split(key)
			if kind == store.KindJoined && gone[inv.keys().Instance(id)] > at {
				continue // it was deleted with its instance
			}
			found = append(found, repair{
				// its deletion leaves no note
				Key: key, What: store.DamageLost, From: before.Modified, value: before.Value,
				doubtful: kind == store.KindSecrets,
			})
		default:
			if bad := inv.keys().Readable(after); bad != nil {
				found = append(found, repair{
					Key: key, What: store.DamageUnreadable, Why: unreadable(key, bad),
					From: before.Modified, value: before.Value, now: after.Modified,
				})
			}
		}
	}
	return sortedRepairs(found), nil
}

func compacted(at store.Revision) error {
	return failure(NotFound,
		"give a newer revision, or restore a snapshot with etcdutl; without either see leasehold recover --help",
		"etcd's history no longer reaches back to revision %d", at)
}

func sortedRepairs(found []repair) []repair {
	slices.SortFunc(found, func(a, b repair) int { return strings.Compare(a.Key, b.Key) })
	return found
}

// keyAt returns a key as it was at a revision; the zero KV if it was absent, or if etcd's history
// does not reach back so far.
func (inv *Invocation) keyAt(ctx context.Context, key string, at store.Revision) (store.KV, error) {
	if at <= 0 {
		return store.KV{}, nil
	}
	var found store.KV
	err := inv.parts(ctx, key, key, 1, at, func(part store.Part) bool {
		if len(part.KVs) > 0 && part.KVs[0].Key == key {
			found = part.KVs[0]
		}
		return false
	})
	if errors.Is(err, store.ErrCompacted) {
		return store.KV{}, nil
	}
	return found, err
}

// putBack writes the values, each only over the value that was read.
func (inv *Invocation) putBack(ctx context.Context, all []repair) error {
	written := 0
	for part := range slices.Chunk(all, repairBatch) {
		var txn store.Txn
		for _, r := range part {
			txn.Conditions = append(txn.Conditions, store.At(r.Key, r.now))
			// an old note is about another record
			txn.Writes = append(txn.Writes, store.Put(r.Key, r.value), store.Delete(inv.keys().Gone(r.Key)))
		}
		rev, err := inv.commit(ctx, "put records back", txn)
		if errors.Is(err, store.ErrConflict) {
			return failure(Conflict, "leasehold repair shows what is left",
				"a key has changed in the meantime; %d of %d keys were restored", written, len(all))
		}
		if err != nil {
			return err
		}
		written += len(part)
		for _, r := range part {
			fmt.Fprintf(inv.env.Stdout, "%s restored rev %d\n", strings.TrimPrefix(r.Key, inv.keys().Prefix()), rev)
		}
	}
	inv.note("if the shard is on hold: leasehold status, then leasehold release")
	return nil
}

// forget declares records gone, by the note that a leader leaves when it deletes one. The note has
// the present revision, so that it covers everything that still refers to them.
func (inv *Invocation) forget(ctx context.Context, c *Repair, all []repair) error {
	notes, err := inv.list(ctx, inv.keys().Of(store.KindGone), 0)
	if err != nil {
		return err
	}
	for _, r := range all {
		name := r.Key[strings.LastIndex(r.Key, "/")+1:]
		act := fmt.Sprintf("%s is declared lost for good: if its machine exists, its workload is stopped and it is "+
			"removed", name)
		if err := inv.confirm(ctx, c.Confirm, name, act); err != nil {
			return err
		}
		note := store.Gone{
			Schema: store.Schema, Revision: notes.Revision, Rule: "SAFE-16", Why: "declared gone",
			By: inv.who(), At: inv.env.Now().UTC(),
		}
		if kind, id, _ := inv.keys().Split(r.Key); kind == store.KindInstances {
			note.Instance = id
			note.Group = r.ofGroup(id)
		}
		var rev store.Revision
		err := inv.ask(ctx, "declare it gone", "write "+inv.keys().Gone(r.Key),
			func(ctx context.Context, st store.Store) error {
				lease, err := st.Grant(ctx, goneKept)
				if err != nil {
					return err
				}
				txn := store.Txn{
					Conditions: []store.Condition{store.At(r.Key, r.now)},
					Writes:     []store.Write{store.PutLeased(inv.keys().Gone(r.Key), store.Encode(note), lease.ID)},
				}
				if r.now != 0 {
					txn.Writes = append(txn.Writes, store.Delete(r.Key))
				}
				rev, err = st.Commit(ctx, txn)
				return err
			})
		if errors.Is(err, store.ErrConflict) {
			return failure(Conflict, "leasehold repair", "%s has changed in the meantime, and was left unchanged", name)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(inv.env.Stdout, "%s declared lost rev %d\n", name, rev)
	}
	return nil
}

// ofGroup returns the group of an instance: the leader counts its record as gone there. Its ID may
// name none, or another.
func (r repair) ofGroup(id string) string {
	if v, err := store.Decode[store.Instance](store.KV{Key: r.Key, Value: r.value}); err == nil &&
		v.Record.Group != "" {
		return v.Record.Group
	}
	if r.group != "" {
		return r.group
	}
	group, _, _, _ := store.PlaceOf(id)
	return group
}
