package leader

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// operation is a provider call in progress, with its state.
type operation struct {
	number int
	call   plan.Call
	record store.Instance
	method Method
	begun  time.Time
}

// beginCalls begins the calls whose turn it is.
func (l *Leader) beginCalls(now time.Time, v View) {
	for {
		begun, next := l.calls.Begin(now, v.settings())
		l.queued = next
		if len(begun) == 0 {
			return
		}
		for _, b := range begun {
			l.do(Dequeued{Kind: b.Kind, Waited: b.Waited})
			l.beginCall(now, v, b)
		}
	}
}

// beginCall checks the record once more when the call leaves the queue. Every call is recorded
// before it begins, except the removal of a machine: its record already says that the machine must
// be removed, so its evidence is compared with etcd.
func (l *Leader) beginCall(now time.Time, v View, begun Begun) {
	call := begun.Call
	in, there := v.Content.Instances[call.Instance]
	if !there || in.Modified != call.Record || v.Content.Shard.Record.Hold != nil ||
		call.Kind == plan.CallRestart && bootedSince(v, in.Record) ||
		call.Kind == plan.CallHalt && haltIsOld(now, in.Record.Drill, begun.Waited) {
		l.cfg.Evidence.Dropped(call.Instance) // it is planned again on the current state
		l.calls.End(call)
		return
	}
	l.last++
	op := &operation{number: l.last, call: call, record: in.Record, begun: now}
	l.operations[op.number] = op
	switch call.Kind {
	case plan.CallCreate:
		l.do(l.recordCreation(op, in.Key))
	case plan.CallRestart:
		l.do(l.recordRestart(op, in.Key))
	case plan.CallRemoveCopy:
		l.do(l.recordCopy(op, in.Key))
	case plan.CallHalt:
		l.do(l.recordHalt(op, in.Key))
	default:
		l.do(Verify{Operation: op.number, Instance: in.Record, Conditions: call.Conditions})
	}
}

// haltIsOld reports whether a drill has waited in the queue so long that the plan must check the
// group again, or may not begin any more (DAY-6).
func haltIsOld(now time.Time, drill *store.Drill, waited time.Duration) bool {
	return drill == nil || waited > haltWait || !now.Before(drill.At.Add(store.DrillBegins))
}

// bootedSince reports whether there is nothing to restart: no restart is wanted any more, or
// another boot than the one to end already reports.
func bootedSince(v View, rec store.Instance) bool {
	if rec.Restart == nil {
		return true
	}
	alive, there := v.Content.Alive[rec.ID]
	return there && rec.Restart.Boot != "" && alive.Record.BootID != rec.Restart.Boot
}

// deadline returns when a call that is recorded must have ended. It counts from before the record:
// a leader that finds the record knows when the last call has ended, however long this process
// stalls in between.
func (l *Leader) deadline(op *operation) time.Time {
	return op.begun.Add(l.cfg.Capabilities[op.call.Provider].CallTimeout)
}

// recordCreation writes that the machine may exist from now on. It compares everything that the
// plan saw: an operator's pause or hold, or a new leader, wins over a call that has not begun
// (SAFE-8, SAFE-12).
func (l *Leader) recordCreation(op *operation, key string) Record {
	rec := &op.record
	what, from := store.Effect{Kind: store.EffectAsked, Name: rec.Spec.Provider}, rec.Phase
	again := from == store.Creating
	if again {
		what.Kind = store.EffectAskedAgain
	} else {
		rec.Phase, rec.Since = store.Creating, op.begun.UTC()
	}
	rec.Called = true
	if rec.Site == "" {
		rec.Site = l.cfg.Capabilities[op.call.Provider].Site
	}
	rec.Last = store.Decision{Rule: "SAFE-8", Why: reason.Effect(what), Revision: op.call.Revision, At: op.begun.UTC()}
	r := Record{
		Operation: op.number, Kind: plan.CallCreate, Instance: *rec, From: from, Conditions: op.call.Conditions,
		Writes: []store.Write{store.Put(key, store.Encode(*rec))}, Deadline: l.deadline(op),
	}
	if !again {
		r.Entries = []store.JournalEntry{{
			Kind: store.EntryCall, Rule: "SAFE-8", What: reason.Effect(what), Effect: what, Group: rec.Group,
			Instance: rec.ID, Slot: rec.Place(), From: from, To: store.Creating, Revision: op.call.Revision,
		}}
	}
	return r
}

// recordRestart writes that the machine is about to be restarted, so a leader that was deposed
// meanwhile restarts nothing. The call names the boot to end, so a late one ends no other (SAFE-8).
// The journal has only the first of several calls: a provider may put a restart off for long.
func (l *Leader) recordRestart(op *operation, key string) Record {
	before := op.record.Last.Why
	r := l.recordCall(op, key, store.JournalEntry{
		Rule: op.record.Restart.Rule, Effect: store.Effect{Kind: store.EffectAskedRestart},
	})
	if before == r.Instance.Last.Why {
		r.Entries = nil
	}
	return r
}

// recordCopy writes that a second machine of the instance is about to be removed.
func (l *Leader) recordCopy(op *operation, key string) Record {
	return l.recordCall(op, key, store.JournalEntry{
		Rule: "PROV-4", Effect: store.Effect{Kind: store.EffectAskedCopy, Text: op.call.Copy.Ref},
	})
}

// recordHalt writes that the machine is about to be killed for a drill, so that the call is made at
// most once: a call with a lost answer is not repeated (DAY-6).
func (l *Leader) recordHalt(op *operation, key string) Record {
	mark := *op.record.Drill
	mark.Asked = true
	op.record.Drill = &mark
	cause := store.Cause{Kind: store.CauseOrder, By: mark.By}
	return l.recordCall(op, key, store.JournalEntry{
		Rule: "DAY-6", Effect: store.Effect{Kind: store.EffectAskedDrill},
		Why: reason.Short(cause), Cause: cause,
		Facts: []store.Fact{{Kind: store.FactRequest, Name: mark.Request}},
	})
}

// recordCall writes that a call for an existing machine is about to be made, with its journal
// entry.
func (l *Leader) recordCall(op *operation, key string, e store.JournalEntry) Record {
	rec := &op.record
	e.Effect.Name = rec.Spec.Provider
	e.What = reason.Effect(e.Effect)
	e.Kind, e.Group, e.Instance, e.Slot, e.Revision = store.EntryCall, rec.Group, rec.ID, rec.Place(), op.call.Revision
	rec.Last = store.Decision{Rule: e.Rule, Why: e.What, Revision: op.call.Revision, At: op.begun.UTC()}
	if e.Why != "" {
		rec.Last.What, rec.Last.Why, rec.Last.Cause = e.What, e.Why, e.Cause
	}
	return Record{
		Operation: op.number, Kind: op.call.Kind, Instance: *rec, From: rec.Phase, Conditions: op.call.Conditions,
		Writes: []store.Write{store.Put(key, store.Encode(*rec))}, Deadline: l.deadline(op),
		Entries: []store.JournalEntry{e},
	}
}

// recorded makes the call if its record is written. If it could not be, the provider is not called.
func (l *Leader) recorded(now time.Time, e Recorded) {
	op := l.operations[e.Operation]
	if e.Err != nil {
		l.postpone(op, e.Err)
		return
	}
	l.cfg.Evidence.Wrote(op.record.Group, e.Revision)
	method := Create
	switch op.call.Kind {
	case plan.CallRestart:
		method = Restart
	case plan.CallRemoveCopy:
		method = RemoveCopy
	case plan.CallHalt:
		method = Halt
	case plan.CallCreate, plan.CallRemove: // a removal is verified instead
	}
	l.invoke(now, op, method, l.deadline(op))
}

// verified begins a removal if its conditions hold. The machine is first stopped gracefully
// (HEAL-14).
func (l *Leader) verified(now time.Time, e Verified) {
	op := l.operations[e.Operation]
	if e.Err != nil {
		l.postpone(op, e.Err)
		return
	}
	op.begun = now
	timeout := l.cfg.Capabilities[op.call.Provider].CallTimeout
	l.invoke(now, op, Stop, now.Add(timeout+op.record.Spec.StopTimeout.D()))
}

func (l *Leader) invoke(now time.Time, op *operation, method Method, deadline time.Time) {
	op.method = method
	begun := now
	if method == Delete {
		begun = op.begun // a removal is one call that consists of two
	}
	l.do(Invoke{
		Operation: op.number, Method: method, Instance: op.record, Begun: begun, Deadline: deadline, Copy: op.call.Copy,
	})
}

// answered handles a provider's answer.
func (l *Leader) answered(now time.Time, e Answered) {
	op := l.operations[e.Operation]
	switch {
	case op.method == Create:
		l.cfg.Evidence.Created(op.record, op.begun, e.Machine, e.Err)
	case op.method == Restart:
		l.cfg.Evidence.Restarted(op.record.ID, op.record.Restart.Token, e.Err)
		l.requestList(op.call.Provider) // earlier Lists show the previous boot
	case op.method == Halt:
		l.cfg.Evidence.Dropped(op.record.ID) // the next List shows its result
	case op.method == RemoveCopy:
		l.cfg.Evidence.CopyRemoved(op.record.ID, e.Err)
		l.requestList(op.call.Provider)
	case op.method == Stop && !errors.Is(e.Err, provider.ErrThrottled):
		// a machine that did not stop is removed nevertheless
		l.invoke(now, op, Delete, now.Add(l.cfg.Capabilities[op.call.Provider].CallTimeout))
		return
	default:
		l.cfg.Evidence.Removed(op.record.ID, e.Err)
		l.requestList(op.call.Provider) // only a List proves the removal
	}
	l.end(op)
}

// postpone ends an operation whose call was not made.
func (l *Leader) postpone(op *operation, err error) {
	l.cfg.Evidence.Postponed(op.record.ID, waitAfter(err))
	l.end(op)
}

func (l *Leader) end(op *operation) {
	delete(l.operations, op.number)
	l.calls.End(op.call)
}
