package cli

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// past reads what is known of a span: the journal, from some time before it on, what is there now
// and, for what the journal no longer has, the summaries of days. It also returns the revision.
func (s *Session) past(ctx context.Context, from, to time.Time) (in review.Input, at store.Revision, err error) {
	shard, err := s.readShard(ctx)
	if err != nil {
		return in, 0, err
	}
	in = review.Input{
		From: from, To: to, Created: shard.Record.Created,
		Kept: shard.Record.Settings.WithDefaults().EventsKept.D(),
	}
	err = atOneRevision(0, func() error {
		in.Entries = nil
		return s.parts(ctx, s.keys().Of(store.KindEvents), s.keys().EventsFrom(from.Add(-review.Before)), partOfPast, 0,
			func(part store.Part) bool {
				at = part.Revision
				for _, e := range readable[store.JournalEntry](part.KVs) { // status names those that cannot be read
					in.Entries = append(in.Entries, review.Slim(e))
				}
				return true
			})
	})
	if err != nil {
		return in, 0, err
	}
	listing, err := s.list(ctx, s.keys().Of(store.KindInstances), at)
	if err != nil {
		return in, 0, err
	}
	in.Instances = readable[store.Instance](listing.KVs)
	if !from.Before(to.Add(-in.Kept)) {
		return in, at, nil
	}
	err = s.parts(ctx, s.keys().Of(store.KindDays), s.keys().DayDone(from.UTC().Format(store.DayLayout)), partOfPast, 0,
		func(part store.Part) bool {
			for _, d := range readable[store.Day](part.KVs) {
				if d.Group != "" { // else it is the note that the day is summed up
					in.Days = append(in.Days, d)
				}
			}
			return true
		})
	return in, at, err
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
