package sim

import (
	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// record writes that a provider is about to be called. Between the record and the call the
// coordinator may die or freeze.
func (t *term) record(c leader.Record) {
	rec, o := c.Instance, &t.w.cfg.Observer
	a := plan.Action{
		Group: rec.Group, Instance: rec.ID, Rule: rec.Last.Rule, From: c.From, To: rec.Phase,
		Effect:     store.Effect{Kind: store.EffectAskedAgain, Name: rec.Spec.Provider},
		Conditions: c.Conditions, Writes: c.Writes,
	}
	if len(c.Entries) > 0 {
		a.Effect = c.Entries[0].Effect
	}
	if c.From != rec.Phase {
		if err := store.ValidateTransition(c.From, rec.Phase); err != nil {
			t.w.broken(rec.ID + ": " + err.Error())
		}
	}
	if o.Committing != nil && t.satisfies(c.Conditions) {
		o.Committing(t.w.Now(), nil, nil, &a)
	}
	rev, err := t.commitHeard(c.Conditions, c.Writes, len(c.Entries))
	if err != nil {
		t.step(leader.Recorded{Operation: c.Operation, Err: err})
		return
	}
	if o.Committed != nil {
		o.Committed(t.w.Now(), &a, rev)
	}
	t.after(t.w.chance.upTo(commitTakes), false,
		func() { t.step(leader.Recorded{Operation: c.Operation, Revision: rev}) })
}

// invoke calls a provider. A call that has begun takes effect even if the term has ended.
func (t *term) invoke(c leader.Invoke) {
	rec, cloud := c.Instance, t.w.cloud(c.Instance.Spec.Provider)
	answer := func(m provider.Machine, err error) {
		t.after(0, false, func() { t.step(leader.Answered{Operation: c.Operation, Machine: m, Err: err}) })
	}
	end := func(err error) { answer(provider.Machine{}, err) }
	switch c.Method {
	case leader.Create:
		left := c.Deadline.Sub(t.now())
		if left <= 0 {
			answer(provider.Machine{}, fake.ErrTimeout)
			return
		}
		cloud.create(rec, left, answer)
	case leader.Restart:
		cloud.Restart(shardID, rec.ID, rec.Restart.Listed, cloud.cfg.CallTimeout, end)
	case leader.Stop:
		if t.w.cfg.Observer.Removing != nil {
			t.w.cfg.Observer.Removing(t.w.Now(), rec)
		}
		within := rec.Spec.StopTimeout.D()
		cloud.Stop(shardID, rec.ID, within, cloud.cfg.CallTimeout+within, end)
	case leader.Delete:
		t.after(t.w.chance.upTo(commitTakes), false, func() {
			cloud.Delete(shardID, rec.ID, cloud.cfg.CallTimeout, end)
		})
	case leader.Halt:
		cloud.Stop(shardID, rec.ID, 0, cloud.cfg.CallTimeout, end)
	case leader.RemoveCopy: // there are none
		answer(provider.Machine{}, nil)
	}
}
