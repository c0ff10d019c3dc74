package sim

import (
	"slices"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// calm is the state of a group in which all agents report the same load, as long as nothing
// happens to any of them. Their reports are written once something does, or once one is read:
// nearly always the next ones come before.
type calm struct {
	agents  []*agent
	loads   *cache.Loads
	share   share // of each
	written bool  // the agents' reports are these loads
}

// settles makes a group calm if all of its agents have just reported the same.
func (l *load) settles(agents []*agent, together *loads, busy share) {
	if len(agents) == 0 || slices.ContainsFunc(agents, func(a *agent) bool {
		return a.unmeasured || len(a.shares) != 1 || a.shares[0] != busy
	}) {
		return
	}
	for _, a := range agents {
		a.reported.calm = l
	}
	l.calm = &calm{agents: agents, loads: &together.Loads, share: busy, written: true}
}

// bearCalmly makes the agents of a calm group report, as bearLoad does one by one. It returns false
// if the group is not calm.
func (w *World) bearCalmly(group string, l *load) bool {
	c := l.calm
	if c == nil || !l.reported || w.db.down || w.cfg.LoadSteady == 0 || w.cfg.LoadEvery < loadReport ||
		w.clock-c.share.at < loadMean {
		return false
	}
	n := len(c.agents)
	together := w.newLoads(group, n)
	if together == nil {
		return false
	}
	w.bearNext(group, l)
	if l.measured {
		w.followSize(group, l, n, n)
	}
	c.share, c.written = l.divided(w.clock, n), false
	together.Instances = c.loads.Instances
	windows := w.windowsOf([]share{c.share})
	for range n {
		w.db.rev++
		together.Windows, together.Revisions = append(together.Windows, windows), append(together.Revisions, w.db.rev)
	}
	c.loads = &together.Loads
	w.leader.committed(batch{loads: c.loads})
	for range n - 1 {
		w.chance.upTo(watchLag)
	}
	return true
}

// settle writes the reports of a calm group, which is calm no longer.
func (l *load) settle() {
	c := l.calm
	l.calm = nil
	if c == nil {
		return
	}
	for i, a := range c.agents {
		a.reported.calm = nil
		if c.written {
			continue
		}
		a.shares, a.host = append(a.shares[:0], c.share), store.HostReport{Windows: c.loads.Windows[i]}
		if v, ok := a.reported.record.(*store.Versioned[store.Report]); ok {
			c.loads.Write(i, v)
		}
		a.reported.kv.Modified, a.reported.kv.Value = c.loads.Revisions[i], nil
	}
}

// settle ends the calm of an agent's group, before something happens to the agent.
func (a *agent) settle() {
	if l := a.w.loads[a.m.Group()]; l != nil {
		l.settle()
	}
}
