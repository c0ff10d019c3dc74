package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// stray is an agent without a record, as noted by us.
type stray struct {
	lease store.LeaseID
	at    time.Time
}

// What agents that nobody knows, and boots that nobody wants, can make us write (SEC-5).
const (
	mostStrays    = 1000
	mostConflicts = 1000 // within conflictEvery
)

// noteStray records an agent without a record, so that its machine is not taken for an orphan (REC-8).
func (g *Gateway) noteStray(ctx context.Context, s *session) {
	g.mu.Lock()
	for id, known := range g.strays {
		if time.Since(known.at) >= strayTTL {
			delete(g.strays, id)
		}
	}
	known, again := g.strays[s.instance]
	full := !again && len(g.strays) >= mostStrays
	g.mu.Unlock()
	if full {
		g.deps.Logger.Warn("stray agent not recorded: there are too many", "instance", s.instance, "from", s.from())
		return
	}
	if again {
		if _, err := g.deps.Store.Renew(ctx, known.lease); err == nil {
			g.mu.Lock()
			g.strays[s.instance] = stray{known.lease, time.Now()}
			g.mu.Unlock()
			return
		}
	}
	l, err := g.deps.Store.Grant(ctx, strayTTL)
	if err != nil {
		g.deps.Logger.Warn("stray agent could not be recorded", "instance", s.instance, "error", err)
		return
	}
	rec := store.Stray{Schema: store.Schema, Instance: s.instance, Replica: g.cfg.Replica, From: s.from(), At: time.Now().UTC()}
	_, err = g.deps.Store.Commit(ctx, store.Txn{
		Conditions: []store.Condition{store.Absent(g.cfg.Keys.Instance(s.instance))},
		Writes:     []store.Write{store.PutLeased(g.cfg.Keys.Stray(s.instance), store.Encode(rec), l.ID)},
	})
	if err != nil {
		_ = g.deps.Store.Revoke(ctx, l.ID) // nothing is on it; it would end by itself
		if !errors.Is(err, store.ErrConflict) {
			g.deps.Logger.Warn("stray agent could not be recorded", "instance", s.instance, "error", err)
		}
		return
	}
	g.mu.Lock()
	g.strays[s.instance] = stray{l.ID, time.Now()}
	g.mu.Unlock()
	g.deps.Logger.Warn("agent without a record", "instance", s.instance, "from", s.from())
}

// noteConflict puts a second boot into the journal, once in a while for each (DET-18).
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
	full := !known && len(g.refused) >= mostConflicts
	if !full {
		g.refused[key] = time.Now()
	}
	g.mu.Unlock()
	if full {
		g.deps.Logger.Debug("second boot refused, and not recorded: there are too many", "instance", s.instance, "boot", s.bootID, "from", s.from())
		return
	}
	g.deps.Logger.Warn("second boot refused", "instance", s.instance, "boot", s.bootID, "open", open.BootID, "from", s.from())
	g.deps.Journal(ctx, store.JournalEntry{
		Rule: "DET-18", What: "second boot refused", Why: "another boot of this instance has an open stream", Instance: s.instance,
		Evidence: []string{"boot " + s.bootID + " from " + s.from(), fmt.Sprintf("boot %s has epoch %d at %s", open.BootID, open.Epoch, open.Replica)},
	})
}
