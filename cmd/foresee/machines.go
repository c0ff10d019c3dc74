package foresee

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// soon is how long agents and providers take for anything but starting a machine.
const soon = time.Second

// machine is a simulated machine and its agent.
type machine struct {
	at    time.Time // when its agent will report what is wanted of it now; zero: nothing to report
	boots int       // number of restarts of the machine
	gone  bool
}

func (w *World) machine(id string) *machine {
	m := w.machines[id]
	if m == nil {
		m = &machine{}
		w.machines[id] = m
	}
	return m
}

// invoke carries out a provider call.
func (w *World) invoke(method leader.Method, id string) {
	switch m := w.machine(id); method {
	case leader.Restart:
		m.boots++
	case leader.Delete:
		m.gone = true
	case leader.Create, leader.Stop, leader.Halt: // the record tells that there is a machine
	case leader.RemoveCopy: // there are none
	}
}

// expect records when agents will have done what is wanted of them now.
func (w *World) expect() {
	for _, id := range w.content.ByGroup[w.group] {
		rec, m := w.content.Instances[id].Record, w.machine(id)
		after, owes := w.owes(rec)
		switch {
		case !owes:
			m.at = time.Time{}
		case m.at.IsZero():
			m.at = w.now.Add(after)
		}
	}
}

// owes reports whether an agent has something to do, and how long that takes.
func (w *World) owes(rec store.Instance) (time.Duration, bool) {
	alive, hasAlive := w.content.Alive[rec.ID]
	report := w.content.Reports[rec.ID].Record
	if rec.Spec.Provider == store.ProviderNone { // when the machine will be set up is unknown
		if rec.Phase == store.Deleting {
			return soon, report.Stopped != w.content.Instances[rec.ID].Modified
		}
		if !hasAlive {
			return 0, false
		}
	}
	switch rec.Phase {
	case store.Creating, store.Booting, store.Checking:
		current := hasAlive && report.BootID == alive.Record.BootID
		ended := current && !report.Healthy && report.Workload != nil // its agent does not restart it by itself
		return w.left(rec), rec.Called && !(current && report.Healthy) && !ended
	case store.Stopping:
		r := rec.Restart
		return w.pace, r != nil && r.Level == store.RestartWorkload && report.Restarted != r.Token
	case store.Starting:
		r := rec.Restart
		return w.pace, !hasAlive || r != nil && r.Level == store.RestartMachine && alive.Record.BootID == r.Boot
	case store.Draining:
		return soon, rec.Drain != nil && rec.Drain.Token != "" && hasAlive && report.Drained != rec.Drain.Token
	case store.Running:
		return soon, rec.Config != "" && hasAlive && report.Healthy && report.Config != rec.Config
	default:
		return 0, false
	}
}

// left returns how much longer an instance takes to start.
func (w *World) left(rec store.Instance) time.Duration {
	return max(soon, w.pace-max(0, w.now.Sub(rec.Created)))
}

// nextEvent returns when something happens outside the planner; zero: never.
func (w *World) nextEvent() time.Time {
	var next time.Time
	for _, id := range w.content.ByGroup[w.group] {
		if m := w.machine(id); !m.at.IsZero() && (next.IsZero() || m.at.Before(next)) {
			next = m.at
		}
	}
	return next
}

// happen performs everything that is due.
func (w *World) happen() {
	for _, id := range append([]string(nil), w.content.ByGroup[w.group]...) {
		if m := w.machine(id); !m.at.IsZero() && !m.at.After(w.now) {
			m.at = time.Time{}
			w.reportOf(id, m)
		}
	}
}

// reportOf makes the agent of an instance report that everything is in order.
func (w *World) reportOf(id string, m *machine) {
	rec := w.content.Instances[id].Record
	alive, report := w.content.Alive[id].Record, w.content.Reports[id].Record
	if alive.BootID == "" || m.boots > 0 {
		alive.BootID = fmt.Sprintf("imagined-%d", m.boots)
	}
	alive.Schema, alive.Instance, alive.State = store.Schema, id, store.StreamOpen
	alive.Since, alive.Epoch = w.now.UTC(), alive.Epoch+1
	report.Schema, report.Instance, report.BootID, report.Received = store.Schema, id, alive.BootID, w.now.UTC()
	report.Healthy, report.Why, report.Config, report.Checks = true, "", rec.Config, nil
	if rec.Restart != nil {
		report.Restarted = rec.Restart.Token
	}
	if rec.Drain != nil {
		report.Drained = rec.Drain.Token
	}
	if rec.Phase == store.Deleting {
		report.Stopped, report.Healthy = w.content.Instances[id].Modified, false
	}
	w.write(store.Put(w.keys.Alive(id), store.Encode(alive)), store.Put(w.keys.Report(id), store.Encode(report)))
}

// machinesOf returns the machines that a provider lists: all that were requested run.
func (w *World) machinesOf(name string) []provider.Machine {
	var machines []provider.Machine
	for id, in := range w.content.Instances {
		if m := w.machines[id]; in.Record.Spec.Provider == name && w.hasMachine(in.Record) && (m == nil || !m.gone) {
			machines = append(machines, provider.Machine{
				Instance: id, Group: in.Record.Group, Ref: in.Record.Ref, State: provider.StateRunning,
				Zone: in.Record.Zone,
			})
		}
	}
	if s := w.content.Status[w.group].Record; s.Accepted != nil && s.Accepted.Provider == name {
		for _, d := range s.Damaged { // their machines are known from the leader's records
			if d.What == store.DamageLost && d.Instance != "" {
				machines = append(machines,
					provider.Machine{Instance: d.Instance, Group: w.group, State: provider.StateRunning})
			}
		}
	}
	return machines
}

// hasMachine reports whether a provider was ever asked for an instance, or must have been.
func (w *World) hasMachine(rec store.Instance) bool {
	switch rec.Phase {
	case store.Pending, store.Creating, store.Deleting:
		return rec.Called
	default:
		return true
	}
}
