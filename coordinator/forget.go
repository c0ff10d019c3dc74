package coordinator

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/store"
)

const (
	forgetPart  = 1_000           // entries that one request reads
	forgetFor   = servedEvery / 4 // notes of later leaders wait meanwhile
	forgetPause = 5 * time.Minute // after a failure
)

// forgetting is a pass over the journal that revokes the leases of overdue entries. It continues
// from tick to tick, so that a journal of any size is passed in time.
type forgetting struct {
	before store.Revision // entries of before are overdue; 0: no pass is under way
	from   string         // the first key of the next part
	ended  map[store.LeaseID]bool
	retry  time.Time // after a failure
	failed bool      // a warning was logged, and nothing has succeeded since
}

// forgetEntries revokes the leases of overdue entries. A lease restarts whenever etcd changes its
// leader or restarts; if that happens more often than entries are kept, none would ever expire. As
// with compaction, no fence is needed.
func (s *serving) forgetEntries(ctx context.Context) {
	f, begun := &s.forgetting, time.Now()
	if begun.Before(f.retry) {
		return
	}
	if f.before == 0 {
		before, due := s.journal.due(s.t.r.journal.lasts())
		if !due {
			return
		}
		f.before, f.from, f.ended = before, "", map[store.LeaseID]bool{0: true}
	}
	for {
		err := s.forgetPart(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return
		case err != nil:
			f.retry = time.Now().Add(forgetPause)
			if !f.failed {
				s.t.log.Warn("overdue journal entries are kept: they could not be deleted", "error", err, "next",
					"tried again every "+forgetPause.String())
			}
			f.failed = true
			return
		case f.from == "":
			for m, known := s.journal.oldest(); known && m.Revision < f.before; m, known = s.journal.oldest() {
				s.journal.gone()
			}
			s.forgetting = forgetting{}
			return
		case time.Since(begun) >= forgetFor:
			return
		}
	}
}

// forgetPart does so for the next part of the journal. After an error the same part is next.
func (s *serving) forgetPart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, servedEvery/2)
	defer cancel()
	f := &s.forgetting
	// each part at the newest revision: what is overdue does not change, and a pass may take long
	part, err := s.t.r.deps.Store.ListPart(ctx, s.t.r.keys.Of(store.KindEvents), f.from, forgetPart, 0)
	if err != nil {
		return err
	}
	for _, kv := range part.KVs {
		if kv.Modified >= f.before || f.ended[kv.Lease] {
			continue
		}
		if err := s.t.r.deps.Store.Revoke(ctx, kv.Lease); err != nil {
			return err
		}
		f.ended[kv.Lease] = true
	}
	f.from = part.Next
	return nil
}
