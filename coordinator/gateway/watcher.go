package gateway

import (
	"context"
	"slices"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// watcher implements cache.Listener for the gateway.
type watcher Gateway

// Listed checks all sessions after an interruption: their keys should be as they wrote them.
func (w *watcher) Listed(c *cache.Content) {
	g := (*Gateway)(w)
	g.mu.Lock()
	blind := g.blind
	g.blind = false
	g.mu.Unlock()
	g.wrongShard.Store(g.isWrongShard(c))
	g.releases.Store(releasesOf(c)) // before their offers
	sessions := g.all()
	if blind {
		g.deps.Disturbed("a replica's watch continues after an interruption")
	}
	for _, s := range sessions {
		if c.Revision < s.wroteAt() {
			g.recheck(s)
		}
		g.check(c, s)
		if _, shown := c.Reports[s.instance]; !shown {
			s.unwritten.Store(true)
		}
		s.secretsChanged("")
	}
	g.peers.changed("")
	g.tellAddresses(c, sessions)
}

func (w *watcher) Changed(c *cache.Content, changes []cache.Change) {
	g := (*Gateway)(w)
	replicas := slices.ContainsFunc(changes, func(change cache.Change) bool { return change.Kind == store.KindReplicas })
	if replicas {
		g.releases.Store(releasesOf(c)) // before their offers
	}
	for _, change := range changes {
		switch change.Kind {
		case store.KindShard: // an operator may have accepted a loss
			g.peers.changed("")
		case store.KindInstances, store.KindReports, store.KindGone, store.KindStatus:
			if change.Group != "" || change.Kind == store.KindGone {
				g.peers.changed(change.Group)
			}
		}
		switch change.Kind {
		case store.KindSecrets:
			for _, s := range g.all() {
				s.secretsChanged(change.Name)
			}
		case store.KindShard:
			for _, s := range g.all() {
				if s.filesRecord() != nil { // a hold for lost records may be over
					s.notify(topicFiles)
				}
			}
			was := g.wrongShard.Swap(g.isWrongShard(c))
			if was && !g.wrongShard.Load() {
				for _, s := range g.all() {
					g.check(c, s) // skipped while the shard was wrong
				}
			}
		case store.KindReports:
			if change.Deleted || len(c.Unreadable) > 0 {
				g.mu.Lock()
				s := g.sessions[change.Name]
				g.mu.Unlock()
				switch {
				case s == nil:
				case change.Deleted: // the next report rewrites it in any case
					s.unwritten.Store(true)
				default:
					g.checkReport(c, s)
				}
			}
		case store.KindAlive, store.KindInstances:
			g.mu.Lock()
			s := g.sessions[change.Name]
			g.mu.Unlock()
			if s != nil {
				g.check(c, s)
			}
		}
	}
	if replicas {
		sessions := g.all()
		for _, s := range sessions {
			s.releasesChanged()
		}
		g.tellAddresses(c, sessions)
	}
}

// Interrupted counts as a disturbance, and so does its end: from then on keys of agents that were
// not seen can be restored.
func (w *watcher) Interrupted(err error) {
	g := (*Gateway)(w)
	g.mu.Lock()
	g.blind = true
	g.mu.Unlock()
	g.deps.Disturbed("a replica's watch was interrupted: " + err.Error())
}

// check compares a session with what etcd shows of its instance.
func (g *Gateway) check(c *cache.Content, s *session) {
	inst, recorded := c.Instances[s.instance]
	alive, has := c.Alive[s.instance]
	if recorded && c.Unreadable[g.cfg.Keys.Instance(s.instance)] == "" {
		if s.missing.Load() {
			s.forgetRevision(inst.Modified)
		}
		s.want(inst, g.drillWaits(c, inst.Record))
		s.releasesChanged() // it may have changed while the session was opened
	}
	g.checkReport(c, s)
	switch {
	case g.isWrongShard(c):
		// This listing is not of our shard.
	case !g.hasRecord(c, s.instance):
		if c.Revision >= s.openedAt() {
			g.doubt(s)
		}
	case c.Unreadable[g.cfg.Keys.Alive(s.instance)] != "":
		if c.Revision > s.wroteAt() {
			g.restore(s, c.Revision) // this stream is open, so the key is rewritten, whatever it contained (SAFE-16)
		}
	case has && alive.Modified > s.wroteAt() && !s.owns(alive.Record):
		// our own write has read an older value
		if alive.Record.BootID == s.bootID && alive.Record.Epoch < s.epoch {
			g.restore(s, c.Revision) // an older stream's replica restored a deleted key before we did
		} else {
			s.close(errSuperseded)
		}
	case !has && c.Revision >= s.wroteAt():
		g.restore(s, c.Revision)
	}
}

// checkReport forces the next report of a session to be written if the stored one cannot be read
// (SAFE-16).
func (g *Gateway) checkReport(c *cache.Content, s *session) {
	if len(c.Unreadable) > 0 && c.Unreadable[g.cfg.Keys.Report(s.instance)] != "" {
		s.unwritten.Store(true)
	}
}

// restore writes a key again that was deleted under its open stream, as seen at a revision, on a
// new lease.
func (g *Gateway) restore(s *session, seen store.Revision) {
	g.goDo(func(ctx context.Context) {
		if g.restores.Acquire(ctx, 1) != nil {
			return
		}
		defer g.restores.Release(1)
		s.restore(ctx, seen)
	})
}

// recheck compares a session's key with what etcd has, after a List that is older than its last
// write: the List began before that write, or etcd was restored from older data, in which the
// session's revisions mean nothing. Otherwise the key would seem unchanged until etcd's revision
// had caught up, and would not be restored before.
func (g *Gateway) recheck(s *session) {
	g.goDo(func(ctx context.Context) {
		if g.restores.Acquire(ctx, 1) != nil {
			return
		}
		defer g.restores.Release(1)
		s.recheck(ctx)
	})
}

func (g *Gateway) tellAddresses(c *cache.Content, sessions []*session) {
	if len(sessions) == 0 {
		return
	}
	msg := &protocol.GatewayMessage{
		Kind: &protocol.GatewayMessage_Coordinators{Coordinators: &protocol.Coordinators{Addresses: replicaAddresses(c)}},
	}
	for _, s := range sessions {
		s.enqueue(msg)
	}
}
