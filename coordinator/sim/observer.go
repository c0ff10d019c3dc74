package sim

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// Observer has callbacks. Each may be nil.
type Observer struct {
	// Planned is called with each plan before its first action is carried out. It must not change
	// the snapshot or the plan.
	Planned func(at time.Time, s *plan.Snapshot, p *plan.Plan)
	// Committing is called with an action whose conditions hold, before it changes anything.
	Committing func(at time.Time, s *plan.Snapshot, p *plan.Plan, a *plan.Action)
	// Committed is called with each action that was carried out.
	Committed func(at time.Time, a *plan.Action, rev store.Revision)
	// Overtaken is called with each action that was not carried out because something had changed.
	Overtaken func(at time.Time, a *plan.Action)
	// Removing is called when a provider is asked to remove an instance's machine.
	Removing func(at time.Time, rec store.Instance)
	// Membership is called when a load balancer is asked for something.
	Membership func(at time.Time, call plan.MemberCall)
	// Machine is called when the state of a machine changes.
	Machine func(at time.Time, m Machine)
	// Judged is called when a verdict changes.
	Judged func(at time.Time, group, instance string, before, now plan.Judgment)
	// Stirred is called with an instance for which Sound, Serves or Machine may return something
	// else from now on, so that callers need not poll all instances.
	Stirred func(instance string)
	// Noted is called with a text for other events: faults, and what operators and agents do.
	Noted func(at time.Time, what string)
	// Changed is called with every change of a key, in order.
	Changed func(at time.Time, e store.Event)
	// Broken is called for what must never happen: an invalid transaction, an illegal transition.
	Broken func(at time.Time, what string)
}

// Machine is a machine whose state has changed.
type Machine struct {
	Event    fake.Event
	Provider string
	Instance string
	Group    string
	Zone     string
	Boot     int
	State    provider.State
}

func (w *World) stir(instance string) {
	if a := w.agents[instance]; a != nil {
		a.settle()
	}
	if w.cfg.Observer.Stirred != nil {
		w.cfg.Observer.Stirred(instance)
	}
}

func (w *World) broken(what string) {
	if w.cfg.Observer.Broken == nil {
		panic("sim: " + what)
	}
	w.cfg.Observer.Broken(w.Now(), what)
}
