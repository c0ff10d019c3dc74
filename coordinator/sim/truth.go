package sim

import "github.com/leasehold/leasehold/store"

// Working counts the instances of a group that really work: their machines run, their reports
// arrive and their checks pass.
func (w *World) Working(group string) int {
	n := 0
	for _, a := range w.agents {
		if a.works && a.m.Group() == group {
			n++
		}
	}
	return n
}

// Works reports whether one instance works.
func (w *World) Works(id string) bool {
	a := w.agents[id]
	return a != nil && a.works
}

// Machines lists the IDs of all machines, in order.
func (w *World) Machines() []string {
	var out []string
	for _, c := range w.clouds {
		out = append(out, c.Instances()...)
	}
	return out
}

// Instances lists the IDs of all recorded instances, in order.
func (w *World) Instances() []string { return w.Names(store.KindInstances) }

// Instance returns the record of an instance.
func (w *World) Instance(id string) store.Versioned[store.Instance] { return w.instance(id) }

// Sound reports the truth about a machine with which nothing is wrong: it runs and its checks pass.
// If it has no stream now, that is not its fault: its coordinator died or etcd was unreachable, and
// it is about to be back.
func (w *World) Sound(id string) bool {
	a := w.agents[id]
	return a != nil && a.m.Running() && a.up && !a.frozen && !a.cut && !a.retired && (a.open || a.excused) &&
		a.passing() && a.said.Healthy && a.said.BootID == a.m.BootID()
}

// Machine returns the machine of an instance; false if there is none.
func (w *World) Machine(id string) (Machine, bool) {
	for _, c := range w.clouds {
		if m := c.Machine(id); m != nil {
			return c.describe(m), true
		}
	}
	return Machine{}, false
}

// Serves reports whether an instance does its work from its users' point of view: its machine runs
// and its checks pass, whether or not a coordinator knows.
func (w *World) Serves(id string) bool {
	a := w.agents[id]
	return a != nil && a.serves()
}

func (a *agent) serves() bool { return a.m.Running() && a.up && !a.retired && a.passing() }
