package plan

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// accept decides which spec is in force: the one in groups/ if it exists and is valid, else the
// last accepted one. In that case the status has what is wrong, and at which revision (SAFE-10).
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
		d.invalid = d.orphaned()
	}
}

// orphaned reports an invalid spec if there are instances of a group and it is no longer known what
// was asked for: its key and its status are gone. They are left as they are (REC-7); nil if there
// are none, so that there is no such group, and perhaps never was.
func (d *draft) orphaned() *store.InvalidSpec {
	var left []string
	for i := range d.g.Instances {
		if rec := &d.g.Instances[i].Record; rec.Managed && rec.Phase != store.Deleting {
			left = append(left, rec.ID)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return &store.InvalidSpec{Why: fmt.Sprintf("the group's key is missing, and what was in force is not known any more; %s left as they are and healed by nobody: %s; "+
		"apply the group again to have them looked after: leasehold group apply -f FILE", isAre(len(left)),
		listed(left))}
}

// mostNamed bounds the instances that one sentence names.
const mostNamed = 10

// listed names them as one would in a sentence.
func listed(names []string) string {
	text := strings.Join(names[:min(len(names), mostNamed)], ", ")
	if more := len(names) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func isAre(n int) string {
	if n == 1 {
		return "1 instance is"
	}
	return number(n, "instance") + " are"
}
