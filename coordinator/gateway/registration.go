package gateway

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/store"
)

// register makes s the session of its instance, or returns the refusal. The session is not shared
// before that: only the goroutine that begins it has it.
func (s *session) register(ctx context.Context) *protocol.Refused {
	if refusal := s.prove(); refusal != nil {
		s.g.delayRefusal(s.ctx)
		return refusal
	}
	if refusal := s.refuseHello(); refusal != nil {
		return refusal
	}
	if s.spoken == 0 {
		return s.leaveAlone(ctx)
	}
	if refusal := s.open(ctx); refusal != nil {
		return refusal
	}
	if !s.g.admit(s) {
		return unavailable(leavesText)
	}
	return nil
}

const leavesText = "this replica stops: go to another"

// open writes that the stream is open, or returns the refusal.
func (s *session) open(ctx context.Context) *protocol.Refused {
	if refusal := s.writeFirst(ctx, func(ctx context.Context, f found) error {
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

// writeFirst writes the agent's alive key if that is allowed, or returns the refusal.
func (s *session) writeFirst(ctx context.Context, write func(ctx context.Context, f found) error) *protocol.Refused {
	if refusal := s.refuseUnread(); refusal != nil {
		return refusal
	}
	leave, err := s.g.letIn(ctx, s.patience())
	var many *guard.Crowded
	switch {
	case errors.As(err, &many):
		return many.Refused()
	case err != nil:
		return unavailable(err.Error())
	}
	defer leave()
	limit := s.g.timeouts.begin(ctx, callTimeout)
	defer s.g.timeouts.end(limit)
	ctx = limit.ctx
	if err := s.exchange.Acquire(ctx, 1); err != nil {
		return unavailable(err.Error())
	}
	defer s.exchange.Release(1)
	refusal, err := s.tryWrite(ctx, write)
	if err != nil {
		return s.writeFailed(ctx, err)
	}
	return refusal
}

// refuseUnread returns the refusal of an agent that needs no look at its record; nil: none.
func (s *session) refuseUnread() *protocol.Refused {
	switch {
	case s.hello.GetShard() != s.g.cfg.ShardID:
		s.g.refusals.Add(guard.Refusal{
			Rule: "DET-18", What: "stream refused", Why: "it is of another shard", Address: s.from(), Claimed: s.instance,
			Proved: s.proof.peer != nil, Detail: "it says " + strconv.QuoteToASCII(s.hello.GetShard()),
		})
		return &protocol.Refused{
			Reason:  protocol.Refused_WRONG_SHARD,
			Message: "this replica serves shard " + s.g.cfg.ShardID,
		}
	case s.g.leaving():
		return unavailable(leavesText)
	case s.g.wrongShard.Load():
		return s.unknown(errNoShard)
	}
	return nil
}

func unavailable(why string) *protocol.Refused {
	return &protocol.Refused{Reason: protocol.Refused_UNAVAILABLE, Message: why}
}

// tryWrite writes with what the cache shows of the instance, and again with what etcd has if that
// was too old. It returns the refusal if the record and the alive key allow no stream. The caller
// must hold s.exchange.
func (s *session) tryWrite(
	ctx context.Context, write func(ctx context.Context, f found) error,
) (refusal *protocol.Refused, err error) {
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
		s.follow(f.instance)
		return write(ctx, f)
	})
	return refusal, err
}

// follow takes over from the record what the session needs.
func (s *session) follow(record store.Versioned[store.Instance]) {
	if id := record.Record.ID; id == s.instance {
		s.instance = id // once in memory: the cache has it, too
	}
	s.want(record, true) // a drill names a stream that is open
	spec := record.Record.Spec.Report
	s.interval, s.ttl = spec.Interval.D(), spec.LeaseTTL.D()
}

// writeFailed returns the refusal of an agent whose registration failed.
func (s *session) writeFailed(ctx context.Context, err error) *protocol.Refused {
	var end *retired
	switch {
	case errors.As(err, &end):
		s.noteStopped(ctx, end)
		return end.refused(s.instance)
	case errors.Is(err, errUnrecorded):
		if !errors.Is(err, errNoShard) {
			s.g.noteStray(ctx, s)
		}
		return s.unknown(err)
	}
	s.g.deps.Logger.Warn("agent could not be registered", "instance", s.instance, "error", err)
	if errors.Is(err, errSpoiled) {
		return unavailable(err.Error())
	}
	return unavailable("etcd: " + err.Error())
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
