package sim

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// Observer is told what happens. What is nil is not told.
type Observer struct {
	// Planned is told each plan before its first action is carried out. Both are the planner's own
	// and must not be changed.
	Planned func(at time.Time, s *plan.Snapshot, p *plan.Plan)
	// Committing is told an action whose conditions hold, before it changes anything.
	Committing func(at time.Time, s *plan.Snapshot, p *plan.Plan, a *plan.Action)
	// Committed is told each action that was carried out.
	Committed func(at time.Time, a *plan.Action, rev store.Revision)
	// Overtaken is told each action that was not carried out because something had changed
	// meanwhile.
	Overtaken func(at time.Time, a *plan.Action)
	// Removing is told when a provider is asked to remove an instance's machine.
	Removing func(at time.Time, rec store.Instance)
	// Machine is told what becomes of machines.
	Machine func(at time.Time, m Machine)
	// Judged is told of a verdict that is another than before.
	Judged func(at time.Time, group, instance string, before, now plan.Judgment)
	// Stirred is told an instance of which Sound, Serves or Machine may answer otherwise from now
	// on, so that not all have to be set.
	Stirred func(instance string)
	// Noted is told in words what else happens: what goes wrong, and what operators and agents do.
	Noted func(at time.Time, what string)
	// Changed is told every change of a key, in order.
	Changed func(at time.Time, e store.Event)
	// Broken is told what must never happen in any world: a transaction that no store takes, a step
	// that no phase allows.
	Broken func(at time.Time, what string)
}

// MachineEvent is what became of a machine.
type MachineEvent string

// What becomes of machines.
const (
	MachineMade      MachineEvent = "made"
	MachineDoubled   MachineEvent = "doubled" // made though there was one with its instance's ID
	MachineRestarted MachineEvent = "restarted"
	MachineStopped   MachineEvent = "stopped"
	MachineCrashed   MachineEvent = "crashed"
	MachineRemoved   MachineEvent = "removed"
)

// Machine is a machine of which something became.
type Machine struct {
	Event    MachineEvent
	Provider string
	Instance string
	Group    string
	Zone     string
	Boot     int
	State    provider.State
}

func (w *World) tellMachine(e MachineEvent, m *machine) {
	w.stir(m.id)
	if w.cfg.Observer.Machine != nil {
		w.cfg.Observer.Machine(w.Now(), Machine{
			Event: e, Provider: m.cloud.cfg.Name, Instance: m.id, Group: m.group, Zone: m.zone, Boot: m.boots,
			State: m.state,
		})
	}
}

func (w *World) stir(instance string) {
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
