package sim

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

const callsAtOnce = 8 // as coordinator/queue.go has it

// queue holds calls of one kind to one provider, as coordinator/queue.go does.
type queue struct {
	t       *term
	cloud   *cloud
	waiting []plan.Call // the most urgent first
	working int
	pace    *pace // nil: no limit
}

// queueOf names a queue.
type queueOf struct {
	provider string
	kind     plan.CallKind
}

func (t *term) newQueues() map[queueOf]*queue {
	creations := newPace(t)
	queues := map[queueOf]*queue{}
	for _, c := range t.w.clouds {
		queues[queueOf{c.cfg.Name, plan.CallCreate}] = &queue{t: t, cloud: c, pace: creations}
		queues[queueOf{c.cfg.Name, plan.CallRemove}] = &queue{t: t, cloud: c}
		queues[queueOf{c.cfg.Name, plan.CallRestart}] = &queue{t: t, cloud: c}
	}
	return queues
}

// ask has a call made, in its turn. One to a provider that there is not is dropped.
func (t *term) ask(c plan.Call) {
	if q := t.queues[queueOf{c.Provider, c.Kind}]; q != nil {
		q.add(c)
	}
}

// add takes a call up, unless one for the same instance waits or is under way.
func (q *queue) add(c plan.Call) {
	if !q.t.evidence.Busy(c.Instance) {
		return
	}
	i := len(q.waiting)
	for i > 0 && q.waiting[i-1].Rank > c.Rank {
		i--
	}
	q.waiting = slices.Insert(q.waiting, i, c)
	q.pump()
}

func (q *queue) pump() {
	for q.working < callsAtOnce && len(q.waiting) > 0 {
		c := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.working++
		q.t.after(time.Microsecond+q.pace.wait(), false, func() { q.call(c) })
	}
}

func (q *queue) done() {
	q.working--
	q.pump()
}

func (q *queue) drop(id string) {
	q.t.evidence.Dropped(id)
	q.done()
}

func (q *queue) call(c plan.Call) {
	in, there := q.t.content.Instances[c.Instance]
	held := q.t.content.Shard.Record.Hold != nil
	if !there || in.Modified != c.Record || held {
		q.drop(c.Instance)
		return
	}
	switch c.Kind {
	case plan.CallCreate:
		q.create(c, in)
	case plan.CallRestart:
		q.restart(c, in)
	default:
		if !q.t.holds(c.Conditions) {
			q.drop(c.Instance)
			return
		}
		if q.t.w.cfg.Observer.Removing != nil {
			q.t.w.cfg.Observer.Removing(q.t.w.Now(), in.Record)
		}
		q.remove(in.Record)
	}
}

// create records that the provider is asked, and then asks it.
func (q *queue) create(c plan.Call, in store.Versioned[store.Instance]) {
	t, cloud, rec := q.t, q.cloud, in.Record
	from := rec.Phase
	if from != store.Creating {
		rec.Phase, rec.Since = store.Creating, t.now().UTC()
	}
	rec.Called = true
	rec.Last = store.Decision{
		Rule: "SAFE-8", Why: "provider " + rec.Spec.Provider + " is asked", Revision: c.Revision,
		At: t.now().UTC(),
	}
	begun, began := t.now(), t.w.clock
	if !q.record(c, in, rec, "provider is asked", "SAFE-8", from) {
		q.drop(rec.ID)
		return
	}
	// Between the record and the call the coordinator may die, or stand still.
	t.after(t.w.chance.upTo(commitTakes), false, func() {
		if t.w.clock-began >= cloud.cfg.CallTimeout {
			t.evidence.Created(rec, begun, provider.Machine{}, errTimeout)
			q.done()
			return
		}
		cloud.create(rec, began+cloud.cfg.CallTimeout, t.answer(func(m provider.Machine, err error) {
			t.evidence.Created(rec, begun, m, err)
			q.done()
		}))
	})
}

// record writes that a call is about to be made.
func (q *queue) record(c plan.Call, in store.Versioned[store.Instance], rec store.Instance, what, rule string,
	from store.Phase,
) bool {
	t := q.t
	a := plan.Action{
		Group: rec.Group, Instance: rec.ID, Rule: rule, What: what, From: from, To: rec.Phase, Kind: store.EntryCall,
		Conditions: c.Conditions,
		Writes:     []store.Write{store.Put(in.Key, store.Encode(rec))},
	}
	if from != rec.Phase {
		if err := store.ValidateTransition(from, rec.Phase); err != nil {
			t.w.broken(rec.ID + ": " + err.Error())
		}
	}
	if t.w.cfg.Observer.Committing != nil && t.holds(c.Conditions) {
		t.w.cfg.Observer.Committing(t.w.Now(), nil, nil, &a)
	}
	rev, err := t.commitHeard(a.Conditions, a.Writes, 1)
	if err != nil {
		return false
	}
	t.evidence.Wrote(rec.Group, rev)
	if t.w.cfg.Observer.Committed != nil {
		t.w.cfg.Observer.Committed(t.w.Now(), &a, rev)
	}
	return true
}

// answer is what a term hears of a call, if it is still there.
func (t *term) answer(take func(provider.Machine, error)) func(provider.Machine, error) {
	return func(m provider.Machine, err error) {
		t.after(0, false, func() { take(m, err) })
	}
}
