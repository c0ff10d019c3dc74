package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/store"
)

// open registers the session, or returns the refusal.
func (s *session) open(ctx context.Context) *protocol.Refused {
	if refusal := s.register(ctx, func(ctx context.Context, f found) error {
		lease, err := s.leaseFor(ctx, f)
		if err != nil {
			return err
		}
		return s.put(ctx, f, lease, store.StreamOpen, "", "")
	}); refusal != nil {
		return refusal
	}
	s.g.forgetStray(s.instance)
	s.accepted = time.Now()
	s.entered = s.accepted
	s.overdue = time.AfterFunc(s.overdueAfter(), s.becomeOverdue)
	return nil
}

// register writes the agent's alive key if that is allowed, or returns the refusal.
func (s *session) register(ctx context.Context, write func(ctx context.Context, f found) error) *protocol.Refused {
	if s.hello.GetShard() != s.g.cfg.ShardID {
		return &protocol.Refused{
			Reason:  protocol.Refused_WRONG_SHARD,
			Message: "this replica serves shard " + s.g.cfg.ShardID,
		}
	}
	if s.g.leaving() {
		return &protocol.Refused{Reason: protocol.Refused_UNAVAILABLE, Message: "this replica stops: go to another"}
	}
	if s.g.wrongShard.Load() {
		return s.unknown(errNoShard)
	}
	leave, err := s.g.letIn(ctx, s.patience())
	var many *guard.Crowded
	switch {
	case errors.As(err, &many):
		return many.Refused()
	case err != nil:
		return &protocol.Refused{Reason: protocol.Refused_UNAVAILABLE, Message: err.Error()}
	}
	defer leave()
	limit := s.g.timeouts.begin(ctx, callTimeout)
	defer s.g.timeouts.end(limit)
	ctx = limit.ctx
	if err := s.exchange.Acquire(ctx, 1); err != nil { // the session is not shared yet
		return &protocol.Refused{Reason: protocol.Refused_UNAVAILABLE, Message: err.Error()}
	}
	defer s.exchange.Release(1)
	var refusal *protocol.Refused
	var end *retired
	looked := false
	err = retryConflicts(ctx, func() error {
		f, enough := s.known()
		if looked || !enough || s.mayOpen(f) != nil { // a refusal needs more than what the cache shows
			var err error
			if f, err = s.read(ctx); err != nil {
				return err
			}
			if f.spoiled != nil {
				return fmt.Errorf("%w: %w", errSpoiled, f.spoiled)
			}
		}
		looked = true
		if refusal = s.mayOpen(f); refusal != nil {
			if refusal.GetReason() == protocol.Refused_BOOT_CONFLICT {
				s.g.noteConflict(ctx, s, f.alive.Record)
			}
			return nil
		}
		if id := f.instance.Record.ID; id == s.instance {
			s.instance = id // once in memory: the cache has it, too
		}
		s.want(f.instance, true) // a drill names a stream that is open
		spec := f.instance.Record.Spec.Report
		s.interval, s.ttl = spec.Interval.D(), spec.LeaseTTL.D()
		s.leased.Store(int64(s.ttl))
		return write(ctx, f)
	})
	switch {
	case errors.As(err, &end):
		s.noteStopped(ctx, end)
		return end.refused(s.instance)
	case errors.Is(err, errUnrecorded):
		if !errors.Is(err, errNoShard) {
			s.g.noteStray(ctx, s)
		}
		return s.unknown(err)
	case errors.Is(err, errSpoiled):
		s.g.deps.Logger.Warn("agent could not be registered", "instance", s.instance, "error", err)
		return &protocol.Refused{Reason: protocol.Refused_UNAVAILABLE, Message: err.Error()}
	case err != nil:
		s.g.deps.Logger.Warn("agent could not be registered", "instance", s.instance, "error", err)
		return &protocol.Refused{Reason: protocol.Refused_UNAVAILABLE, Message: "etcd: " + err.Error()}
	default:
		return refusal
	}
}

// patience returns how long the agent can wait for its admission. An agent of the previous release
// cannot be notified that it waits.
func (s *session) patience() guard.Patience {
	if !s.hello.GetWaits() {
		return guard.Impatient
	}
	return guard.Patience{
		Most: guard.PatienceFor(s.g.settings().ReconnectMax.D()),
		Tell: func(most time.Duration) error {
			return s.stream.Send(
				&protocol.GatewayMessage{
					Kind: &protocol.GatewayMessage_Waiting{Waiting: &protocol.Waiting{Most: durationpb.New(most)}},
				},
			)
		},
	}
}

// known returns what the cache shows of the instance, if that could admit an agent. It may be old;
// the transaction would detect that.
func (s *session) known() (f found, enough bool) {
	keys := s.g.cfg.Keys
	f.alive.Key = keys.Alive(s.instance)
	s.g.deps.Cache.View(func(c *cache.Content) {
		f.instance = c.Instances[s.instance]
		enough = f.instance.Present() && f.instance.Record.Phase != store.Deleting &&
			c.Unreadable[keys.Instance(s.instance)] == "" && c.Unreadable[keys.Alive(s.instance)] == ""
		if alive, has := c.Alive[s.instance]; has {
			f.alive = alive
		}
	})
	return f, enough
}

// mayOpen applies DET-18 to what is stored.
func (s *session) mayOpen(f found) *protocol.Refused {
	if !f.alive.Present() {
		return nil
	}
	a := f.alive.Record
	if a.BootID != s.bootID && (a.State == store.StreamOpen || a.State == store.StreamOverdue) && s.g.mayBeServed(a) {
		return &protocol.Refused{
			Reason: protocol.Refused_BOOT_CONFLICT,
			Message: "another boot of this instance has an open stream; if that machine is gone, its lease ends within " +
				s.ttlOf(f),
		}
	}
	if a.BootID == s.bootID && a.Epoch >= s.epoch && !s.ownWrite(f) {
		return &protocol.Refused{
			Reason: protocol.Refused_STALE_EPOCH, Message: "a newer stream of this agent is known",
			StoredEpoch: a.Epoch,
		}
	}
	return nil
}

// mayBeServed reports whether the stream in an alive record can still exist: its replica is live,
// and if that is this one, it has the stream.
func (g *Gateway) mayBeServed(a store.Alive) bool {
	if a.Replica == g.cfg.Replica {
		g.mu.Lock()
		defer g.mu.Unlock()
		s := g.sessions[a.Instance]
		return s != nil && s.epoch == a.Epoch
	}
	there := true
	g.deps.Cache.View(func(c *cache.Content) { _, there = c.Replicas[a.Replica] })
	return there
}

// owns reports whether this session wrote alive.
func (s *session) owns(a store.Alive) bool {
	return a.Epoch == s.epoch && a.BootID == s.bootID && a.Replica == s.g.cfg.Replica
}

// ownWrite reports whether this very session wrote the stored value, by a write whose answer was
// lost.
func (s *session) ownWrite(f found) bool {
	a := f.alive.Record
	return s.owns(a) && a.State == store.StreamOpen && s.asked
}

func (s *session) ttlOf(f found) string { return f.instance.Record.Spec.Report.LeaseTTL.String() }

// leaseFor returns the lease that the agent presents, if alive is on it and it can still be
// renewed; else a new one.
func (s *session) leaseFor(ctx context.Context, f found) (store.Lease, error) {
	presented := store.LeaseID(s.hello.GetLease())
	if presented != 0 && f.alive.Present() && f.alive.Lease == presented {
		if l, err := s.g.deps.Store.Renew(ctx, presented); err == nil && l.TTL == s.ttl {
			return l, nil
		}
	}
	l, err := s.g.deps.Store.Grant(ctx, s.ttl)
	if err != nil {
		return l, fmt.Errorf("grant lease: %w", err)
	}
	return l, nil
}
