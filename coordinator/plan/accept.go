package plan

import "github.com/leasehold/leasehold/store"

// accept settles which spec is in force: the one in groups/ if it is there and right, else the last accepted one,
// and then the status says what is wrong and at which revision (SAFE-10).
func (d *draft) accept() {
	old := d.g.Status.Record
	if d.g.Spec.Modified != 0 && d.g.Spec.Problem == "" {
		spec := d.g.Spec.Group
		d.spec, d.acceptedRevision = &spec, d.g.Spec.Modified
		return
	}
	d.invalid = &store.InvalidSpec{Revision: d.g.Spec.Modified, Why: d.g.Spec.Problem}
	if d.g.Spec.Modified == 0 {
		d.invalid.Why = "the key is missing; a group is deleted with: leasehold group delete " + d.g.Name
	}
	if old.Accepted != nil {
		spec := *old.Accepted
		d.spec, d.acceptedRevision = &spec, old.AcceptedRevision
		return
	}
	if d.g.Spec.Modified == 0 {
		d.invalid = nil // there is no such group, and never was
	}
}
