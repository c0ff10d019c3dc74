package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Flaw is a fault of all machines that are created from a template.
type Flaw string

// The flaws.
const (
	NeverBoots     Flaw = "never boots"     // a machine ends at once
	NeverRegisters Flaw = "never registers" // its agent never connects
	NeverHealthy   Flaw = "never healthy"   // its checks never pass
	CrashesSoon    Flaw = "crashes soon"    // its workload ends after it has been healthy for a minute
)

// fails reports whether the flaw also makes the checks of running machines fail.
func (f Flaw) fails() bool { return f != "" && f != CrashesSoon }

// silent reports whether the agents of new machines never connect.
func (f Flaw) silent() bool { return f == NeverBoots || f == NeverRegisters }

// Kill ends a machine without warning.
func (w *World) Kill(id string) {
	if m := w.machine(id); m != nil && m.Running() {
		w.note("machine %s is killed", id)
		m.Crash("signal: killed")
	}
}

// Freeze stops an agent without its gateway noticing.
func (w *World) Freeze(id string) {
	if a := w.agents[id]; a != nil && a.up && !a.frozen {
		w.note("agent %s freezes", id)
		a.fallSilent(false)
		a.frozen = true
	}
}

// Delay makes the next report of an agent arrive so long after the last one, but before its lease
// ends.
func (w *World) Delay(id string, by time.Duration) {
	if a := w.agents[id]; a != nil && a.open {
		w.note("the next report of %s comes %s after the last", id, by)
		a.delay(by)
	}
}

// Cut cuts a machine off from all coordinators.
func (w *World) Cut(id string) {
	if a := w.agents[id]; a != nil && !a.cut {
		w.note("machine %s is cut off", id)
		a.fallSilent(w.chance.happens(50))
		a.cut = true
	}
}

// Return ends a Freeze or a Cut.
func (w *World) Return(id string) {
	a := w.agents[id]
	if a == nil || !a.frozen && !a.cut {
		return
	}
	w.note("agent %s returns", id)
	a.frozen, a.cut = false, false
	if !a.open {
		a.tries = 0
		a.retry()
	}
}

// Cure says what makes failing checks pass again.
type Cure string

// The cures.
const (
	CuredByItself  Cure = "itself" // by Heal
	CuredByRestart Cure = "restart"
	CuredByReboot  Cure = "reboot"
	CuredByNothing Cure = "nothing"
)

var illnesses = map[Cure]illness{
	CuredByItself: illTillBetter, CuredByRestart: illTillRestart,
	CuredByReboot: illTillReboot, CuredByNothing: illForGood,
}

// Sicken makes an instance's checks fail until it is cured.
func (w *World) Sicken(id string, cure Cure) {
	if a := w.agents[id]; a != nil {
		w.note("checks of %s fail, cured by %s", id, cure)
		a.ill = illnesses[cure]
		a.report()
		a.touch()
	}
}

// Heal makes its checks pass again.
func (w *World) Heal(id string) {
	if a := w.agents[id]; a != nil && a.ill != healthy {
		w.note("checks of %s pass again", id)
		a.ill = healthy
		a.report()
		a.touch()
	}
}

// Exit ends an instance's workload.
func (w *World) Exit(id string, code int) {
	if a := w.agents[id]; a != nil && a.up && a.exit == nil && !a.retired {
		w.note("workload of %s exits with %d", id, code)
		a.exit = &store.WorkloadExit{Code: code, At: w.Now()}
		a.report()
		a.touch()
	}
}

// Notice makes an instance's provider announce that it will take the machine away, and do so later.
func (w *World) Notice(id string, in time.Duration) {
	a := w.agents[id]
	if a == nil || !a.up {
		return
	}
	w.note("notice for %s: it ends in %s", id, in)
	a.notice = &store.Notice{Kind: "spot", Why: "interruption", In: store.Duration(in), At: w.Now()}
	a.report()
	m, boots := a.m, a.m.Boots
	w.after(in, func() {
		if m.Running() && m.Boots == boots {
			m.Exit("taken away by the provider")
		}
	})
}

// Goodbye makes an agent say goodbye, and then do what it announced.
func (w *World) Goodbye(id string, kind store.Goodbye) {
	a := w.agents[id]
	if a == nil || !a.open {
		return
	}
	w.note("agent %s says goodbye: %s", id, kind)
	a.leave(kind)
	m := a.m
	switch kind {
	case store.GoodbyeShutdown:
		a.later(w.chance.upTo(3*time.Second), func() { m.Exit("") })
	case store.GoodbyeEvacuating:
		a.later(w.chance.upTo(time.Minute), func() { m.Exit("") })
	default:
		a.later(w.chance.upTo(2*time.Second), a.connect)
	}
}

// SpoilTemplate gives all machines of a template a flaw, including existing ones as far as
// possible.
func (w *World) SpoilTemplate(hash string, flaw Flaw) {
	w.note("template %s is bad: %s", hash, flaw)
	w.bad[hash] = flaw
	for _, a := range w.agentsInOrder() {
		a.report()
		a.touch()
	}
}

// MendTemplate takes that back for machines whose agents connect.
func (w *World) MendTemplate(hash string) {
	delete(w.bad, hash)
	for _, a := range w.agentsInOrder() {
		a.report()
		a.touch()
	}
}

// StuckHooks sets the percentage of drain hooks that never end.
func (w *World) StuckHooks(percent int) { w.stuckHooks = percent }

// LoseAnswers sets the percentage of the leader's commits that take effect without an answer.
func (w *World) LoseAnswers(percent int) { w.lost = percent }

func (w *World) agentsInOrder() []*agent {
	if w.inOrder == nil {
		w.inOrder = slices.SortedFunc(maps.Values(w.agents),
			func(a, b *agent) int { return strings.Compare(a.m.ID, b.m.ID) })
	}
	return w.inOrder
}

// agentsOf returns the agents on the machines of a group, in order of instance.
func (w *World) agentsOf(group string) []*agent { return w.ofGroup[group] }

func (w *World) addAgent(a *agent) {
	a.settle()
	w.agents[a.m.ID], w.inOrder = a, nil
	all := slices.Clone(w.agentsOf(a.m.Group()))
	i, there := slices.BinarySearchFunc(all, a.m.ID, compareID)
	if there {
		all[i] = a
	} else {
		all = slices.Insert(all, i, a)
	}
	w.ofGroup[a.m.Group()] = all
}

func (w *World) dropAgent(id string) {
	a := w.agents[id]
	if a == nil {
		return
	}
	a.settle()
	delete(w.agents, id)
	w.inOrder = nil
	all := slices.Clone(w.agentsOf(a.m.Group()))
	if i, there := slices.BinarySearchFunc(all, id, compareID); there {
		all = slices.Delete(all, i, i+1)
	}
	w.ofGroup[a.m.Group()] = all
}

func compareID(a *agent, id string) int { return strings.Compare(a.m.ID, id) }
