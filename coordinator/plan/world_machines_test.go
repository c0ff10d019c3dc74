package plan

import (
	"errors"
	"slices"
	"sort"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// machine is one machine at the provider.
type machine struct {
	id   string
	zone string
	made time.Time
	down bool
	upAt time.Time // zero: it stays down if it is
	// group is its tag, if it is not its record that tells.
	group string
}

// work is something that takes time: a transaction with which a call begins, a call, or a List.
type work struct {
	term     int
	at       time.Time // when it is done
	begun    bool      // it happens even under the next leader, which knows nothing of it
	instance string    // whose machine is made
	do       func(told bool)
}

const (
	bootTime = 2 * time.Second
)

// later does something after a while, as time passes.
func (w *world) later(p work, after time.Duration) {
	p.term, p.at = w.term, w.now.Add(after)
	w.work = append(w.work, &p)
}

// due does what is due, and what follows from it at once.
func (w *world) due() {
	for {
		i := slices.IndexFunc(w.work, func(p *work) bool { return !p.at.After(w.now) })
		if i < 0 {
			return
		}
		p := w.work[i]
		w.work = slices.Delete(w.work, i, i+1)
		p.do(p.term == w.term)
	}
}

// Begin is the transaction with which a call begins, once it has left its queue.
func (o outside) Begin(conditions []store.Condition, writes []store.Write, done func(store.Revision, error)) {
	o.later(work{do: func(bool) {
		var err error
		if !o.commit(conditions, writes, 0) {
			err = store.ErrConflict
		}
		done(o.rev, err)
	}}, o.fate.wait("queue", 3*time.Second))
}

// Invoke is a call. It may fail with its effect or without.
func (o outside) Invoke(kind CallKind, id string, done func(provider.Machine, error)) {
	rec := o.instance(id).Record
	takes := o.fate.wait("effect", CallTimeout)
	var err error
	effect := true
	if o.fate.happens("call fails", 10) {
		err = errors.New("it did not work")
		effect = !o.fate.happens("without effect", 50)
	}
	if kind == CallCreate && o.noRoom[rec.Zone] {
		err, effect = &provider.Error{Kind: provider.Capacity}, false
	}
	if kind == CallCreate && o.unmakable != "" && rec.Spec.Template.InstanceType == o.unmakable {
		err, effect = &provider.Error{Kind: provider.Deleted, Message: "it did not work"}, false
	}
	if kind == CallRemoveCopy {
		effect = false
	}
	p := work{begun: true, do: func(told bool) {
		if effect && !o.effect(kind, id, rec.Zone) {
			err = provider.ErrNotFound
		}
		if told {
			done(provider.Machine{Instance: id, Ref: "ref-" + id}, err)
		}
	}}
	if kind == CallCreate && effect {
		p.instance = id
	}
	o.later(p, takes)
}

// effect is what a call does to the world; false if there is no machine to restart.
func (w *world) effect(kind CallKind, id, zone string) bool {
	m := w.machines[id]
	switch {
	case kind == CallRemove:
		delete(w.machines, id)
		delete(w.agents, id)
	case kind == CallHalt:
		w.kill(id)
	case kind == CallRestart && m == nil:
		return false
	case kind == CallRestart:
		w.restart(id)
	case m == nil:
		w.machines[id] = &machine{id: id, zone: zone, made: w.now}
		a := &agent{healthy: true, registersAt: w.now.Add(bootTime + w.fate.wait("boot", 10*time.Second))}
		w.agents[id] = a
		if w.sick != "" && w.instance(id).Record.Spec.Template.InstanceType == w.sick {
			a.healthy, a.ails = false, "machine"
		}
		w.crash(a)
		if w.dumb || w.fate.happens("agent never registers", 5) {
			a.registersAt = time.Time{}
		}
	}
	return true
}

// List lists the machines that there are now.
func (o outside) List(done func([]provider.Machine, error)) {
	var list []provider.Machine
	for _, id := range sortedIDs(o.machines) {
		m := o.machines[id]
		if o.hidden[id] || o.now.Sub(m.made) < Consistency && o.fate.happens("new machine is not listed yet", 30) {
			continue
		}
		listed := provider.Machine{
			Instance: id, Shard: "shard", Group: m.group, Ref: "ref-" + id, Zone: m.zone, State: provider.StateRunning,
		}
		if m.down {
			listed.State = provider.StateStopped
		}
		list = append(list, listed)
	}
	o.later(work{begun: true, do: func(told bool) {
		switch {
		case !told:
		case o.fate.happens("list fails", 5):
			done(nil, errors.New("it did not work"))
		default:
			done(list, nil)
		}
	}}, o.fate.wait("list", 8*time.Second))
}

// pass lets time go by, and all happen that is due.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.due()
	for _, id := range sortedIDs(w.machines) {
		w.machineDue(w.machines[id])
	}
	for _, id := range sortedIDs(w.agents) {
		w.agentDue(id, w.agents[id])
	}
	w.listDue()
}

// restart takes a machine down and has it come up again from another boot. What ails its agent is
// over then, as a rule.
func (w *world) restart(id string) {
	m, a := w.machines[id], w.agents[id]
	w.silence(id, true)
	m.down, m.upAt = true, w.now.Add(time.Second+w.fate.wait("restart", 8*time.Second))
	a.boot++
	a.registered, a.registersAt, a.exit = false, time.Time{}, nil
	a.healthy = a.healthy || a.ails != "machine"
	w.crash(a)
}

// reboot has a machine start again by itself, which its provider does not notice.
func (w *world) reboot(id string) {
	a := w.agents[id]
	w.silence(id, true)
	a.boot++
	a.registered, a.registersAt, a.silentFrom, a.exit = false, w.now.Add(bootTime), time.Time{}, nil
}

func (w *world) machineDue(m *machine) {
	if m.upAt.IsZero() || w.now.Before(m.upAt) {
		return
	}
	m.down, m.upAt = false, time.Time{}
	a := w.agents[m.id]
	a.silentFrom, a.returnsAt = time.Time{}, time.Time{}
	a.registersAt = w.now.Add(bootTime)
}

// listDue has the machines listed.
func (w *world) listDue() {
	w.lead.Tick()
	w.due()
}

func sortedIDs[T any](m map[string]T) []string {
	var out []string
	for id := range m {
		out = append(out, id)
	}
	sort.Strings(out)
	return out
}
