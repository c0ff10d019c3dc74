package gateway

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// stray is an agent without a record, as this replica has noted it.
type stray struct {
	at      time.Time
	claimed bool // with a claim
}

// Limits on the writes that agents without a record, and unwanted boots, can cause (SEC-5).
const (
	maxStrays     = 1000    // agents without a record
	maxClaimed    = 200_000 // those with a claim: they are our machines, and all records may be lost
	strayRate     = 500     // per second; the others are noted when they return
	strayBurst    = 1000
	strayAgain    = strayTTL / 7 // interval at which one is noted again, on a lease that lasts longer
	strayLeaseFor = time.Hour    // strays of this much time share a lease
	maxConflicts  = 1000         // within conflictEvery
	maxUnnoted    = 100_000      // agents that are counted, at 100 bytes each
	unnotedFor    = 10 * time.Minute
)

// noteStray records an agent without a record, so that its machine is not taken for an orphan and
// can be recognized (REC-8, SAFE-17).
func (g *Gateway) noteStray(ctx context.Context, s *session) {
	noted := false
	g.deps.Cache.View(func(c *cache.Content) {
		rec, ok := c.Strays[s.instance]
		noted = ok && rec.Record.BootID == s.bootID && time.Since(rec.Record.At) < strayAgain &&
			(rec.Record.Claim != nil || !s.hasClaim())
	})
	if noted {
		return // by us or by another replica
	}
	known := s.shownClaim()
	if full := g.countStray(s.instance, known != nil); full {
		if g.countUnnoted(s.instance) {
			g.deps.Logger.Warn("stray agent not recorded: there are too many", "instance", s.instance, "from", s.from())
		}
		return
	}
	if !g.strayPace.Allow() {
		return // it returns
	}
	if err := g.putStray(ctx, s, known); err != nil {
		if !errors.Is(err, store.ErrConflict) {
			g.deps.Logger.Warn("stray agent could not be recorded", "instance", s.instance, "error", err)
		}
		return
	}
	g.deps.Logger.Warn("agent without a record", "instance", s.instance, "from", s.from(), "claim", known != nil)
}

// countStray counts an agent without a record, unless there are too many.
func (g *Gateway) countStray(instance string, claimed bool) (full bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	most := maxStrays
	if claimed {
		most = maxClaimed
	}
	if old, again := g.strays[instance]; !again || old.claimed != claimed {
		n := g.strayCount[claimed]
		if n >= most {
			for id, known := range g.strays {
				if time.Since(known.at) >= strayTTL {
					g.strayCount[known.claimed]--
					delete(g.strays, id)
				}
			}
			n = g.strayCount[claimed]
		}
		if n >= most {
			return true
		}
		if again {
			g.strayCount[old.claimed]--
		}
		g.strayCount[claimed]++
	}
	g.strays[instance] = stray{time.Now(), claimed}
	delete(g.unnoted, instance)
	return false
}

// countUnnoted counts an agent without a record that is not noted, and reports whether it is new.
func (g *Gateway) countUnnoted(instance string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, known := g.unnoted[instance]
	if !known && len(g.unnoted) >= maxUnnoted {
		return false
	}
	g.unnoted[instance] = time.Now()
	return !known
}

// Unnoted returns how many agents without a record were seen recently and are not noted below
// strays/, because there are too many.
func (g *Gateway) Unnoted() int {
	longest := max(unnotedFor, 3*g.settings().ReconnectMax.D()) // each returns within half of that
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.unnoted, func(_ string, at time.Time) bool { return time.Since(at) > longest })
	return len(g.unnoted)
}

func (g *Gateway) putStray(ctx context.Context, s *session, known *store.Claim) error {
	lease, err := g.strayLease(ctx)
	if err != nil {
		return err
	}
	rec := store.Stray{
		Schema: store.Schema, Instance: s.instance, Replica: g.cfg.Replica, From: s.from(), At: time.Now().UTC(),
		BootID: s.bootID, Agent: s.agent, Claim: known,
	}
	_, err = g.stateWriter.commit(ctx, store.Txn{
		Conditions: []store.Condition{store.Absent(g.cfg.Keys.Instance(s.instance))},
		Writes:     []store.Write{store.PutLeased(g.cfg.Keys.Stray(s.instance), store.Encode(rec), lease)},
	})
	if errors.Is(err, store.ErrLeaseGone) && g.strayLock.Acquire(ctx, 1) == nil {
		g.strayOn = store.Lease{} // it was revoked
		g.strayLock.Release(1)
	}
	return err
}

// strayLease returns a lease for strays that are noted now.
func (g *Gateway) strayLease(ctx context.Context) (store.LeaseID, error) {
	if err := g.strayLock.Acquire(ctx, 1); err != nil {
		return 0, err
	}
	defer g.strayLock.Release(1)
	if g.strayOn.ID != 0 && time.Since(g.strayOn.From) < strayLeaseFor {
		return g.strayOn.ID, nil
	}
	lease, err := g.deps.Store.Grant(ctx, strayTTL)
	if err != nil {
		return 0, err
	}
	g.strayOn = lease
	return lease.ID, nil
}

// forgetStray deletes the note about an agent without a record, once it has one. If that fails, the
// note's lease ends.
func (g *Gateway) forgetStray(instance string) {
	shown := false
	g.deps.Cache.View(func(c *cache.Content) { _, shown = c.Strays[instance] })
	if !shown {
		return
	}
	g.goDo(func(ctx context.Context) {
		if _, err := g.stateWriter.commit(ctx, store.Txn{
			Conditions: []store.Condition{store.Exists(g.cfg.Keys.Instance(instance))},
			Writes:     []store.Write{store.Delete(g.cfg.Keys.Stray(instance))},
		}); err != nil {
			g.deps.Logger.Debug("stray could not be forgotten", "instance", instance, "error", err)
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if old, noted := g.strays[instance]; noted {
			g.strayCount[old.claimed]--
			delete(g.strays, instance)
		}
	})
}

// noteConflict writes a journal entry about a second boot, at most once per conflictEvery for each
// (DET-18).
func (g *Gateway) noteConflict(ctx context.Context, s *session, open store.Alive) {
	key := s.instance + "/" + s.bootID
	g.mu.Lock()
	last, known := g.refused[key]
	if known && time.Since(last) < conflictEvery {
		g.mu.Unlock()
		return
	}
	for k, at := range g.refused {
		if time.Since(at) >= conflictEvery {
			delete(g.refused, k)
		}
	}
	full := !known && len(g.refused) >= maxConflicts
	if !full {
		g.refused[key] = time.Now()
	}
	g.mu.Unlock()
	if full {
		g.deps.Logger.Debug("second boot refused, and not recorded: there are too many", "instance", s.instance, "boot",
			s.bootID, "from", s.from())
		return
	}
	g.deps.Logger.Warn("second boot refused", "instance", s.instance, "boot", s.bootID, "open", open.BootID, "from",
		s.from())
	g.deps.Journal(ctx, store.JournalEntry{
		Rule: "DET-18", What: "second boot refused", Why: "another boot of this instance has an open stream",
		Instance: s.instance,
		Facts: []store.Fact{
			{Kind: store.FactBoot, Name: s.bootID},
			{Kind: store.FactFrom, Name: s.from()},
			{Kind: store.FactBoot, Name: open.BootID, Count: int(open.Epoch), By: open.Replica},
		},
	})
}
