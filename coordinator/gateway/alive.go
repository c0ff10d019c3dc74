package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/store"
)

// conflictTries is how often a write is repeated on the new value after a conflict.
const conflictTries = 5

// found is what etcd holds of an instance, by a fresh read.
type found struct {
	instance store.Versioned[store.Instance]
	alive    store.Versioned[store.Alive]
	// Why either exists and cannot be read. Its revision is known, so that it can be compared.
	spoiled      error
	spoiledAlive error
}

// read reads an instance's record and its alive key. It fails with a *retired if the instance is
// being deleted or was deleted on purpose, and with errUnrecorded if its record is absent for no
// known reason.
func (s *session) read(ctx context.Context) (found, error) {
	var f found
	keys := s.g.cfg.Keys
	kv, err := s.g.deps.Store.Get(ctx, keys.Instance(s.instance))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return f, s.absent(ctx)
	case err != nil:
		return f, err
	}
	if f.instance, f.spoiled = store.Decode[store.Instance](kv); f.spoiled != nil {
		f.instance.Record = store.Instance{}
	} else if f.instance.Record.Phase == store.Deleting {
		return f, s.confirm(ctx, &retired{
			revision: f.instance.Modified, phase: protocol.PhaseDeleting,
			byHand: f.instance.Record.Spec.Provider == store.ProviderNone,
		})
	}
	kv, err = s.g.deps.Store.Get(ctx, keys.Alive(s.instance))
	switch {
	case errors.Is(err, store.ErrNotFound):
		f.alive.Key = keys.Alive(s.instance)
		return f, nil
	case err != nil:
		return f, err
	}
	if f.alive, f.spoiledAlive = store.Decode[store.Alive](kv); f.spoiledAlive != nil {
		f.alive.Record = store.Alive{}
	}
	return f, nil
}

// put writes the session's alive key, if nothing has changed since it was read. The caller must
// hold s.exchange.
func (s *session) put(ctx context.Context, f found, lease store.Lease, state store.StreamState, goodbye store.Goodbye,
	why string,
) error {
	rec := store.Alive{
		Schema: store.Schema, Instance: s.instance, Replica: s.g.cfg.Replica, Lease: lease.ID.String(),
		BootID: s.bootID, Epoch: s.epoch,
		State: state, Goodbye: goodbye, Why: why, Since: time.Now().UTC(), Agent: s.agent, Protocol: s.speaks,
	}
	s.asked = true
	rev, err := s.g.stateWriter.commit(ctx, store.Txn{
		Conditions: []store.Condition{f.instance.Unchanged(), store.At(f.alive.Key, f.alive.Modified)},
		Writes:     []store.Write{store.PutLeased(f.alive.Key, store.Encode(rec), lease.ID)},
	})
	if err != nil {
		return err
	}
	s.lease, s.state = lease, state
	s.noteWritten(rev)
	return nil
}

// noteWritten records the revision as of which alive is ours. The caller holds s.exchange, so
// revisions arrive in order. A revision that is lower than before comes from another etcd, or from
// older data: revisions of the lost data are meaningless, and no report could be written on them
// until etcd had caught up.
func (s *session) noteWritten(rev store.Revision) {
	if s.opened == 0 || rev < s.wrote {
		s.opened = rev
	}
	s.wrote = rev
	s.seen.Lock()
	s.seen.opened, s.seen.wrote = s.opened, s.wrote
	s.seen.Unlock()
}

// retryConflicts repeats an exchange that lost a race, on the current values. A lost answer is
// resolved in the same way, by reading.
func retryConflicts(ctx context.Context, exchange func() error) error {
	var err error
	for range conflictTries {
		err = exchange()
		if err == nil || ctx.Err() != nil || !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnknown) {
			return err
		}
	}
	return err
}

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
	if err := s.exchange.acquire(ctx); err != nil { // the session is not shared yet
		return &protocol.Refused{Reason: protocol.Refused_UNAVAILABLE, Message: err.Error()}
	}
	defer s.exchange.release()
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

// setState writes the state of the stream, unless a newer stream owns the key by now. Usually the
// cache shows the key as we wrote it last, which saves a read: the transaction compares it in any
// case.
func (s *session) setState(ctx context.Context, state store.StreamState, goodbye store.Goodbye, why string) {
	if s.missing.Load() || s.g.wrongShard.Load() {
		return // without a record nothing may be written; once it is back, a report writes the state
	}
	if s.exchange.acquire(ctx) != nil {
		s.g.deps.Logger.Warn("state of a stream could not be written: etcd is slow", "instance", s.instance, "state",
			string(state))
		return
	}
	defer s.exchange.release()
	looked := false
	err := retryConflicts(ctx, func() error {
		f, enough := s.known()
		if looked || !enough || f.alive.Modified != s.wrote {
			var err error
			if f, err = s.read(ctx); err != nil {
				return err
			}
		}
		looked = true
		a := f.alive.Record
		if !f.alive.Present() || !s.owns(a) {
			return nil // the lease ended or a newer stream took over: the key is no longer ours
		}
		s.noteWritten(f.alive.Modified) // if the answer to an earlier write was lost
		if state == store.StreamOverdue && time.Since(s.accepted) < s.overdueAfter() {
			return nil // a report arrived meanwhile
		}
		if a.State == state || a.State == store.StreamLeft || a.State == store.StreamMoved {
			s.state = a.State
			return nil // a goodbye is kept
		}
		return s.put(ctx, f, s.lease, state, goodbye, why)
	})
	if err != nil && !errors.Is(err, errRetired) && !errors.Is(err, errUnrecorded) {
		s.state = "" // it may still be written: the next report corrects it
		s.g.deps.Logger.Warn("state of a stream could not be written", "instance", s.instance, "state", string(state),
			"error", err)
	}
}

// overdueAfter returns the silence after which a report is overdue (DET-6).
func (s *session) overdueAfter() time.Duration { return s.interval + s.interval/2 }

func (s *session) becomeOverdue() {
	if s.ctx.Err() != nil || s.closing() != nil {
		return
	}
	if !s.g.states.tryAcquire() {
		s.overdue.Reset(stateAgain + rand.N(stateAgain))
		return
	}
	if !s.g.goDo(func(ctx context.Context) {
		defer s.g.states.release()
		if s.exchange.acquire(ctx) != nil {
			return
		}
		late := time.Since(s.accepted) >= s.overdueAfter() && s.state == store.StreamOpen
		s.exchange.release()
		if late {
			s.g.deps.Logger.Info("report overdue", "instance", s.instance, "epoch", s.epoch)
			s.setState(ctx, store.StreamOverdue, "", "no report for "+s.overdueAfter().String())
		}
	}) {
		s.g.states.release()
	}
}

// lost writes that the stream is gone. When thousands of streams are lost, their writes wait for
// each other, for as long as others still need the state.
func (s *session) lost(why string) {
	s.g.spawn(func() {
		waiting, end := context.WithTimeout(s.g.life, max(s.ttl, callTimeout))
		defer end()
		if s.g.states.acquire(waiting) != nil {
			return // the end of its lease shows it
		}
		defer s.g.states.release()
		ctx, cancel := context.WithTimeout(s.g.life, 2*callTimeout)
		defer cancel()
		s.setState(ctx, store.StreamLost, "", why)
	})
}

// recheck restores or rewrites the key, unless etcd has it as it was written.
func (s *session) recheck(ctx context.Context) {
	if s.exchange.acquire(ctx) != nil {
		return
	}
	f, err := s.read(ctx)
	wrote := s.wrote
	same := err == nil && f.alive.Present() && f.alive.Modified == wrote
	s.exchange.release()
	if !same {
		s.restore(ctx, wrote)
	}
}

// restore writes the key again after it was deleted under the open stream (DET-17).
func (s *session) restore(ctx context.Context, seen store.Revision) {
	if s.exchange.acquire(ctx) != nil {
		return
	}
	defer s.exchange.release()
	if s.wrote > seen {
		return // a report has done it
	}
	if s.g.wrongShard.Load() {
		return
	}
	// Its time counts from when its last renewal was sent, not from the answer, which may have
	// arrived seconds later.
	if s.ctx.Err() != nil || s.closing() != nil || !time.Now().Before(s.lease.Ends()) || s.state == store.StreamLeft ||
		s.state == store.StreamMoved {
		return // an agent that said goodbye is gone, even if its stream is still open
	}
	err := s.regrant(ctx)
	switch {
	case errors.Is(err, errRetired):
		s.close(err)
	case errors.Is(err, errUnrecorded):
		s.missing.Store(true)
		s.lose(ctx)
	case errors.Is(err, errSuperseded):
		s.close(errSuperseded)
	case err != nil:
		s.g.deps.Logger.Warn("alive key could not be put back", "instance", s.instance, "error", err)
	default:
		s.g.deps.Logger.Info("alive key put back", "instance", s.instance, "epoch", s.epoch, "lease",
			s.lease.ID.String())
		s.g.deps.Disturbed("etcd deleted a key whose lease was being renewed")
	}
}

// regrant puts alive on a new lease, whether it is absent, unreadable or on another lease. The
// record need not be readable: it was when the stream was opened, and nothing condemns the
// instance. The caller must hold s.exchange.
func (s *session) regrant(ctx context.Context) error {
	return retryConflicts(ctx, func() error {
		f, err := s.read(ctx)
		if err != nil {
			return err
		}
		a := f.alive.Record
		if f.alive.Present() && f.spoiledAlive == nil && !s.owns(a) && (a.BootID != s.bootID || a.Epoch >= s.epoch) {
			return errSuperseded // epochs of another boot do not compare: it was admitted when ours was gone
		}
		l, err := s.g.deps.Store.Grant(ctx, s.ttl)
		if err != nil {
			return fmt.Errorf("grant lease: %w", err)
		}
		return s.put(ctx, f, l, store.StreamOpen, "", "")
	})
}
