package imagined

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// caller makes the provider calls of a term, as leader.Calls schedules them.
type caller struct {
	t     *term
	calls *leader.Calls
	wakes int // the last time to look that was scheduled; earlier ones are void
}

func newCaller(t *term) *caller {
	var providers []string
	for _, c := range t.w.clouds {
		providers = append(providers, c.cfg.Name)
	}
	return &caller{t: t, calls: leader.NewCalls(providers, t.settings(), t.w.chance.upTo)}
}

func (t *term) settings() store.ShardSettings { return t.content.Shard.Record.Settings }

// ask queues a call unless one for the same instance waits or runs.
func (q *caller) ask(c plan.Call) {
	if !q.calls.Known(c) {
		q.t.evidence.Removed(c.Instance, errors.New("this coordinator has no provider "+c.Provider))
		return
	}
	if q.t.evidence.Busy(c.Instance) {
		q.calls.Add(c, q.t.now())
		q.pump(0)
	}
}

// pump begins the calls that may begin after a time.
func (q *caller) pump(wait time.Duration) {
	q.wakes++
	wake := q.wakes
	q.t.after(max(time.Microsecond, wait), false, func() {
		if wake != q.wakes {
			return
		}
		begun, next := q.calls.Begin(q.t.now(), q.t.settings())
		if !next.IsZero() {
			q.pump(next.Sub(q.t.now()))
		}
		for _, c := range begun {
			q.call(c.Call)
		}
	})
}

// end records that a call has ended.
func (q *caller) end(c plan.Call) {
	q.calls.End(c)
	q.pump(0)
}

func (q *caller) drop(c plan.Call) {
	q.t.evidence.Dropped(c.Instance)
	q.end(c)
}

func (q *caller) call(c plan.Call) {
	in, there := q.t.content.Instances[c.Instance]
	held := q.t.content.Shard.Record.Hold != nil
	if !there || in.Modified != c.Record || held {
		q.drop(c)
		return
	}
	cloud := q.t.w.cloud(c.Provider)
	switch c.Kind {
	case plan.CallCreate:
		q.create(c, cloud, in)
	case plan.CallRestart:
		q.restart(c, cloud, in)
	default:
		if !q.t.holds(c.Conditions) {
			q.drop(c)
			return
		}
		if q.t.w.cfg.Observer.Removing != nil {
			q.t.w.cfg.Observer.Removing(q.t.w.Now(), in.Record)
		}
		q.remove(c, cloud, in.Record)
	}
}

// create records that the provider is asked, and then asks it.
func (q *caller) create(c plan.Call, cloud *cloud, in store.Versioned[store.Instance]) {
	t, rec := q.t, in.Record
	from := rec.Phase
	if from != store.Creating {
		rec.Phase, rec.Since = store.Creating, t.now().UTC()
	}
	rec.Called = true
	rec.Last = store.Decision{Rule: "SAFE-8", Why: "provider " + rec.Spec.Provider + " is asked", Revision: c.Revision, At: t.now().UTC()}
	begun, began := t.now(), t.w.clock
	if !q.record(c, in, rec, "provider is asked", "SAFE-8", from) {
		q.drop(c)
		return
	}
	// Between the record and the call the coordinator may die, or stand still.
	t.after(t.w.chance.upTo(commitTakes), false, func() {
		if t.w.clock-began >= cloud.cfg.CallTimeout {
			t.evidence.Created(rec, begun, provider.Machine{}, errTimeout)
			q.end(c)
			return
		}
		cloud.create(rec, began+cloud.cfg.CallTimeout, t.answer(func(m provider.Machine, err error) {
			t.evidence.Created(rec, begun, m, err)
			q.end(c)
		}))
	})
}

// record writes that a call is about to be made.
func (q *caller) record(c plan.Call, in store.Versioned[store.Instance], rec store.Instance, what, rule string, from store.Phase) bool {
	t := q.t
	a := plan.Action{
		Group: rec.Group, Instance: rec.ID, Rule: rule, What: what, From: from, To: rec.Phase, Conditions: c.Conditions,
		Writes: []store.Write{store.Put(in.Key, store.Encode(rec))},
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
