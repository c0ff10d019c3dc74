package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

const (
	farthest = 366 * 24 * time.Hour // events_kept can be a year
	nearest  = time.Minute          // older entries are left out even then
	partSize = 1_000
	answer   = 10 * time.Second // for one request
	retry    = 2 * time.Second
)

// Run follows the journal until ctx ends. A failure of the store only delays it.
func (m *Memory) Run(ctx context.Context, s store.Store) error {
	for {
		_ = m.follow(ctx, s) // the cache reports that etcd cannot be reached: it is followed in the same way
		wait := time.NewTimer(retry)
		select {
		case <-ctx.Done():
			wait.Stop()
			return context.Cause(ctx)
		case <-wait.C:
		}
	}
}

// follow reads the journal and what is added to it, until that fails.
func (m *Memory) follow(ctx context.Context, s store.Store) error {
	at, err := m.list(ctx, s)
	if err != nil {
		return err
	}
	err = store.Changes(ctx, s, m.keys.Of(store.KindEvents), at+1, func(b store.Batch) error {
		m.apply(b.Events)
		return nil
	})
	return fmt.Errorf("watch the journal: %w", err)
}

// list reads the newest entries, and returns the revision.
func (m *Memory) list(ctx context.Context, s store.Store) (store.Revision, error) {
	from, since, err := m.start(ctx, s)
	if err != nil {
		return 0, err
	}
	var entries []Entry
	at := store.Revision(0)
	for {
		part, err := m.part(ctx, s, from, partSize, at)
		if err != nil {
			return 0, err
		}
		at = part.Revision
		for _, kv := range part.KVs {
			if e, err := m.decode(kv); err == nil {
				entries = append(entries, e)
			}
		}
		if part.Next == "" {
			break
		}
		from = part.Next
	}
	m.begin(entries, since)
	return at, nil
}

// start returns the key from which on there are no more entries than are kept, and its time: zero
// if that is all of them. The store counts them, so that no more are read.
func (m *Memory) start(ctx context.Context, s store.Store) (from string, since time.Time, err error) {
	all, err := m.part(ctx, s, "", 1, 0)
	if err != nil || len(all.KVs)+all.Behind <= m.most {
		return "", time.Time{}, err
	}
	now := time.Now()
	for back := farthest; ; back /= 2 {
		since = now.Add(-back)
		from = m.keys.EventsFrom(since)
		part, err := m.part(ctx, s, from, 1, 0)
		if err != nil {
			return "", since, err
		}
		if len(part.KVs)+part.Behind <= m.most || back < nearest {
			return from, since, nil
		}
	}
}

func (m *Memory) part(ctx context.Context, s store.Store, from string, most int, at store.Revision) (store.Part,
	error,
) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	part, err := s.ListPart(ctx, m.keys.Of(store.KindEvents), from, most, at)
	if err != nil {
		return part, fmt.Errorf("read the journal: %w", err)
	}
	return part, nil
}
