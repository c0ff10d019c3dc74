package sim

import (
	"time"

	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// Timings of agents and gateways.
const (
	reactsWithin = 20 * time.Millisecond  // delay until a gateway sees a change of a key
	keepalive    = 15 * time.Second       // DET-3: a silent stream is closed by then
	expiryLag    = 500 * time.Millisecond // interval at which etcd looks for ended leases
)

// agent is a machine's agent with its stream to a gateway. Regular reports are not events.
type agent struct {
	w *World
	m *fake.Machine
	// of its reports
	reportKey string
	// what the machine was created from, and the hash of its template
	spec     store.InstanceSpec
	template string
	mute     bool // it never sends anything

	up       bool // it is running
	frozen   bool
	cut      bool // it reaches no coordinator
	retired  bool // it has received that its instance is gone
	open     bool // its stream is open, and reports arrive
	excused  bool // its stream is closed through no fault of its own
	known    bool // its gateway considers the stream open
	replica  *replica
	life     int // the replica's life
	epoch    uint64
	boot     string // the stream's boot
	lease    store.LeaseID
	interval time.Duration
	ttl      time.Duration
	accepted time.Duration // when the first report of the stream was accepted; the others follow every interval
	last     time.Duration // when the last report was accepted, if the stream is not open or the next is late
	late     bool          // its next report comes later than after an interval; the stream is open
	turn     int           // counts changes of the stream: a change voids what was scheduled before
	tries    int           // consecutive attempts to connect

	ill        illness
	warm       bool // its workload has started in this boot, so that checks can pass
	checks     checking
	config     string
	applying   string
	restarted  string
	restarting string
	drained    string
	draining   string
	drilledFor string // the last drill of the agent or its workload
	notice     *store.Notice
	exit       *store.WorkloadExit
	said       store.Report // as last persisted
	reported   *cell        // where it is; nil: not known, or it is no report any more
	works      bool         // as last counted
	host       store.HostReport
	shares     []share // of its group's load, as last measured
	unmeasured bool    // it reports no load
}

// illness says why an agent's checks fail, and what would cure it.
type illness int

const (
	healthy        illness = iota
	illTillBetter          // until it ends by itself
	illTillRestart         // until the workload is restarted
	illTillReboot          // until the machine is restarted
	illForGood
)

func newAgent(c *cloud, m *fake.Machine, spec store.InstanceSpec, template string) *agent {
	m.Address = m.ID + ":80"
	return &agent{
		w: c.w, m: m, reportKey: c.w.keys.Report(m.ID), spec: spec, template: template, config: spec.ConfigHash(),
	}
}

// start is the agent's first connection after a boot.
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

// later schedules an action of the agent, unless its machine has rebooted by then.
func (a *agent) later(d time.Duration, do func()) {
	boot := a.m.Boots
	a.w.after(d, func() {
		if a.m.Running() && a.m.Boots == boot && a.up {
			do()
		}
	})
}

// foresee schedules a change of the stream, unless the stream has changed by then.
func (a *agent) foresee(d time.Duration, do func()) {
	turn := a.turn
	a.w.after(d, func() {
		if a.turn == turn {
			do()
		}
	})
}

// retry tries to connect again, with growing delays (DET-14).
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

// connect sends a hello to one of the replicas.
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
	a.accepted, a.late = a.w.clock, false
	a.putAlive(a.w.db.grant(), store.StreamOpen, "", "")
	a.recognized()
	a.warmUp()
	a.report()
	a.wanted()
}

// mayBeServed reports whether the stream of another boot may still be open.
func (a *agent) mayBeServed(alive store.Alive) bool {
	if a.replica != nil && a.replica.id == alive.Replica && a.replica.up && a.replica.life == a.life {
		return a.known
	}
	_, there := a.w.db.cells[a.w.keys.Replica(alive.Replica)]
	return there
}

// warmUp delays the passing of checks after a boot, for some agents.
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

// report makes the gateway persist news (DET-16).
func (a *agent) report() {
	a.check()
	if !a.open || a.late || a.w.db.down {
		return // the next report has it
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
	a.settle()
	now.Host = a.host
	now.Received, now.Sent, now.Epoch = a.w.Now(), a.w.Now(), a.epoch
	a.reported = a.w.putReport(a.reportKey, &now)
	a.touch()
}

// lastAccepted returns when the last report was accepted.
func (a *agent) lastAccepted() time.Duration {
	if !a.open || a.late {
		return a.last
	}
	return a.w.clock - (a.w.clock-a.accepted)%a.interval
}

// delay makes the next report arrive so long after the last one, but before the lease ends.
func (a *agent) delay(by time.Duration) {
	if !a.open || a.w.clock < a.replica.frozen {
		return
	}
	a.last = a.lastAccepted()
	a.late = true
	a.turn++
	in := func(since time.Duration) time.Duration { return max(0, a.last+since-a.w.clock) }
	a.foresee(in(a.interval+a.interval/2), func() { a.setState(store.StreamOverdue, "", "no report") })
	a.foresee(in(min(by, a.ttl-time.Millisecond)), a.catchUp)
	a.letLeaseEnd(a.last + a.ttl)
}

// catchUp is the arrival of a report that was late.
func (a *agent) catchUp() {
	if a.w.db.down {
		a.foresee(a.interval, a.catchUp)
		return
	}
	a.accepted, a.late = a.w.clock, false
	a.turn++ // the lease does not end
	a.restore()
	a.setState(store.StreamOpen, "", "")
	a.report()
}

// fallSilent ends the reports. If the stream broke, the gateway notices at once, else after some
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

// letLeaseEnd schedules the end of the lease, unless it is renewed before.
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

// setState writes the state of the stream, if its gateway is still there and the key is still its
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

// unserved reports whether no gateway can serve the agent because its record cannot be read. An
// agent without a record is noted (SAFE-14).
func (a *agent) unserved(v store.Versioned[store.Instance]) bool {
	if !v.Present() {
		a.stray()
		return true
	}
	return v.Record.ID == ""
}

// stray writes the note of an agent without a record, as a gateway does. The agent keeps running.
func (a *agent) stray() {
	key := a.w.keys.Stray(a.m.ID)
	if _, noted := a.w.db.cells[key]; noted || a.w.db.down {
		return
	}
	a.w.put(key, store.Stray{Schema: store.Schema, Instance: a.m.ID, At: a.w.Now()}, 0)
	a.w.after(time.Hour, func() { a.w.drop(key) })
}

// recognized deletes that note, as a gateway does; false if there was none.
func (a *agent) recognized() bool {
	key := a.w.keys.Stray(a.m.ID)
	if _, noted := a.w.db.cells[key]; !noted || a.w.db.down {
		return false
	}
	a.w.drop(key)
	return true
}

// retire stops the agent, because a record ends its instance.
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

// recordChanged is a gateway's reaction to a change of a key. It must not write at once, since
// others see the change first.
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

// restore writes the key again after it was deleted under the open stream (DET-17).
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
		return // the key returns with the record
	}
	a.putAlive(a.w.db.grant(), store.StreamOpen, "", "")
	a.w.disturbed(a.replica, "etcd deleted a key whose lease was being renewed")
}
