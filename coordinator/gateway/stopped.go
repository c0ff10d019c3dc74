package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold/store"
)

// noteStopped records that an agent has stopped its workload for the record that ended its
// instance. No provider knows when a machine that was set up by hand has stopped, so the agent's
// statement ends the record (PROV-9). An agent repeats it in each hello, so a failed attempt is
// followed by another.
func (s *session) noteStopped(ctx context.Context, end *retired) {
	if !end.byHand || s.hello.GetStopped() != int64(end.revision) {
		return
	}
	keys := s.g.cfg.Keys
	// The last report stays for readers, unless it cannot be read: no other report follows (SAFE-16).
	last, err := readRecord[store.Report](ctx, s.g.deps.Store, keys.Report(s.instance))
	if unreadable := (*store.UnreadableError)(nil); errors.As(err, &unreadable) {
		last.Record, err = store.Report{}, nil
	}
	if err != nil {
		s.g.deps.Logger.Warn("the stop of an agent was not noted", "instance", s.instance, "error", err)
		return
	}
	rec := last.Record
	if rec.Stopped == end.revision {
		return
	}
	rec.Schema, rec.Instance, rec.Replica, rec.Received = store.Schema, s.instance, s.g.cfg.Replica, time.Now().UTC()
	rec.Agent, rec.BootID, rec.Epoch = s.agent, s.bootID, s.epoch
	rec.Healthy, rec.Why = false, "its workload was stopped, because the instance is being deleted"
	rec.Stopped = end.revision
	if _, err := s.g.stateWriter.commit(ctx, store.Txn{
		Conditions: []store.Condition{store.At(keys.Instance(s.instance), end.revision)},
		Writes:     []store.Write{store.Put(keys.Report(s.instance), store.Encode(rec))},
	}); err != nil {
		s.g.deps.Logger.Warn("the stop of an agent was not noted", "instance", s.instance, "error", err)
	}
}
