package plan

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// agent is what runs on a machine.
type agent struct {
	registersAt time.Time // zero: never
	registered  bool
	started     time.Time
	silentFrom  time.Time // zero: it reports
	cutOff      bool      // its stream broke when it fell silent
	returnsAt   time.Time // after an outage of the store
	healthy     bool
	epoch       uint64
	boot        int
	// ails says what has to be replaced for its checks to pass again: "" its workload, "machine"
	// its machine, for a restart does not help.
	ails string

	restarted string // token of the last restart of its workload
	drained   string // token of the drain whose hook has ended
	config    string // hash of what it has applied
	wrong     bool   // there is a wrong check in it
	exit      *store.WorkloadExit
	notice    *store.Notice
	busy      *bool     // what it says of its workload; nil: nothing
	hookFrom  time.Time // when the hook of its drain began
	refuses   bool      // it does not carry out its wanted state
	host      store.HostReport
	loadAt    time.Time // when it last reported its load
	loadless  bool      // it tells none

	version string               // of the agent
	upgrade *store.UpgradeReport // how its last offer ended
}

const overdueFrom = 7500 * time.Millisecond

func (w *world) agentDue(id string, a *agent) {
	in := w.instance(id)
	m := w.machines[id]
	if m == nil || m.down || !in.Present() || in.Record.Phase == store.Deleting {
		w.expire(id, a)
		return // dead, or retired by its gateway
	}
	switch {
	case !a.registered && !a.registersAt.IsZero() && !w.now.Before(a.registersAt) && a.silentFrom.IsZero():
		a.registered, a.started = true, w.now
		w.apply(a, &in.Record) // its first answer says so
		w.report(id)
	case a.registered && !a.returnsAt.IsZero() && !w.now.Before(a.returnsAt):
		a.returnsAt = time.Time{}
		if a.silentFrom.IsZero() {
			w.report(id)
		}
	default:
		w.expire(id, a)
	}
	if a.registered && a.silentFrom.IsZero() && a.returnsAt.IsZero() && !a.refuses {
		w.obeys(a, &in.Record)
		w.report(id)
	}
}

// obeys does what the record wants of the agent.
func (w *world) obeys(a *agent, rec *store.Instance) {
	told := rec.Phase == store.Starting || rec.Phase == store.Checking || rec.Phase == store.Stopping &&
		rec.Restart != nil && rec.Restart.Level == store.RestartWorkload
	if r := rec.Restart; r != nil && told && r.ByAgent() && a.restarted != r.Token {
		a.restarted, a.exit = r.Token, nil
		a.healthy = a.healthy || a.ails == ""
		w.crash(a)
		w.apply(a, rec)
	}
	if a.config != rec.Config && !w.fate.happens("it takes up its config later", 30) {
		w.apply(a, rec)
	}
	d := rec.Drain
	if d == nil || rec.Phase != store.Draining || a.drained == d.Token {
		a.hookFrom = time.Time{}
		return
	}
	if len(rec.Spec.Drain.Hook) == 0 {
		a.drained = d.Token // that is what agents say: there is nothing to be done
		return
	}
	if a.hookFrom.IsZero() {
		a.hookFrom = w.now
	}
	if w.hookFor > 0 && w.now.Sub(a.hookFrom) >= w.hookFor {
		a.drained = d.Token
	}
}

// apply has an agent take up its configuration.
func (w *world) apply(a *agent, rec *store.Instance) {
	a.config = rec.Config
	a.wrong = slices.ContainsFunc(rec.Spec.Checks, func(c store.Check) bool { return c.Name == w.wrong })
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
		w.drop(w.keys.Alive(id))
	case alive.Record.State == store.StreamOpen && silent >= overdueFrom:
		w.setState(id, store.StreamOverdue)
	}
}

// bootID is the present boot of an instance's machine.
func (w *world) bootID(id string) string {
	if n := w.agents[id].boot; n > 0 {
		return fmt.Sprintf("boot-%s-%d", id, n)
	}
	return "boot-" + id
}

// report is an agent's hello with a report, of which what is new is kept.
func (w *world) report(id string) {
	in, a := w.instance(id), w.agents[id]
	if !in.Present() || in.Record.Phase == store.Deleting {
		return
	}
	if in.Record.Phase == store.Pending {
		w.t.Fatalf("%s reports and was never asked for", id)
	}
	boot := w.bootID(id)
	old := read[store.Alive](w, w.keys.Alive(id))
	if !old.Present() || old.Record.State != store.StreamOpen || old.Record.BootID != boot ||
		old.Record.Agent != a.version {
		a.epoch++
		w.put(w.keys.Alive(id), store.Alive{
			Schema: store.Schema, Instance: id, Replica: "r1", BootID: boot, Epoch: a.epoch, State: store.StreamOpen,
			Since: w.now, Agent: a.version,
		})
	}
	now := store.Report{
		Schema: store.Schema, Instance: id, BootID: boot, Healthy: a.healthy && !a.wrong, Workload: a.exit,
		Config: a.config, Restarted: a.restarted,
		Drained: a.drained, Notice: a.notice, Started: a.started, Agent: a.version, Upgrade: a.upgrade,
	}
	w.tellLoad(id, a)
	if now.Host = a.host; len(a.host.Windows) > 0 {
		now.Received = a.loadAt
	}
	if !now.Healthy {
		now.Why, now.Checks = "checks 0/1", []store.CheckReport{{Name: "http", Why: "connection refused"}}
	}
	if a.busy != nil {
		now.Checks = append(now.Checks, store.CheckReport{Name: store.IdleCheck, Optional: true, Healthy: !*a.busy})
	}
	if r := read[store.Report](w, w.keys.Report(id)); !r.Present() || !reflect.DeepEqual(r.Record, now) {
		w.put(w.keys.Report(id), now)
	}
}

func (w *world) setState(id string, state store.StreamState) {
	v := read[store.Alive](w, w.keys.Alive(id))
	if !v.Present() {
		return
	}
	v.Record.State, v.Record.Since = state, w.now
	w.put(v.Key, v.Record)
}

// kill ends a machine: its stream breaks with it.
func (w *world) kill(id string) {
	if m := w.machines[id]; m != nil && (!m.down || !m.upAt.IsZero()) {
		m.down, m.upAt = true, time.Time{}
		w.silence(id, true)
	}
}

// silence makes an agent fall silent: at once where its stream breaks, else unnoticed before its
// report is overdue.
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

// leave makes an agent say goodbye and fall silent.
func (w *world) leave(id string, goodbye store.Goodbye) {
	v := read[store.Alive](w, w.keys.Alive(id))
	a := w.agents[id]
	if a == nil || !v.Present() || !a.silentFrom.IsZero() {
		return
	}
	a.silentFrom = w.now
	v.Record.State, v.Record.Goodbye, v.Record.Since = store.StreamLeft, goodbye, w.now
	w.put(v.Key, v.Record)
}

// notice has an agent report that its machine ends in a while, or some day. The operator of
// the machine may have it emptied; a provider's word stands before that.
func (w *world) notice(id, detail string, in time.Duration) {
	a := w.agents[id]
	if a == nil || a.notice != nil && a.notice.Kind != store.NoticeEvacuating {
		return
	}
	a.notice = &store.Notice{Kind: "spot", Why: "the provider wants it back", In: store.Duration(in), At: w.now}
	if detail == store.NoticeEvacuating {
		a.notice.Kind, a.notice.Why = store.NoticeEvacuating, "the host is repaired"
	}
	w.speak(id)
}

// exit is the end of an agent's workload.
func (w *world) exit(id string, code int) {
	if a := w.agents[id]; a != nil {
		a.exit, a.healthy = &store.WorkloadExit{Code: code, At: w.now}, false
		w.speak(id)
	}
}

// crash is the end of an agent's workload as soon as it is started, where that is what workloads
// do.
func (w *world) crash(a *agent) {
	if w.crashes {
		a.exit, a.healthy = &store.WorkloadExit{Code: 1, At: w.now}, false
	}
}

// comeBack lets a silent agent report again.
func (w *world) comeBack(id string) {
	a, m := w.agents[id], w.machines[id]
	if a == nil || m == nil || m.down || a.silentFrom.IsZero() {
		return
	}
	a.silentFrom = time.Time{}
	w.speak(id)
}

// turn makes an agent's checks fail, or pass again.
func (w *world) turn(id string, healthy bool) {
	a, m := w.agents[id], w.machines[id]
	if a == nil || m == nil || m.down {
		return
	}
	a.healthy = healthy
	w.speak(id)
}

// speak has an agent report at once, if it can.
func (w *world) speak(id string) {
	a, m := w.agents[id], w.machines[id]
	if a.registered && a.silentFrom.IsZero() && a.returnsAt.IsZero() && m != nil && !m.down {
		w.report(id)
	}
}

// outage is one of the store, or of all replicas: every lease ends, and the agents that work are
// back within the longest back-off. The leader notices it.
func (w *world) outage() {
	for _, id := range sortedIDs(w.agents) {
		a := w.agents[id]
		if !a.registered {
			continue
		}
		w.drop(w.keys.Alive(id))
		a.returnsAt = w.now.Add(w.fate.wait("reconnect", reconnectMax))
	}
	w.lead.Disturb("the store was out of reach")
}
