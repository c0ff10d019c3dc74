package plan

import "github.com/leasehold/leasehold/store"

// accept settles which spec is in force: the one in groups/ if it is there and right, else the last accepted one,
// and then the status says what is wrong and at which revision (SAFE-10).
func (d *draft) accept() {
	old := &d.g.Status.Record
	revision := max(d.g.Spec.Modified, d.g.Spec.StaticModified)
	if revision != 0 && d.g.Spec.Problem == "" {
		d.spec, d.acceptedRevision, d.hash = &d.g.Spec.Group, revision, d.g.Spec.Template
		if d.hash == "" {
			d.hash = d.spec.InstanceSpec().TemplateHash()
		}
		return
	}
	d.invalid = &store.InvalidSpec{Revision: revision, Why: d.g.Spec.Problem}
	if revision == 0 {
		d.invalid.Why = "the key is missing; a group is deleted with: leasehold group delete " + d.g.Name
	}
	if old.Accepted != nil {
		d.spec, d.acceptedRevision = old.Accepted, old.AcceptedRevision
		d.hash = d.spec.InstanceSpec().TemplateHash()
		return
	}
	if revision == 0 {
		d.invalid = nil // there is no such group, and never was
	}
}
