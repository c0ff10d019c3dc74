package coordinator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

const (
	lookEvery = time.Minute // how often the age of etcd's history is checked
	tookKept  = 6           // notes whose duration is known: one minute of them
)

// serving is what a term writes into served for later leaders: that it works (SAFE-13), in which
// etcd (SAFE-12), and how old etcd's revisions are.
type serving struct {
	t       *term
	read    bool // written by the previous leader
	cluster string
	// revision is etcd's when it was last asked: it only goes back if etcd has been replaced.
	revision store.Revision
	since    time.Time // the start of the journal
	history  history
	journal  history   // from longer ago
	counted  time.Time // when age was last called
	looked   time.Time
	failed   string // why old history could not be compacted; "" if it could
	damaged  bool   // failed is damage that history can repair
	seen     []store.SeenReplica
	took     []time.Duration // the time that the last notes took

	forgetting forgetting // overdue journal entries
}

// keepServed records regularly that a leader works, and bounds etcd's history. Nothing in it ends
// the term.
func (t *term) keepServed(ctx context.Context) {
	s := &serving{t: t, counted: time.Now()}
	tick := time.NewTicker(store.ServedEvery)
	defer tick.Stop()
	for {
		s.note(ctx)
		s.checkHistory(ctx)
		s.forgetEntries(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// note writes the record.
func (s *serving) note(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, store.ServedEvery/2)
	defer cancel()
	if !s.takeUp(ctx) {
		return // an unknown record is not overwritten
	}
	rec := store.Served{
		Schema: store.Schema, At: time.Now().UTC(), Replica: s.t.r.cfg.ID,
		Gaps: s.t.evidence.ServedGaps(), Uncompacted: s.failed,
		KeptForRepair: s.damaged && s.failed != "",
	}
	s.t.mu.Lock()
	rec.Silent = slices.Clone(s.t.silent)
	s.t.mu.Unlock()
	if v, err := s.t.r.askVitals(ctx); err == nil { // a slow answer must not delay the note
		s.age(v)
	}
	rec.Cluster, rec.Revision = s.cluster, s.revision // without an answer, the earlier value stays
	s.await(rec.At)
	rec.History, rec.Journal, rec.Since = s.history.record(), s.journal.record(), s.since
	s.seen = store.SeeReplicas(s.seen, s.t.replicas(), rec.At)
	rec.Replicas = s.seen
	if len(s.took) == tookKept {
		rec.Took = store.Duration(slices.Min(s.took).Round(time.Millisecond))
	}
	began := time.Now()
	rec.At = began.UTC() // other replicas compare their clocks with it
	rec.Past, rec.Claimed, rec.Even = s.t.past.record(began, s.t.clocksApart())
	_, err := s.t.r.deps.Store.Commit(ctx, store.Txn{
		Conditions: []store.Condition{s.t.fence.Condition()},
		Writes:     []store.Write{store.Put(s.t.r.keys.Served(), store.Encode(rec))},
	})
	s.took = append(s.took, time.Since(began))
	s.took = s.took[max(0, len(s.took)-tookKept):]
	if err != nil && ctx.Err() == nil {
		s.t.log.Debug("served not noted", "error", err)
	}
}

// replicas returns the replicas that run now.
func (t *term) replicas() (all []store.Replica) {
	t.r.cache.View(func(c *cache.Content) {
		for _, r := range c.Replicas {
			all = append(all, r.Record)
		}
	})
	return all
}

// takeUp reads what the previous leader wrote. The time since then does not count.
func (s *serving) takeUp(ctx context.Context) bool {
	if s.read {
		return true
	}
	kv, err := s.t.r.deps.Store.Get(ctx, s.t.r.keys.Served())
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false
	}
	v, err := store.Decode[store.Served](kv)
	if err != nil && kv.Modified != 0 {
		if v, err = s.restore(ctx, kv, err); err != nil {
			return false
		}
	}
	if err == nil {
		s.seen = v.Record.Replicas
		s.cluster, s.history.marks, s.journal.marks, s.failed = v.Record.Cluster, v.Record.History, v.Record.Journal,
			v.Record.Uncompacted
		s.revision, s.since = v.Record.Revision, v.Record.Since
	}
	if !v.Present() { // a new shard, one restored from a backup, or a record that is lost
		s.since = time.Now().UTC()
	}
	s.read, s.counted = true, time.Now()
	s.t.past.takeUp(v.Record, s.counted)
	return true
}

// clocksApart reports whether the replicas' clocks differ by too much to rely on one.
func (t *term) clocksApart() (apart bool) {
	t.r.cache.View(func(c *cache.Content) { apart = evidence.ClocksApart(c) >= plan.ClocksApart })
	return apart
}

// heldSoon is how soon after a restore the shard is put on hold for it.
const heldSoon = 10 * time.Minute

// await keeps the shard on hold after a restore, and moves its time forward: the records describe
// the moment of the backup, and nothing is decided from what has become of the machines since.
func (s *serving) await(now time.Time) {
	s.t.r.cache.View(func(c *cache.Content) {
		h := c.Shard.Record.Hold
		held := h != nil && h.At.Before(s.since.Add(heldSoon))
		if held || s.since.After(now) { // or a clock was ahead when etcd was restored
			s.since = now
		}
	})
}

// restore recovers what an unreadable record said, from memory or from its previous revision. If
// neither is available, the shard is held before the record is overwritten. A record of a newer
// program is never overwritten (SAFE-16).
func (s *serving) restore(ctx context.Context, kv store.KV, why error) (v store.Versioned[store.Served], err error) {
	r := s.t.r
	if !errors.Is(why, store.ErrSchema) {
		r.cache.View(func(c *cache.Content) { v = c.Served })
		if v.Present() {
			return v, nil
		}
		old, err := r.before(ctx, kv.Key, kv.Modified)
		if err != nil {
			return v, err
		}
		if v, err = store.Decode[store.Served](old); err == nil && v.Present() {
			return v, nil
		}
	}
	if err := r.hold(ctx, holdUnlessHeld, "what etcd was when a leader was last at work cannot be read: "+why.Error(),
		[]store.Condition{s.t.fence.Condition()}); err != nil {
		return v, err
	}
	if errors.Is(why, store.ErrSchema) {
		return v, why
	}
	return store.Versioned[store.Served]{}, nil
}

// age adds the time since its last call, and marks the present revision. The revision was read
// before, so no mark appears older than it is.
func (s *serving) age(v store.Vitals) {
	now := time.Now()
	s.history.pass(now.Sub(s.counted))
	s.journal.pass(now.Sub(s.counted))
	s.counted = now
	if s.cluster != "" && s.cluster != v.ClusterName() || v.Revision < s.revision {
		// revisions of another past mean nothing in this one, also to a pass that is under way
		s.history, s.journal, s.forgetting = history{}, history{}, forgetting{}
		s.since = now.UTC()
	}
	s.cluster, s.revision = v.ClusterName(), v.Revision
	s.journal.note(v.Revision, s.t.r.journal.lasts())
	keep := s.t.compactAfter()
	if keep == 0 {
		s.history, s.failed = history{}, ""
		return
	}
	s.history.note(v.Revision, keep)
}

// checkHistory checks how much history etcd keeps, and compacts what is too old unless something
// else does. That needs no fence: what was old enough when it was chosen only becomes older.
func (s *serving) checkHistory(ctx context.Context) {
	keep := s.t.compactAfter()
	if time.Since(s.looked) < min(lookEvery, keep/marksEach) {
		return
	}
	s.looked = time.Now()
	call, cancel := context.WithTimeout(ctx, store.ServedEvery/2)
	defer cancel()
	oldest, known, err := s.findOldest(call)
	s.t.kept.Store(int64(oldest.Age))
	if err != nil || !known {
		return // etcd did not answer
	}
	before, due := s.history.due(keep)
	if !due {
		s.failed = ""
		return
	}
	damage := s.t.damage()
	if s.damaged = damage != ""; s.damaged {
		s.failed = damage
		return
	}
	err = s.t.r.deps.Store.Compact(call, before)
	if err == nil || errors.Is(err, store.ErrCompacted) {
		s.t.log.Debug("etcd's history compacted", "before", int64(before), "kept", keep.String())
		s.failed = ""
		return
	}
	if ctx.Err() == nil {
		s.reportFailed(ctx, oldest.Age.D(), keep, err)
	}
}

// damage returns why etcd's history must not be compacted now; "" if it may be (SAFE-15).
func (t *term) damage() (why string) {
	t.r.cache.View(func(c *cache.Content) { why = t.evidence.Damaged(c) })
	return why
}

// findOldest returns the oldest mark that etcd still keeps, and drops those that were compacted.
func (s *serving) findOldest(ctx context.Context) (m store.Mark, known bool, err error) {
	for {
		if m, known = s.history.oldest(); !known {
			return m, false, nil
		}
		_, err := s.t.r.deps.Store.List(ctx, s.t.r.keys.Served(), m.Revision) // any key will do
		if !errors.Is(err, store.ErrCompacted) {
			return m, err == nil, err
		}
		s.history.gone()
	}
}

// reportFailed reports that history cannot be compacted: at once if the right is missing, which
// does not resolve itself, and otherwise when history is twice as old as it should be. It is
// reported once across leaders.
func (s *serving) reportFailed(ctx context.Context, age, keep time.Duration, err error) {
	why := "etcd does not do it: " + err.Error()
	switch {
	case errors.Is(err, store.ErrDenied):
		why = "with authentication on, etcd lets only root do it, and coordinators are not root"
	case age < 2*keep:
		return // it may succeed next time
	}
	if s.failed != "" {
		s.failed = why
		return
	}
	s.failed = why
	s.t.log.Warn("etcd's history is not compacted: its database grows until it is full", "kept", age.String(), "why",
		why, "next", "start etcd with --auto-compaction-retention="+keep.String())
	s.t.writeJournal(ctx, store.JournalEntry{
		Rule: "OBS-1", What: "etcd's history is not compacted", Why: why,
		Facts: []store.Fact{{Kind: store.FactKeptHistory, For: store.Duration(age.Round(time.Second))}},
	})
}

// compactAfter is how old etcd's history becomes; 0: compaction is not this shard's business. An
// etcd of Leasehold's own has no other compactor: without one it grows until it is full.
func (t *term) compactAfter() time.Duration {
	if keep := t.settings().CompactAfter.D(); keep > 0 || !t.r.cfg.OwnEtcd {
		return keep
	}
	return store.DefaultShardSettings().CompactAfter.D()
}
