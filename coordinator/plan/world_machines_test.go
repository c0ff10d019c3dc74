package plan

import (
	"maps"
	"slices"
	"sort"
	"time"

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

// call is a call to the provider.
type call struct {
	Call
	term     int
	startAt  time.Time
	begun    bool
	begunAt  time.Time
	effectAt time.Time // zero: it never has one
	answerAt time.Time
	failed   bool // by its answer; it may have had its effect
	noRoom   bool
	refused  bool   // for good
	missing  bool   // there was no such machine
	token    string // of a restart
}

// listing is a List under way.
type listing struct {
	begun, answerAt time.Time
	machines        map[string]machine
}

const (
	bootTime  = 2 * time.Second
	listEvery = 5 * time.Second
)

func (w *world) enqueue(c Call) {
	k := w.witness[c.Instance]
	if k == nil || k.calls.Busy {
		return
	}
	k.calls.Busy = true
	w.calls = append(w.calls, &call{Call: c, term: w.term, startAt: w.now.Add(w.fate.wait("queue", 3*time.Second))})
}

// begin is the moment in which a call leaves the queue: see coordinator/leader/operations.go.
func (w *world) begin(c *call) bool {
	in := w.instance(c.Instance)
	if in.Modified != c.Record || read[store.Shard](w, w.keys.Shard()).Record.Hold != nil {
		return false
	}
	if c.Kind != CallCreate && !w.holds(c.Conditions) {
		return false
	}
	if c.Kind == CallCreate {
		rec := in.Record
		if rec.Phase != store.Creating {
			if err := store.ValidateTransition(rec.Phase, store.Creating); err != nil {
				w.t.Fatalf("%v", err)
			}
			rec.Phase, rec.Since = store.Creating, w.now
		}
		rec.Called = true
		if !w.commit(c.Conditions, []store.Write{store.Put(in.Key, store.Encode(rec))}) {
			return false
		}
		c.noRoom = w.noRoom[rec.Zone]
	}
	if r := in.Record.Restart; r != nil {
		c.token = r.Token
	}
	c.begun, c.begunAt = true, w.now
	c.effectAt = w.now.Add(w.fate.wait("effect", callTimeout))
	c.answerAt = c.effectAt
	if w.fate.happens("call fails", 10) {
		c.failed = true
		if w.fate.happens("without effect", 50) {
			c.effectAt = time.Time{}
		}
	}
	c.refused = c.Kind == CallCreate && w.unmakable != "" && in.Record.Spec.Template.InstanceType == w.unmakable
	if c.noRoom || c.refused {
		c.effectAt, c.failed = time.Time{}, true
	}
	return true
}

// effect is what a call does to the world.
func (w *world) effect(c *call) {
	m := w.machines[c.Instance]
	switch {
	case c.Kind == CallRemove:
		delete(w.machines, c.Instance)
		delete(w.agents, c.Instance)
	case c.Kind == CallRestart && m == nil:
		c.missing = true
	case c.Kind == CallRestart:
		w.restart(c.Instance)
	case m == nil:
		zone := w.instance(c.Instance).Record.Zone
		// which may be a while ago: time passes in strides
		w.machines[c.Instance] = &machine{id: c.Instance, zone: zone, made: c.effectAt}
		w.agents[c.Instance] = &agent{
			healthy:     true,
			registersAt: w.now.Add(bootTime + w.fate.wait("boot", 10*time.Second)),
		}
		if w.sick != "" && w.instance(c.Instance).Record.Spec.Template.InstanceType == w.sick {
			w.agents[c.Instance].healthy, w.agents[c.Instance].ails = false, "machine"
		}
		w.crash(w.agents[c.Instance])
		if w.dumb || w.fate.happens("agent never registers", 5) {
			w.agents[c.Instance].registersAt = time.Time{}
		}
	}
}

// answer is what the leader learns of a call.
func (w *world) answer(c *call) {
	k := w.witness[c.Instance]
	if k == nil || c.term != w.term {
		return
	}
	k.calls.Busy = false
	provable := func(from time.Time) {
		if from.After(k.calls.AbsentFrom) {
			k.calls.AbsentFrom = from
		}
	}
	if c.Kind == CallCreate {
		if k.calls.NoRoom = c.noRoom; c.noRoom {
			w.full[provider] = map[string]time.Time{w.instance(c.Instance).Record.Zone: w.now.Add(30 * time.Second)}
		}
	}
	if c.Kind == CallRestart && c.missing {
		k.calls.Missing = true
		return
	}
	if c.failed {
		k.calls.Refused = c.refused
		k.calls.Problem, k.calls.RetryAt = "it did not work", w.now.Add(2*time.Second)
		switch {
		case c.Kind == CallCreate:
			provable(c.begunAt.Add(callTimeout + consistency))
		case c.Kind == CallRemove && k.calls.RemovalFailed.IsZero():
			k.calls.RemovalFailed = w.now
		}
		return
	}
	k.calls.Problem, k.calls.RetryAt = "", time.Time{}
	switch c.Kind {
	case CallRemove:
		k.calls.Deleted = w.now
		return
	case CallRestart:
		k.calls.Restarted = c.token
		return
	case CallCreate, CallRemoveCopy: // see below
	}
	k.calls.Made, k.calls.Ref = true, "ref-"+c.Instance
	provable(w.now.Add(consistency))
}

// pass lets time go by, and all happen that is due.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.callsDue()
	for _, id := range sortedIDs(w.machines) {
		w.machineDue(w.machines[id])
	}
	for _, id := range sortedIDs(w.agents) {
		w.agentDue(id, w.agents[id])
	}
	w.listDue()
	w.observe(false)
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

func (w *world) callsDue() {
	for _, c := range slices.Clone(w.calls) {
		if !c.begun && !w.now.Before(c.startAt) && !w.begin(c) {
			w.finish(c)
			if k := w.witness[c.Instance]; k != nil {
				k.calls.Busy = false
			}
			continue
		}
		if c.begun && !c.effectAt.IsZero() && !w.now.Before(c.effectAt) {
			w.effect(c)
			c.effectAt = time.Time{}
		}
		if c.begun && !w.now.Before(c.answerAt) && c.effectAt.IsZero() {
			w.answer(c)
			w.finish(c)
		}
	}
}

func (w *world) finish(c *call) {
	w.calls = slices.DeleteFunc(w.calls, func(o *call) bool { return o == c })
}

func (w *world) listDue() {
	if w.list == nil {
		w.list = &listing{begun: w.now, machines: map[string]machine{}}
		for id, m := range w.machines {
			w.list.machines[id] = *m
		}
		maps.DeleteFunc(w.list.machines, func(id string, _ machine) bool { return w.hidden[id] })
		for _, id := range sortedIDs(w.machines) {
			if w.now.Sub(w.machines[id].made) < consistency && w.fate.happens("new machine is not listed yet", 30) {
				delete(w.list.machines, id)
			}
		}
		w.list.answerAt = w.now.Add(w.fate.wait("list", 8*time.Second))
	}
	if w.now.Before(w.list.answerAt) {
		return
	}
	l := w.list
	w.list = nil
	if w.fate.happens("list fails", 5) {
		return
	}
	for id, k := range w.witness {
		m, there := l.machines[id]
		next := Sighting{Begun: l.begun, Listed: there, Times: 1, Since: l.begun}
		if there {
			next.State, next.Ref = "running", "ref-"+id
			if m.down {
				next.State, next.Down = "stopped", true
			}
		}
		if old := k.sighting; !old.Begun.IsZero() && old.Listed == next.Listed && old.Down == next.Down {
			next.Times, next.Since = old.Times+1, old.Since
		}
		k.sighting = next
	}
	w.listExtras(l)
}

// listExtras notes the machines that have our tag and no record.
func (w *world) listExtras(l *listing) {
	for id := range w.extras {
		if _, there := l.machines[id]; !there || w.instance(id).Present() {
			delete(w.extras, id)
		}
	}
	for id, m := range l.machines {
		if w.instance(id).Present() {
			continue
		}
		x, seen := w.extras[id]
		if !seen {
			x = Extra{Instance: id, Group: m.group, Provider: provider, Zone: m.zone, Ref: "ref-" + id, Since: w.now}
		}
		_, stray := w.kvs[w.keys.Stray(id)]
		x.Stray = x.Stray || stray
		_, x.Gone = w.kvs[w.keys.Gone(w.keys.Instance(id))]
		w.extras[id] = x
	}
}

func sortedIDs[T any](m map[string]T) []string {
	var out []string
	for id := range m {
		out = append(out, id)
	}
	sort.Strings(out)
	return out
}
