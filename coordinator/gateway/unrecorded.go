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
	"github.com/leasehold/leasehold/store"
)

var (
	// errRetired means that a record ends the instance. The returned error is a *retired, which
	// names the record.
	errRetired = errors.New("the instance is retired")
	// errUnrecorded means that there is no record of the instance and no note that it was deleted
	// on purpose.
	errUnrecorded = errors.New("there is no record of the instance")
	// errNoShard is an errUnrecorded: the shard's key is absent, or is another shard's.
	errNoShard = fmt.Errorf("%w: the shard's own key is missing, or is another shard's", errUnrecorded)
	errSpoiled = errors.New("the instance's record cannot be read")
)

// retired is the evidence on which an agent stops its workload (SAFE-14). It rests on a fresh read
// of etcd.
type retired struct {
	revision store.Revision
	phase    string // protocol.PhaseDeleting, or protocol.PhaseGone
	byHand   bool   // its machine was set up by hand: see noteStopped
}

func (r *retired) Error() string {
	return fmt.Sprintf("the instance is retired: its record of revision %d is %s", r.revision, r.phase)
}

// Is makes errors.Is(err, errRetired) true.
func (r *retired) Is(target error) bool { return target == errRetired }

func (r *retired) refused(instance string) *protocol.Refused {
	message := "instance " + instance + " is being deleted"
	if r.phase == protocol.PhaseGone {
		message = "instance " + instance + " was deleted"
	}
	return &protocol.Refused{
		Reason: protocol.Refused_RETIRED, Message: message, Revision: int64(r.revision),
		Phase: r.phase,
	}
}

// unknown returns the refusal of an agent without a record. The agent returns after about the
// longest wait, each at a time of its own: there may be a hundred thousand.
func (s *session) unknown(why error) *protocol.Refused {
	longest := s.g.settings().ReconnectMax.D()
	return &protocol.Refused{
		Reason: protocol.Refused_UNKNOWN, Message: why.Error() + ": its workload is left alone",
		After: durationpb.New(longest/2 + rand.N(max(1, longest/2))),
	}
}

// staleNote is how much later than a gone note a claim must have been sealed for the note to be
// about an earlier life of the instance. It exceeds the difference between replicas' clocks
// (SAFE-13).
const staleNote = 5 * time.Minute

// absent reads etcd to find out what happened to an instance without a record: it returns *retired
// if a note says that it was deleted on purpose, else errUnrecorded.
func (s *session) absent(ctx context.Context) error {
	keys := s.g.cfg.Keys
	kv, err := s.g.deps.Store.Get(ctx, keys.Gone(keys.Instance(s.instance)))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return errUnrecorded
	case err != nil:
		return err
	}
	note, err := store.Decode[store.Gone](kv)
	if err != nil || note.Record.Revision <= 0 || note.Record.Revision < s.recordedAt() {
		return errUnrecorded // no evidence, or evidence about an earlier record than the one that we know
	}
	if c := s.shownClaim(); c != nil && c.Since.After(note.Record.At.Add(staleNote)) {
		return errUnrecorded
	}
	return s.confirm(ctx, &retired{revision: note.Record.Revision, phase: protocol.PhaseGone})
}

// confirm makes the last check before an agent is ordered to stop: the data must belong to our
// shard, not to another one in its place.
func (s *session) confirm(ctx context.Context, evidence *retired) error {
	kv, err := s.g.deps.Store.Get(ctx, s.g.cfg.Keys.Shard())
	switch {
	case errors.Is(err, store.ErrNotFound):
		return errNoShard
	case err != nil:
		return err
	}
	if shard, err := store.Decode[store.Shard](kv); err != nil || shard.Record.ID != s.g.cfg.ShardID {
		return errNoShard
	}
	return evidence
}

// lookAgain is how often etcd is asked for a record that the cache does not show either. Usually
// the cache shows its return at once; this covers a cache that is wrong.
const lookAgain = 30 * time.Second

// recorded returns nil if the session's instance has a record, so that a report may renew its
// lease. It rarely reads etcd. The caller must hold s.exchange.
func (s *session) recorded(ctx context.Context) error {
	if s.g.wrongShard.Load() {
		s.unrecorded = true
		return errNoShard
	}
	if !s.missing.Load() {
		if s.unrecorded { // the shard's key alone shows it
			s.found()
		}
		return nil
	}
	shown := false
	s.g.deps.Cache.View(func(c *cache.Content) { shown = s.g.hasRecord(c, s.instance) })
	if !shown {
		if s.unrecorded && time.Since(s.looked) < lookAgain {
			return errUnrecorded
		}
		switch _, err := s.read(ctx); {
		case errors.Is(err, errUnrecorded):
			s.lose(ctx)
			return err
		case err != nil:
			return err
		}
	}
	s.missing.Store(false)
	s.found()
	return nil
}

// hasRecord reports whether a record before deleting is shown, or one that cannot be read.
func (g *Gateway) hasRecord(c *cache.Content, instance string) bool {
	if c.Unreadable[g.cfg.Keys.Instance(instance)] != "" {
		return true
	}
	i, shown := c.Instances[instance]
	return shown && i.Record.Phase != store.Deleting
}

// lose records that the record of an agent with an open stream was lost. The stream stays; its
// lease is not renewed. The caller must hold s.exchange.
func (s *session) lose(ctx context.Context) {
	s.unrecorded, s.looked = true, time.Now()
	s.g.noteStray(ctx, s)
}

// found reverts lose. Leases were not renewed for a while, which is not the machines' fault. The
// caller must hold s.exchange.
func (s *session) found() {
	if !s.unrecorded {
		return
	}
	s.unrecorded = false
	// the last report may be lost as well, and an instance that never reports counts as failed
	s.unwritten.Store(true)
	s.g.deps.Logger.Info("record of an agent's instance is back", "instance", s.instance)
	s.g.deps.Disturbed(store.DisturbedRecordBack)
	s.g.forgetStray(s.instance)
}

// doubt makes a session check etcd if the cache shows no record, or a record that is being deleted:
// the cache alone never stops an agent.
func (g *Gateway) doubt(s *session) {
	s.missing.Store(true)
	g.goDo(func(ctx context.Context) {
		if g.restores.Acquire(ctx, 1) != nil {
			return // the next report looks
		}
		defer g.restores.Release(1)
		s.judge(ctx)
	})
}

func (s *session) judge(ctx context.Context) {
	if s.exchange.Acquire(ctx, 1) != nil {
		return
	}
	defer s.exchange.Release(1)
	if s.ctx.Err() != nil || s.closing() != nil || s.g.wrongShard.Load() {
		return
	}
	switch _, err := s.read(ctx); {
	case errors.Is(err, errRetired):
		s.close(err)
	case errors.Is(err, errUnrecorded):
		s.lose(ctx)
	case err == nil:
		s.missing.Store(false) // it is there again, or the cache is behind our read
	}
}

// isWrongShard reports whether the shard's key is absent, or another shard's. Then this etcd does
// not hold this replica's shard: nothing is written, and no agent is retired.
func (g *Gateway) isWrongShard(c *cache.Content) bool {
	if !c.Shard.Present() {
		return c.Unreadable[g.cfg.Keys.Shard()] == ""
	}
	return c.Shard.Record.ID != g.cfg.ShardID
}
