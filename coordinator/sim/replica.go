package sim

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// replica is a coordinator: a gateway, and at times the leader.
type replica struct {
	id           string
	up           bool
	disturbances int
	reported     time.Duration // when it last reported a disturbance
	life         int           // counts starts
	frozen       time.Duration // it answers no agent before
}

// startReplica starts a replica, which stands for election.
func (w *World) startReplica(r *replica) {
	if r.up {
		return
	}
	r.up = true
	r.life++
	r.disturbances = 0
	w.publish(r)
	w.elect(10 * time.Millisecond)
}

func (w *World) publish(r *replica) {
	if w.db.down {
		return
	}
	rec := store.Replica{
		Schema: store.Schema, ID: r.id, Address: r.id + ":7400", Version: "imagined", Since: w.Now(),
		Disturbances: r.disturbances, Balancers: w.balancerNames(),
	}
	if r.disturbances > 0 {
		rec.Last = &store.Disturbance{At: w.Now(), What: "trouble"}
	}
	w.put(w.keys.Replica(r.id), rec, 0)
}

// disturbed records a disturbance that a replica has noticed, and notifies the leader.
func (w *World) disturbed(r *replica, what string) {
	if w.leader != nil && w.leader.replica == r {
		w.leader.evidence.Disturb(what)
		w.leader.poke()
	}
	if !r.up || r.disturbances > 0 && w.clock-r.reported < time.Second {
		return
	}
	r.disturbances++
	r.reported = w.clock
	life := r.life
	w.after(5*time.Millisecond, func() {
		if r.up && r.life == life {
			w.publish(r)
		}
	})
}

// elect makes a replica lead after a time, unless another one leads by then.
func (w *World) elect(after time.Duration) {
	w.after(after, func() {
		switch up := w.liveReplicas(); {
		case w.leader != nil:
		case w.clock < w.vacant:
			w.elect(w.vacant - w.clock)
		case w.db.down || len(up) == 0:
			w.elect(time.Second)
		default:
			w.lead(up[w.chance.IntN(len(up))])
		}
	})
}

// lead begins a term.
func (w *World) lead(r *replica) {
	w.terms++
	for _, name := range w.Names(store.KindLeader) {
		w.drop(w.keys.Of(store.KindLeader) + name)
	}
	key := w.keys.Leader(w.db.grant())
	w.put(key, store.Leader{Schema: store.Schema, Replica: r.id, Since: w.Now()}, 0)
	w.note("replica %s leads", r.id)
	t := newTerm(w, r, key, w.db.rev, w.skew)
	w.leader, w.skew = t, 0
	t.begin()
}

// depose ends the leader's term: nothing that it was about to do takes effect.
func (w *World) depose() *term {
	t := w.leader
	if t != nil {
		t.ended = true
		w.leader = nil
	}
	return t
}

// liveReplicas returns the replicas whose gateways answer.
func (w *World) liveReplicas() []*replica {
	var up []*replica
	for _, r := range w.replicas {
		if r.up && w.clock >= r.frozen {
			up = append(up, r)
		}
	}
	return up
}
