package plan

import (
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Update is the least that brings an instance up to date with what its group wants, and why
// (ROLL-2): ActionLiveUpdate, ActionRestart or ActionRecreate; "" if it is up to date. Whether and
// when that happens is for Compute to say.
func Update(in store.Instance, wanted store.Group) (action, why string) {
	d := &draft{spec: &wanted, hash: wanted.InstanceSpec().TemplateHash()}
	m := &member{Instance: &Instance{}}
	m.Record = in
	if !d.outdated(m) {
		return "", ""
	}
	action, cause := d.change(m)
	return action, reason.Short(cause)
}
