package foresee

import (
	"math"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// lead drives leader.Leader in virtual time. Its commands are carried out at once, and succeed.
type lead struct {
	w      *World
	r      *recorder
	leader *leader.Leader
	events []leader.Event // pending, in order
	plan   plan.Plan      // the last one of the group
	begun  bool           // there was one
	moved  bool           // anything but the status has changed in this step
}

// Creations are not paced while the group is followed, because that would take a plan for each of
// them: the recorder adds the time. Machines are listed only when something has changed.
const (
	unpaced      = 1e9
	unpacedBurst = math.MaxInt32
	minPoll      = 5 * time.Second
	soonAgain    = time.Second // a requested List is followed by another
)

func (w *World) lead(r *recorder) *lead {
	settings := &w.content.Shard.Record.Settings
	settings.CreateRate, settings.CreateBurst = unpaced, unpacedBurst
	settings.ProviderPoll = max(settings.ProviderPoll, store.Duration(minPoll))
	l := &lead{w: w, r: r}
	w.suspect = func(name string) { l.events = append(l.events, leader.ListRequested{Provider: name}) }
	l.leader = leader.New(leader.Config{
		Keys: w.keys, Evidence: w.evidence, Capabilities: w.capabilities(), Settings: *settings, Began: w.now, Jitter: jitter,
		// there is no other leader
		Fence: store.Fence{Key: w.keys.Of(store.KindLeader) + "foreseen", Created: math.MaxInt64},
	})
	return l
}

// step passes an event to the leader, and everything that follows from it.
func (l *lead) step(e leader.Event) {
	for l.events = append(l.events, e); len(l.events) > 0; {
		e := l.events[0]
		l.events = l.events[1:]
		view := leader.View{Content: l.w.content, Heard: l.w.now}
		for _, c := range l.leader.Step(l.w.now, view, e) {
			if answer := l.perform(c); answer != nil {
				l.events = append(l.events, answer)
			}
		}
	}
}

// next returns when something happens outside the leader or is urgent for it, and when it plans
// again. A zero time means never.
func (l *lead) next() (next, wake time.Time) {
	tick, wake := l.leader.NextStep(l.w.now)
	next = l.w.nextEvent()
	if l.leader.Pressing() || tick.Sub(l.w.now) <= soonAgain { // regular events bring nothing new
		next = plan.Sooner(next, tick)
	}
	return next, wake
}

// perform carries out a command, and returns its answer; nil if it has none.
func (l *lead) perform(c leader.Command) leader.Event {
	switch c := c.(type) {
	case leader.Recall:
		return leader.Recalled{}
	case leader.Compute:
		p := l.w.plan(c.Snapshot)
		if slices.Contains(c.Groups, l.w.group) {
			l.plan = p
			if !l.begun {
				l.r.begin(p)
			}
			l.begun = true
		}
		return leader.Planned{Plan: p}
	case leader.Commit:
		return l.carryOut(c)
	case leader.List:
		return leader.Listed{Provider: c.Provider, Begun: c.Begun, Machines: l.w.machinesOf(c.Provider)}
	case leader.Record:
		if !l.w.allHold(c.Conditions) {
			return leader.Recorded{Operation: c.Operation, Err: store.ErrConflict}
		}
		l.w.write(c.Writes...)
		return leader.Recorded{Operation: c.Operation, Revision: l.w.revision}
	case leader.Verify:
		if !l.w.allHold(c.Conditions) {
			return leader.Verified{Operation: c.Operation, Err: store.ErrConflict}
		}
		return leader.Verified{Operation: c.Operation}
	case leader.Invoke:
		l.moved = true
		l.w.invoke(c.Method, c.Instance.ID)
		return leader.Answered{
			Operation: c.Operation, Machine: provider.Machine{Instance: c.Instance.ID, Ref: "foreseen"},
		}
	default:
		return nil
	}
}

// carryOut commits actions.
func (l *lead) carryOut(c leader.Commit) leader.Committed {
	if !l.w.allHold(c.Conditions) {
		return leader.Committed{Err: store.ErrConflict}
	}
	for _, a := range c.Actions {
		l.r.note(*a)
		l.moved = l.moved || a.Instance != "" || !a.NoJournal && len(a.Writes) > 0
	}
	l.w.write(append(plan.GoneWrites(c.Actions, 0), c.Writes...)...)
	return leader.Committed{Revision: l.w.revision}
}
