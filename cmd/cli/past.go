package cli

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// past reads what is known of a time span: the journal, from some time before it on; the present
// state; and, for what the journal no longer has, the summaries of days. It also returns the
// revision of the present state.
func (inv *Invocation) past(ctx context.Context, from, to time.Time) (in review.Input, at store.Revision, err error) {
	shard, err := inv.readShard(ctx)
	if err != nil {
		return in, 0, err
	}
	begins, err := inv.pastBegins(ctx, shard.Record)
	if err != nil {
		return in, 0, err
	}
	in = review.Input{
		From: from, To: to, Created: begins,
		Kept: shard.Record.Settings.WithDefaults().EventsKept.D(),
	}
	err = inv.appendOnly(ctx, store.KindEvents, inv.keys().EventsFrom(from.Add(-review.Before)), func(kv store.KV) error {
		if e, err := store.Decode[store.JournalEntry](kv); err == nil { // status names those that cannot be read
			in.Entries = append(in.Entries, review.Slim(e.Record))
		}
		return nil
	})
	if err != nil {
		return in, 0, err
	}
	listing, err := inv.list(ctx, inv.keys().Of(store.KindInstances), 0)
	if err != nil {
		return in, 0, err
	}
	in.Instances = readable[store.Instance](listing.KVs)
	if !from.Before(to.Add(-in.Kept)) && !from.Before(in.Created) {
		return in, listing.Revision, nil
	}
	err = inv.appendOnly(ctx, store.KindDays, inv.keys().DayDone(from.UTC().Format(store.DayLayout)),
		func(kv store.KV) error {
			if d, err := store.Decode[store.Day](kv); err == nil && d.Record.Group != "" { // else it is the note of the day
				in.Days = append(in.Days, d.Record)
			}
			return nil
		})
	return in, listing.Revision, err
}

// pastBegins returns the time from which the journal is meaningful: the time before a restore is
// unknown.
func (inv *Invocation) pastBegins(ctx context.Context, shard store.Shard) (time.Time, error) {
	spoiled := map[string]error{} // status names it
	served, _, err := findShown[store.Served](ctx, inv, inv.keys().Served(), spoiled)
	return served.Record.Begins(shard), err
}

// appendOnly reads the keys of a kind in parts, from one key on. Their values do not change once
// they are written, so it may continue at a later revision when etcd has compacted the first. No
// number of keys is too large.
func (inv *Invocation) appendOnly(ctx context.Context, kind, from string, take func(store.KV) error) error {
	for {
		var wrong error
		err := inv.parts(ctx, inv.keys().Of(kind), from, partOfPast, 0, func(part store.Part) bool {
			for _, kv := range part.KVs {
				if wrong = take(kv); wrong != nil {
					return false
				}
			}
			from = part.Next
			return true
		})
		if wrong != nil || !errors.Is(err, store.ErrCompacted) {
			return cmp.Or(wrong, err)
		}
	}
}

// partOfPast is how many keys one request reads.
const partOfPast = 2_000

// readable returns the records that can be read.
func readable[T any](kvs []store.KV) []T {
	all := make([]T, 0, len(kvs))
	for _, kv := range kvs {
		if v, err := store.Decode[T](kv); err == nil {
			all = append(all, v.Record)
		}
	}
	return all
}
