package sim

import (
	"time"

	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// Timings of agents and gateways.
const (
	reactsWithin = 20 * time.Millisecond  // a gateway, to a change of a key
	keepalive    = 15 * time.Second       // DET-3: a silent stream is closed by then
	expiryLag    = 500 * time.Millisecond // etcd looks for ended leases so often
)

// agent is what runs on a machine, and its stream to a gateway. While it reports, nothing happens:
// the reports are not events.
type agent struct {
	w *World
	m *fake.Machine
	// what the machine was made from, and the hash of its template
	spec     store.InstanceSpec
	template string
	mute     bool // it never says a word

	up       bool // it runs
	frozen   bool
	cut      bool // nothing reaches a coordinator
	retired  bool // told that its instance is no more
	open     bool // its stream is there, and reports get through
	excused  bool // it has none, and that is not its own doing
	known    bool // its gateway takes the stream for open
	replica  *replica
	life     int // of the replica
	epoch    uint64
	boot     string // of the stream
	lease    store.LeaseID
	interval time.Duration
	ttl      time.Duration
	accepted time.Duration // when the first report of the stream was accepted; the others follow every interval
	last     time.Duration // when the last one was, of a stream that is not open
	turn     int           // grows with each change of the stream: what was foreseen before is void
	tries    int           // to connect, in a row

	ill        illness
	warm       bool // its workload is up in this boot, so that checks can pass
	checks     checking
	config     string
	applying   string
	restarted  string
	restarting string
	drained    string
	draining   string
	drilledFor string // the order of the last drill of it or its workload
	notice     *store.Notice
	exit       *store.WorkloadExit
	said       store.Report // as persisted last
	works      bool         // as counted last
	host       store.HostReport
	shares     []map[string]float64 // of its group's load, by metric, as measured last
	unmeasured bool                 // it tells no load
}

// illness is what keeps an agent's checks from passing, and what would cure it.
type illness int

const (
	healthy        illness = iota
	illTillBetter          // until it passes by itself
	illTillRestart         // until the workload is restarted
	illTillReboot          // until the machine is
	illForGood
)

func newAgent(c *cloud, m *fake.Machine, spec store.InstanceSpec, template string) *agent {
	return &agent{w: c.w, m: m, spec: spec, template: template, config: spec.ConfigHash()}
}

// start is the agent's first word after a boot.
func (a *agent) start() {
	a.up, a.tries = true, 0
	a.checks.begun = a.w.clock
	a.stir()
	a.connect()
}

// ended handles the end of the machine and of everything on it.
func (a *agent) ended() {
	a.fallSilent(a.w.chance.happens(70))
	a.up, a.frozen, a.warm, a.exit, a.notice = false, false, false, nil, nil
	a.restarting, a.applying, a.draining = "", "", ""
	a.checks = checking{number: a.checks.number + 1}
	if a.ill <= illTillReboot {
		a.ill = healthy
	}
	a.touch()
}

// later has the agent do something unless its machine is another boot by then.
func (a *agent) later(d time.Duration, do func()) {
	boot := a.m.Boots
	a.w.after(d, func() {
		if a.m.Running() && a.m.Boots == boot && a.up {
			do()
		}
	})
}

// foresee has something happen to the stream unless it has changed by then.
func (a *agent) foresee(d time.Duration, do func()) {
	turn := a.turn
	a.w.after(d, func() {
		if a.turn == turn {
			do()
		}
	})
}

// retry tries to connect again, later each time (DET-14).
func (a *agent) retry() {
	s := a.w.cfg.Settings
	most := min(s.ReconnectMax.D(), s.ReconnectMin.D()<<min(a.tries, 10))
	a.tries++
	a.later(a.w.chance.upTo(most), func() {
		if !a.open {
			a.connect()
		}
	})
}

// connect says hello to one of the replicas.
func (a *agent) connect() {
	if !a.up || a.frozen || a.cut || a.retired || a.open || !a.m.Running() {
		return
	}
	live := a.w.liveReplicas()
	if len(live) == 0 || a.w.db.down {
		a.retry()
		return
	}
	r := live[a.w.chance.IntN(len(live))]
	if a.condemned() {
		a.retire()
		return
	}
	rec := a.w.instance(a.m.ID)
	if a.unserved(rec) {
		a.retry()
		return
	}
	alive := Read[store.Alive](a.w, a.w.keys.Alive(a.m.ID))
	if alive.Present() && alive.Record.BootID != a.m.BootID() &&
		(alive.Record.State == store.StreamOpen || alive.Record.State == store.StreamOverdue) &&
		a.mayBeServed(alive.Record) {
		a.retry() // DET-18: another boot has an open stream
		return
	}
	a.turn++
	a.tries, a.excused = 0, false
	a.stir()
	a.epoch++
	a.boot, a.open, a.known, a.replica, a.life = a.m.BootID(), true, true, r, r.life
	a.interval, a.ttl = rec.Record.Spec.Report.Interval.D(), rec.Record.Spec.Report.LeaseTTL.D()
	a.accepted = a.w.clock
	a.putAlive(a.w.db.grant(), store.StreamOpen, "", "")
	a.recognized()
	a.warmUp()
	a.report()
	a.wanted()
}

// mayBeServed reports whether the stream of another boot can still be there.
func (a *agent) mayBeServed(alive store.Alive) bool {
	if a.replica != nil && a.replica.id == alive.Replica && a.replica.up && a.replica.life == a.life {
		return a.known
	}
	_, there := a.w.db.cells[a.w.keys.Replica(alive.Replica)]
	return there
}

// warmUp lets the checks of a new boot take a while to pass, for some.
func (a *agent) warmUp() {
	if a.warm {
		return
	}
	if a.w.chance.happens(70) {
		a.warm = true
		return
	}
	a.later(a.w.chance.upTo(5*time.Second), func() {
		a.warm = true
		a.stir()
		a.report()
	})
}

func (a *agent) putAlive(lease store.LeaseID, state store.StreamState, goodbye store.Goodbye, why string) {
	a.lease = lease
	a.w.put(a.w.keys.Alive(a.m.ID), store.Alive{
		Schema: store.Schema, Instance: a.m.ID, Replica: a.replica.id, Lease: lease.String(), BootID: a.boot,
		Epoch: a.epoch,
		State: state, Goodbye: goodbye, Why: why, Since: a.w.Now(), Agent: "imagined",
	}, lease)
}

// passing reports whether its checks pass now.
func (a *agent) passing() bool {
	return a.warm && a.ill == healthy && a.exit == nil && !a.w.bad[a.template].fails()
}

// report has the gateway persist what is new (DET-16).
func (a *agent) report() {
	a.check()
	if !a.open || a.w.db.down {
		return // the next report says it
	}
	pass := a.checks.healthy
	if pass && !a.said.Healthy && a.w.bad[a.template] == CrashesSoon {
		a.later(time.Minute, func() { a.w.Exit(a.m.ID, 1) })
	}
	now := store.Report{
		Schema: store.Schema, Instance: a.m.ID, Replica: a.replica.id, BootID: a.boot, Healthy: pass,
		Config: a.config, Restarted: a.restarted, Drained: a.drained, Notice: a.notice, Workload: a.exit,
		Checks: a.checkReports(),
	}
	if !pass {
		now.Why = "check " + now.Checks[0].Name + " fails"
	}
	said := &a.said
	if said.BootID == now.BootID && said.Healthy == now.Healthy && said.Config == now.Config &&
		said.Restarted == now.Restarted &&
		said.Drained == now.Drained && said.Notice == now.Notice && said.Workload == now.Workload {
		a.touch()
		return
	}
	a.said = now
	now.Host = a.host
	now.Received, now.Sent, now.Epoch = a.w.Now(), a.w.Now(), a.epoch
	a.w.put(a.w.keys.Report(a.m.ID), now, 0)
	a.touch()
}

// lastAccepted is when the last report was accepted.
func (a *agent) lastAccepted() time.Duration {
	if !a.open {
		return a.last
	}
	return a.w.clock - (a.w.clock-a.accepted)%a.interval
}

// fallSilent ends the reports. If the stream broke, the gateway knows at once, else after some
// time.
func (a *agent) fallSilent(broke bool) {
	a.excused = false
	a.stir()
	if !a.open {
		return
	}
	a.last = a.lastAccepted()
	a.open = false
	a.turn++
	if broke {
		a.foresee(a.w.chance.upTo(reactsWithin),
			func() { a.setState(store.StreamLost, "", "the connection broke without goodbye") })
	} else {
		overdue := a.last + a.interval + a.interval/2
		closes := a.w.clock + a.w.chance.upTo(keepalive)
		if overdue < closes {
			a.foresee(overdue-a.w.clock, func() { a.setState(store.StreamOverdue, "", "no report") })
		}
		a.foresee(closes-a.w.clock, func() { a.setState(store.StreamLost, "", "the connection is silent") })
	}
	a.letLeaseEnd(a.last + a.ttl)
	a.touch()
}

// letLeaseEnd has the lease end at a time, unless it is renewed before.
func (a *agent) letLeaseEnd(at time.Duration) {
	a.foresee(at-a.w.clock+a.w.chance.upTo(expiryLag), func() {
		switch {
		case a.w.db.down:
			a.letLeaseEnd(a.w.clock + time.Second)
		case a.w.clock < a.w.db.extended+a.ttl:
			a.letLeaseEnd(a.w.db.extended + a.ttl)
		default:
			a.dropAlive()
		}
	})
}

func (a *agent) dropAlive() {
	key := a.w.keys.Alive(a.m.ID)
	if c, there := a.w.db.cells[key]; there && c.kv.Lease == a.lease {
		a.w.drop(key)
	}
}

// setState writes what became of the stream, if its gateway is still there and the key is still its
// own.
func (a *agent) setState(state store.StreamState, goodbye store.Goodbye, why string) {
	if state == store.StreamLost {
		a.known = false
	}
	if a.replica == nil || !a.replica.up || a.replica.life != a.life || a.w.db.down {
		return
	}
	alive := Read[store.Alive](a.w, a.w.keys.Alive(a.m.ID))
	rec := a.w.instance(a.m.ID)
	if !alive.Present() || alive.Record.Epoch != a.epoch || alive.Record.BootID != a.boot || !rec.Present() ||
		rec.Record.Phase == store.Deleting {
		return
	}
	if s := alive.Record.State; s == state || s == store.StreamLeft || s == store.StreamMoved {
		return
	}
	a.putAlive(a.lease, state, goodbye, why)
}

// leave says goodbye.
func (a *agent) leave(goodbye store.Goodbye) {
	if !a.open {
		return
	}
	state := store.StreamLeft
	if goodbye == store.GoodbyeMoving {
		state = store.StreamMoved
	}
	a.setState(state, goodbye, "")
	a.last = a.lastAccepted()
	a.open, a.known = false, false
	a.excused = goodbye == store.GoodbyeMoving || goodbye == store.GoodbyeRestart
	a.turn++
	a.letLeaseEnd(a.last + a.ttl)
	a.touch()
}

// condemned reports whether a record ends the instance: its own, or the note that it was deleted on
// purpose (SAFE-14).
func (a *agent) condemned() bool {
	if rec := a.w.instance(a.m.ID); rec.Present() {
		return rec.Record.Phase == store.Deleting
	}
	return Read[store.Gone](a.w, a.w.keys.Gone(a.w.keys.Instance(a.m.ID))).Present()
}

// unserved reports whether no gateway can serve the agent for want of a record that can be read.
// One without a record is noted (SAFE-14).
func (a *agent) unserved(v store.Versioned[store.Instance]) bool {
	if !v.Present() {
		a.stray()
		return true
	}
	return v.Record.ID == ""
}

// stray is how a gateway notes an agent that has no record. The agent goes on.
func (a *agent) stray() {
	key := a.w.keys.Stray(a.m.ID)
	if _, noted := a.w.db.cells[key]; noted || a.w.db.down {
		return
	}
	a.w.put(key, store.Stray{Schema: store.Schema, Instance: a.m.ID, At: a.w.Now()}, 0)
	a.w.after(time.Hour, func() { a.w.drop(key) })
}

// recognized is how a gateway takes back that an agent has no record; false if nothing said so.
func (a *agent) recognized() bool {
	key := a.w.keys.Stray(a.m.ID)
	if _, noted := a.w.db.cells[key]; !noted || a.w.db.down {
		return false
	}
	a.w.drop(key)
	return true
}

// retire stops the agent: a record ends its instance.
func (a *agent) retire() {
	if a.open {
		a.last = a.lastAccepted()
		a.open, a.known = false, false
		a.turn++
		a.letLeaseEnd(a.last + a.ttl)
	}
	a.retired = true
	a.touch()
}

// recordChanged is how a gateway reacts to a change of a key. It must not write at once: others
// hear of the change first.
func (a *agent) recordChanged(kind string, deleted bool) {
	switch {
	case !a.open:
	case kind == store.KindInstances:
		a.later(a.w.chance.upTo(reactsWithin), a.wanted)
	case deleted:
		wait := a.w.chance.upTo(reactsWithin)
		if a.w.db.unheard {
			wait = a.w.chance.upTo(a.interval) // the next report finds out
		}
		a.foresee(wait, a.restore)
	}
}

// restore puts the key back after it was deleted under the open stream (DET-17).
func (a *agent) restore() {
	if !a.open {
		return
	}
	key := a.w.keys.Alive(a.m.ID)
	if _, there := a.w.db.cells[key]; there {
		return
	}
	if a.w.db.down {
		a.foresee(a.interval, a.restore)
		return
	}
	if a.condemned() {
		a.retire()
		return
	}
	if a.unserved(a.w.instance(a.m.ID)) {
		return // once the record is back, so is the key
	}
	a.putAlive(a.w.db.grant(), store.StreamOpen, "", "")
	a.w.disturbed(a.replica, "etcd deleted a key whose lease was being renewed")
}
