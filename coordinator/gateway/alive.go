package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
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

// setState writes the state of the stream, unless a newer stream owns the key by now. Usually the
// cache shows the key as we wrote it last, which saves a read: the transaction compares it in any
// case.
func (s *session) setState(ctx context.Context, state store.StreamState, goodbye store.Goodbye, why string) {
	if s.missing.Load() || s.g.wrongShard.Load() {
		return // without a record nothing may be written; once it is back, a report writes the state
	}
	if s.exchange.Acquire(ctx, 1) != nil {
		s.g.deps.Logger.Warn("state of a stream could not be written: etcd is slow", "instance", s.instance, "state",
			string(state))
		return
	}
	defer s.exchange.Release(1)
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
	if !s.g.states.TryAcquire(1) {
		s.overdue.Reset(stateAgain + rand.N(stateAgain))
		return
	}
	if !s.g.goDo(func(ctx context.Context) {
		defer s.g.states.Release(1)
		if s.exchange.Acquire(ctx, 1) != nil {
			return
		}
		late := time.Since(s.accepted) >= s.overdueAfter() && s.state == store.StreamOpen
		s.exchange.Release(1)
		if late {
			s.g.deps.Logger.Info("report overdue", "instance", s.instance, "epoch", s.epoch)
			s.setState(ctx, store.StreamOverdue, "", "no report for "+s.overdueAfter().String())
		}
	}) {
		s.g.states.Release(1)
	}
}

// lost writes that the stream is gone. When thousands of streams are lost, their writes wait for
// each other, for as long as others still need the state.
func (s *session) lost(why string) {
	s.g.spawn(func() {
		waiting, end := context.WithTimeout(s.g.life, max(s.ttl, callTimeout))
		defer end()
		if s.g.states.Acquire(waiting, 1) != nil {
			return // the end of its lease shows it
		}
		defer s.g.states.Release(1)
		ctx, cancel := context.WithTimeout(s.g.life, 2*callTimeout)
		defer cancel()
		s.setState(ctx, store.StreamLost, "", why)
	})
}

// recheck restores or rewrites the key, unless etcd has it as it was written.
func (s *session) recheck(ctx context.Context) {
	if s.exchange.Acquire(ctx, 1) != nil {
		return
	}
	f, err := s.read(ctx)
	wrote := s.wrote
	same := err == nil && f.alive.Present() && f.alive.Modified == wrote
	s.exchange.Release(1)
	if !same {
		s.restore(ctx, wrote)
	}
}

// restore writes the key again after it was deleted under the open stream (DET-17).
func (s *session) restore(ctx context.Context, seen store.Revision) {
	if s.exchange.Acquire(ctx, 1) != nil {
		return
	}
	defer s.exchange.Release(1)
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
