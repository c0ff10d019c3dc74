package sim

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// Leader is the replica that leads; "" if none does.
func (w *World) Leader() string {
	if w.leader == nil {
		return ""
	}
	return w.leader.replica.id
}

// KillLeader ends the leader's process without warning: what it asked of providers may happen
// still. Another leads once its session has ended, by a clock that is wrong by skew. The dead one
// is back after a while.
func (w *World) KillLeader(back, skew time.Duration) {
	t := w.depose()
	if t == nil {
		return
	}
	w.note("coordinator %s dies", t.replica.id)
	w.skew, w.vacant = skew, w.clock+w.cfg.SessionTTL
	w.stopReplica(t.replica, back)
	w.elect(w.cfg.SessionTTL)
}

// KillReplica ends a coordinator's process that does not lead.
func (w *World) KillReplica(back time.Duration) {
	for _, r := range w.liveReplicas() {
		if w.leader == nil || r != w.leader.replica {
			w.note("coordinator %s dies", r.id)
			w.stopReplica(r, back)
			return
		}
	}
}

// stopReplica ends a replica: streams break, and its key goes with its session.
func (w *World) stopReplica(r *replica, back time.Duration) {
	r.up = false
	life := r.life
	for _, id := range w.agentIDs() {
		if a := w.agents[id]; a.open && a.replica == r {
			a.orphaned()
		}
	}
	w.after(w.cfg.SessionTTL, func() {
		if !r.up && r.life == life && !w.db.down {
			w.drop(w.keys.Replica(r.id))
		}
	})
	w.after(max(time.Second, back), func() { w.startReplica(r) })
}

// orphaned: the agent's replica is gone, and that is not written down. It goes to another at once.
func (a *agent) orphaned() {
	a.last = a.lastAccepted()
	a.open, a.known, a.excused = false, false, true
	a.turn++
	a.letLeaseEnd(a.last + a.ttl)
	a.touch()
	a.later(a.w.chance.upTo(300*time.Millisecond), func() {
		if !a.open {
			a.connect()
		}
	})
}

// Resign has the leader step down in order; another leads at once.
func (w *World) Resign(skew time.Duration) {
	t := w.depose()
	if t == nil {
		return
	}
	w.note("coordinator %s resigns", t.replica.id)
	w.skew = skew
	w.elect(10 * time.Millisecond)
}

// FreezeLeader has the leader's process stand still. If that takes longer than its session, another
// leads, and what the old one had in mind meets the fence when it wakes.
func (w *World) FreezeLeader(d, skew time.Duration) {
	t := w.leader
	if t == nil {
		return
	}
	w.note("coordinator %s stands still for %s", t.replica.id, d)
	t.frozen = w.clock + d
	r := t.replica
	r.frozen = t.frozen
	for _, id := range w.agentIDs() {
		// what is not acknowledged for an interval is said elsewhere (DET-14)
		if a := w.agents[id]; a.open && a.replica == r {
			a.foresee(a.interval+w.chance.upTo(a.interval), func() {
				if w.clock < r.frozen {
					a.orphaned()
				}
			})
		}
	}
	if d > tickLate {
		w.after(d, func() {
			if r.up && !t.ended {
				w.disturbed(r, "the leader stood still")
			}
		})
	}
	if d <= w.cfg.SessionTTL {
		return
	}
	w.after(w.cfg.SessionTTL, func() {
		if w.leader == t {
			w.leader, w.skew = nil, skew
			w.elect(0)
		}
	})
	w.after(d+2*commitTakes, func() { t.ended = true })
}

// BlindLeader has the leader's watch show nothing for a while; then it catches up, or lists again.
func (w *World) BlindLeader(d time.Duration, relist bool) {
	t := w.leader
	if t == nil {
		return
	}
	w.note("the watch of %s shows nothing for %s", t.replica.id, d)
	t.blindFrom, t.blind = w.clock, w.clock+d
	t.relist = t.relist || relist
	t.deliverAfter(d)
	if d > vitalsSilence {
		w.after(d, func() { w.disturbed(t.replica, "the watch was silent") })
	}
}

// LoseLeases has etcd drop the keys of so many agents though their leases are being renewed.
// Gateways see that and put them back at once, unless they do not notice: then the next reports
// do.
func (w *World) LoseLeases(n int, unnoticed bool) {
	if w.db.down {
		return
	}
	ids := w.Names(store.KindAlive)
	w.chance.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	ids = ids[:min(n, len(ids))]
	w.note("etcd drops %d live leases", len(ids))
	w.db.unheard = unnoticed
	for _, id := range ids {
		w.drop(w.keys.Alive(id))
	}
	w.db.unheard = false
}

// StopEtcd puts etcd out of everybody's reach for a while. Then leases have their full time again;
// or, if it drops them, it takes some that lived for ended.
func (w *World) StopEtcd(d time.Duration, drops int) {
	if w.db.down {
		return
	}
	w.note("etcd is out of reach for %s", d)
	w.db.down, w.db.downFrom = true, w.clock
	if d > vitalsSilence {
		w.after(vitalsSilence, func() { w.allDisturbed("etcd does not answer") })
	}
	if d >= w.cfg.SessionTTL {
		w.after(w.cfg.SessionTTL, func() {
			if w.db.down && w.depose() != nil {
				w.elect(time.Second)
			}
		})
	}
	w.after(d, func() {
		w.note("etcd is back")
		w.db.down, w.db.extended = false, w.clock
		w.allDisturbed("etcd stood still")
		for _, r := range w.liveReplicas() {
			w.publish(r)
		}
		for _, id := range w.agentIDs() {
			w.agents[id].afterOutage(d)
		}
		if drops > 0 {
			w.LoseLeases(drops, w.chance.happens(50))
		}
		if w.leader != nil {
			w.leader.poke()
		}
	})
}

func (w *World) allDisturbed(what string) {
	for _, r := range w.liveReplicas() {
		r.told = 0
		w.disturbed(r, what)
	}
}

// afterOutage has an agent's next report be accepted within an interval; or it had given its stream
// up, and comes back.
func (a *agent) afterOutage(d time.Duration) {
	if !a.open {
		return
	}
	if d < a.interval || a.w.chance.happens(70) {
		a.accepted = a.w.clock
		a.foresee(a.w.chance.upTo(a.interval), func() {
			a.restore()
			a.report()
		})
		return
	}
	a.last = a.w.clock
	a.open, a.known, a.excused = false, false, true
	a.turn++
	a.letLeaseEnd(a.w.clock + a.ttl)
	a.touch()
	a.later(a.w.chance.upTo(a.w.cfg.Settings.ReconnectMax.D()*3/2), a.connect)
}
