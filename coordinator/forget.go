package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold/store"
)

const (
	forgetPart  = 1_000                 // entries that one request reads
	forgetFor   = store.ServedEvery / 4 // notes of later leaders wait meanwhile
	forgetPause = 5 * time.Minute       // after a failure
)

// errOlder means that etcd was restored since its revision was last asked for.
var errOlder = errors.New("etcd's revision went backwards")

// onJournalLease are the kinds of which a pass deletes what is overdue.
var onJournalLease = []string{store.KindEvents, store.KindLoads}

// forgetting is a pass over the journal, and over the loads that are on its leases, that revokes
// the leases of overdue entries. It continues from tick to tick, so that a journal of any size is
// passed in time.
type forgetting struct {
	before store.Revision // entries of before are overdue; 0: no pass is under way
	kind   int            // of onJournalLease
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
		f.before, f.kind, f.from, f.ended = before, 0, "", map[store.LeaseID]bool{0: true}
	}
	for {
		// The marks are gone if etcd has another past since the pass began, and longer retention
		// makes less overdue: then its revision proves nothing.
		if before, due := s.journal.due(s.t.r.journal.lasts()); !due || before < f.before {
			s.forgetting = forgetting{}
			return
		}
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
		case f.from == "" && f.kind+1 < len(onJournalLease):
			f.kind++
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

// forgetPart forgets from the next part of the journal. After an error it repeats the same part.
func (s *serving) forgetPart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, store.ServedEvery/2)
	defer cancel()
	f := &s.forgetting
	// each part at the newest revision: what is overdue does not change, and a pass may take long
	prefix := s.t.r.keys.Of(onJournalLease[f.kind])
	part, err := s.t.r.deps.Store.ListPart(ctx, prefix, f.from, forgetPart, 0)
	if err != nil {
		return err
	}
	if part.Revision < s.revision {
		return errOlder
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
