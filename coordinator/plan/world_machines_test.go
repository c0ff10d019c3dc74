package plan

import (
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
}

// agent is what runs on a machine.
type agent struct {
	registersAt time.Time // zero: never
	registered  bool
	silentFrom  time.Time // zero: it reports
	cutOff      bool      // its stream broke when it fell silent
	returnsAt   time.Time // after an outage of the store
	healthy     bool
	epoch       uint64
}

// call is a call to the provider.
type call struct {
	Call
	tenure   int
	startAt  time.Time
	begun    bool
	begunAt  time.Time
	effectAt time.Time // zero: it never has one
	answerAt time.Time
	failed   bool // by its answer; it may have had its effect
	noRoom   bool
}

// listing is a List under way.
type listing struct {
	begun, answerAt time.Time
	machines        map[string]machine
}

const (
	bootTime    = 2 * time.Second
	listEvery   = 5 * time.Second
	overdueFrom = 7500 * time.Millisecond
)

func (w *world) enqueue(c Call) {
	k := w.witness[c.Instance]
	if k == nil || k.calls.Busy {
		return
	}
	k.calls.Busy = true
	w.calls = append(w.calls, &call{Call: c, tenure: w.tenure, startAt: w.now.Add(w.fate.wait("queue", 3*time.Second))})
}

// begin is the moment in which a call leaves the queue: see coordinator/queue.go.
func (w *world) begin(c *call) bool {
	in := w.instance(c.Instance)
	if in.Modified != c.Record || read[store.Shard](w, w.keys.Shard()).Record.Hold != nil {
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
	c.begun, c.begunAt = true, w.now
	c.effectAt = w.now.Add(w.fate.wait("effect", callTimeout))
	c.answerAt = c.effectAt
	if w.fate.happens("call fails", 10) {
		c.failed = true
		if w.fate.happens("without effect", 50) {
			c.effectAt = time.Time{}
		}
	}
	if c.noRoom {
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
	case m == nil:
		zone := w.instance(c.Instance).Record.Zone
		w.machines[c.Instance] = &machine{id: c.Instance, zone: zone, made: w.now}
		w.agents[c.Instance] = &agent{healthy: true, registersAt: w.now.Add(bootTime + w.fate.wait("boot", 10*time.Second))}
		if w.fate.happens("agent never registers", 5) {
			w.agents[c.Instance].registersAt = time.Time{}
		}
	}
}

// answer is what the leader learns of a call.
func (w *world) answer(c *call) {
	k := w.witness[c.Instance]
	if k == nil || c.tenure != w.tenure {
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
	if c.failed {
		k.calls.Problem, k.calls.RetryAt = "it did not work", w.now.Add(2*time.Second)
		if c.Kind == CallCreate {
			provable(c.begunAt.Add(callTimeout + consistency))
		}
		return
	}
	k.calls.Problem, k.calls.RetryAt = "", time.Time{}
	if c.Kind == CallRemove {
		k.calls.Deleted = w.now
		return
	}
	k.calls.Made, k.calls.Ref = true, "ref-"+c.Instance
	provable(w.now.Add(consistency))
}

// pass lets time go by, and all happen that is due.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.callsDue()
	for _, id := range sortedIDs(w.agents) {
		w.agentDue(id, w.agents[id])
	}
	w.listDue()
	w.observe(false)
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

func (w *world) agentDue(id string, a *agent) {
	in := w.instance(id)
	m := w.machines[id]
	if m == nil || m.down || !in.Present() || in.Record.Phase == store.Deleting {
		w.expire(id, a)
		return // dead, or retired by its gateway
	}
	switch {
	case !a.registered && !a.registersAt.IsZero() && !w.now.Before(a.registersAt) && a.silentFrom.IsZero():
		a.registered = true
		w.report(id)
	case a.registered && !a.returnsAt.IsZero() && !w.now.Before(a.returnsAt):
		a.returnsAt = time.Time{}
		if a.silentFrom.IsZero() {
			w.report(id)
		}
	default:
		w.expire(id, a)
	}
}

// expire ends the lease of an agent that has been silent for too long.
func (w *world) expire(id string, a *agent) {
	alive := read[store.Alive](w, w.keys.Alive(id))
	if !alive.Present() || a.silentFrom.IsZero() {
		return
	}
	silent := w.now.Sub(a.silentFrom)
	switch {
	case silent >= w.instance(id).Record.Spec.Report.LeaseTTL.D():
		w.observe(false)
		w.drop(w.keys.Alive(id))
		w.observe(false)
	case alive.Record.State == store.StreamOpen && silent >= overdueFrom:
		w.setState(id, store.StreamOverdue)
	}
}

// report is an agent's hello with a report.
func (w *world) report(id string) {
	in, a := w.instance(id), w.agents[id]
	if !in.Present() || in.Record.Phase == store.Deleting {
		return
	}
	if in.Record.Phase == store.Pending {
		w.t.Fatalf("%s reports and was never asked for", id)
	}
	old := read[store.Alive](w, w.keys.Alive(id))
	if !old.Present() || old.Record.State != store.StreamOpen {
		a.epoch++
		w.put(w.keys.Alive(id), store.Alive{
			Schema: store.Schema, Instance: id, Replica: "r1", BootID: "boot-" + id, Epoch: a.epoch, State: store.StreamOpen, Since: w.now,
		})
	}
	now := store.Report{Schema: store.Schema, Instance: id, BootID: "boot-" + id, Healthy: a.healthy}
	if !a.healthy {
		now.Why, now.Checks = "checks 0/1", []store.CheckReport{{Name: "http", Why: "connection refused"}}
	}
	if r := read[store.Report](w, w.keys.Report(id)); !r.Present() || r.Record.Healthy != a.healthy {
		w.put(w.keys.Report(id), now)
	}
	w.observe(false)
}

func (w *world) setState(id string, state store.StreamState) {
	v := read[store.Alive](w, w.keys.Alive(id))
	if !v.Present() {
		return
	}
	v.Record.State, v.Record.Since = state, w.now
	w.put(v.Key, v.Record)
	w.observe(false)
}

// kill ends a machine: its stream breaks with it.
func (w *world) kill(id string) {
	if m := w.machines[id]; m != nil && !m.down {
		m.down = true
		w.silence(id, true)
	}
}

// silence makes an agent fall silent: at once where its stream breaks, else nobody notices before its report is overdue.
func (w *world) silence(id string, cutOff bool) {
	a := w.agents[id]
	if a == nil || !a.silentFrom.IsZero() {
		return
	}
	a.silentFrom, a.cutOff = w.now, cutOff
	if cutOff {
		w.setState(id, store.StreamLost)
	}
}

// comeBack lets a silent agent report again.
func (w *world) comeBack(id string) {
	a, m := w.agents[id], w.machines[id]
	if a == nil || m == nil || m.down || a.silentFrom.IsZero() {
		return
	}
	a.silentFrom = time.Time{}
	if a.registered {
		w.report(id)
	}
}

// turn makes an agent's checks fail, or pass again.
func (w *world) turn(id string, healthy bool) {
	a, m := w.agents[id], w.machines[id]
	if a == nil || m == nil || m.down {
		return
	}
	a.healthy = healthy
	if a.registered && a.silentFrom.IsZero() && a.returnsAt.IsZero() {
		w.report(id)
	}
}

// outage is one of the store, or of all replicas: every lease ends, and the agents that work are back within the longest
// back-off. The leader notices it.
func (w *world) outage() {
	for _, id := range sortedIDs(w.agents) {
		a := w.agents[id]
		if !a.registered {
			continue
		}
		w.drop(w.keys.Alive(id))
		a.returnsAt = w.now.Add(w.fate.wait("reconnect", reconnectMax))
	}
	w.observe(false)
	w.grace("the store was out of reach")
}

func (w *world) listDue() {
	if w.list == nil {
		w.list = &listing{begun: w.now, machines: map[string]machine{}}
		for id, m := range w.machines {
			w.list.machines[id] = *m
		}
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
		next := Sighting{Begun: l.begun, Listed: there, Times: 1}
		if there {
			next.State, next.Ref = "running", "ref-"+id
			if m.down {
				next.State, next.Down = "stopped", true
			}
		}
		if old := k.sighting; !old.Begun.IsZero() && old.Listed == next.Listed && old.Down == next.Down {
			next.Times = old.Times + 1
		}
		k.sighting = next
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
