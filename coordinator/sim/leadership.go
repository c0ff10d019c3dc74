package sim

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// Leader returns the leading replica; "" if none leads.
func (w *World) Leader() string {
	if w.leader == nil {
		return ""
	}
	return w.leader.replica.id
}

// KillLeader ends the leader's process without warning. Its calls to providers may still take
// effect. Another replica leads once the session has ended, by a clock that is wrong by skew. The
// dead replica returns after a while.
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

// KillReplica ends the process of a coordinator that does not lead.
func (w *World) KillReplica(back time.Duration) {
	for _, r := range w.liveReplicas() {
		if w.leader == nil || r != w.leader.replica {
			w.note("coordinator %s dies", r.id)
			w.stopReplica(r, back)
			return
		}
	}
}

// stopReplica ends a replica: its streams break, and its key ends with its session.
func (w *World) stopReplica(r *replica, back time.Duration) {
	r.up = false
	life := r.life
	for _, a := range w.agentsInOrder() {
		if a.open && a.replica == r {
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

// orphaned handles the loss of the agent's replica, of which etcd has no trace. The agent connects
// to another one at once.
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

// Resign makes the leader step down in order; another replica leads at once.
func (w *World) Resign(skew time.Duration) {
	t := w.depose()
	if t == nil {
		return
	}
	w.note("coordinator %s resigns", t.replica.id)
	w.skew = skew
	w.elect(10 * time.Millisecond)
}

// FreezeLeader freezes the leader's process. If that takes longer than its session, another replica
// leads, and the old leader's commits meet the fence when it wakes.
func (w *World) FreezeLeader(d, skew time.Duration) {
	t := w.leader
	if t == nil {
		return
	}
	w.note("coordinator %s stands still for %s", t.replica.id, d)
	t.frozen = w.clock + d
	r := t.replica
	r.frozen = t.frozen
	for _, a := range w.agentsInOrder() {
		// a report that is not acknowledged within an interval is sent elsewhere (DET-14)
		if a.open && a.replica == r {
			a.foresee(a.interval+w.chance.upTo(a.interval), func() {
				if w.clock < r.frozen {
					a.orphaned()
				}
			})
		}
	}
	if d > store.LeaderLate {
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

// BlindLeader interrupts the leader's watch for a while; then it catches up or lists again.
func (w *World) BlindLeader(d time.Duration, relist bool) {
	t := w.leader
	if t == nil {
		return
	}
	w.note("the watch of %s shows nothing for %s", t.replica.id, d)
	t.blindFrom, t.blind = w.clock, w.clock+d
	t.relist = t.relist || relist
	t.deliverAfter(d)
	if d > store.WatchSilence {
		w.after(d, func() { w.disturbed(t.replica, "the watch was silent") })
	}
}

// LoseLeases makes etcd drop the keys of a number of agents although their leases are being
// renewed. Gateways see that and restore the keys at once; if they do not notice, the next reports
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

// StopEtcd makes etcd unreachable for a while. Then leases have their full time again, except for
// as many as drops says: etcd takes these for ended.
func (w *World) StopEtcd(d time.Duration, drops int) {
	if w.db.down {
		return
	}
	w.note("etcd is out of reach for %s", d)
	w.db.down, w.db.downFrom = true, w.clock
	if d > store.WatchSilence {
		w.after(store.WatchSilence, func() { w.allDisturbed("etcd does not answer") })
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
		for _, a := range w.agentsInOrder() {
			a.afterOutage(d)
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
		r.reported = 0
		w.disturbed(r, what)
	}
}

// afterOutage makes an agent's next report be accepted within an interval, or the agent has given
// up its stream and connects again.
func (a *agent) afterOutage(d time.Duration) {
	if !a.open || a.late {
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
