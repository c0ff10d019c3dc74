package plan

import (
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// A roll that fails is rolled back to the last good template if the operator asked for that
// (ROLL-5). The rollback is a roll of its own.

// toGood reports whether the wanted template is the last one with which the whole group was
// healthy: a roll to it is a rollback or a restart.
func (d *roll) toGood() bool {
	good := d.g.Status.Record.LastGood
	return good != nil && good.Template == d.hash
}

// goesBack reports whether instances return from another template to the last good one. A restart
// of instances that have that template already does not, and a protected instance stays.
func (d *roll) goesBack() bool { return d.toGood() && d.count.leaving > 0 }

// backFrom names the template that a rollback by the coordinator leaves.
func (d *roll) backFrom(old *store.Rollout) string {
	good := d.g.Status.Record.LastGood
	if old == nil || !d.spec.Rollout.AutoRollback || good == nil || good.Template != d.hash ||
		old.Blamed == "" && old.Stalled == "" {
		return ""
	}
	return old.Template
}

// failed returns why the roll has failed, if it has.
func (d *roll) failed() (why store.Cause, failed bool) {
	switch r := d.rollout; {
	case r == nil:
		return store.Cause{}, false
	case r.Blamed != "":
		return reason.Known(r.BlamedCause, r.Blamed), true
	case r.Stalled != "":
		return reason.Known(r.StalledCause, r.Stalled), true
	default:
		return store.Cause{}, false
	}
}

// mayRollBack reports whether a failed roll may be rolled back. A group of a shard's file is left
// to the owner of the file.
func (d *roll) mayRollBack() bool {
	good := d.g.Status.Record.LastGood
	return d.spec != nil && d.spec.Rollout.AutoRollback && good != nil && good.Template != d.hash &&
		d.count.strange != 0 && d.mayAct() && d.g.Spec.InForce() && d.g.Spec.StaticModified == 0 &&
		!d.spec.Deleting && !d.spec.Stopped && !d.spec.Unstarted
}

// rollBack restores the spec of the last good template when the roll has failed. It is the last of
// a plan's actions: all others compare the spec that it changes, and none of them waits if it is
// refused.
func (d *roll) rollBack() {
	why, failed := d.failed()
	if !failed || !d.mayRollBack() {
		return
	}
	good := d.g.Status.Record.LastGood
	g := *d.spec
	g.Size = d.asked // load and operators choose the size beside the spec
	g.Restore(good.Spec)
	if g.Validate() != nil || g.InstanceSpec().TemplateHash() == d.hash {
		return
	}
	what := named(store.EffectRollBack, good.Template)
	what.Names = reason.LeftBy(&good.Spec, false).Secrets
	d.actions = append(d.actions, Action{
		Group: d.g.Name, Rule: "ROLL-5", Effect: what,
		Why: reason.Short(why), Cause: reason.Recorded(why),
		Facts: []store.Fact{
			{Kind: store.FactSpec, Name: d.g.Name, Rev: d.g.Spec.Modified}, // the one that ends
			{Kind: store.FactGoodSpec, Rev: good.Revision},
		},
		Conditions: append(d.specUnchanged(), d.s.Shard.Unchanged()),
		Writes:     []store.Write{store.Put(d.specKey(), store.Encode(g))},
	})
}
