package plan

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// view is what is known of a group when it is planned: the snapshot, the time, and the spec in
// force. Nothing changes it after newDraft, and its methods only answer questions.
type view struct {
	s     *Snapshot
	g     *Group
	now   time.Time
	spec  *store.Group // in force; nil if there never was one
	asked int          // the size in the spec itself
	hash  string       // of the wanted template

	acceptedRevision store.Revision
	invalid          *store.InvalidSpec
}

// accept decides which spec is in force: the one in groups/ if it exists and is valid, else the
// last accepted one. In that case the status has what is wrong, and at which revision (SAFE-10);
// not while the provider is asked.
func (v *view) accept() {
	old := &v.g.Status.Record
	revision := max(v.g.Spec.Modified, v.g.Spec.StaticModified)
	if v.g.Spec.InForce() {
		v.spec, v.acceptedRevision, v.hash = &v.g.Spec.Group, revision, v.g.Spec.Template
		if v.hash == "" {
			v.hash = v.spec.InstanceSpec().TemplateHash()
		}
		return
	}
	v.invalid = &store.InvalidSpec{Revision: revision, Why: v.g.Spec.Problem}
	if v.g.Spec.Pending {
		v.invalid = old.Invalid // until it is known whether this one is right
	}
	if revision == 0 {
		v.invalid.Why = "the key is missing; a group is deleted with: leasehold group delete " + v.g.Name
	}
	if old.Accepted != nil {
		v.spec, v.acceptedRevision = old.Accepted, old.AcceptedRevision
		v.hash = v.spec.InstanceSpec().TemplateHash()
		return
	}
	if revision == 0 {
		v.invalid = v.orphaned()
	}
}

// orphaned returns an invalid spec if a group has instances but both its key and its status are
// gone, so that what was asked for is unknown. The instances are left as they are (REC-7). It
// returns nil if there are none: then there is no such group, and perhaps never was.
func (v *view) orphaned() *store.InvalidSpec {
	var left []string
	for i := range v.g.Instances {
		if rec := &v.g.Instances[i].Record; rec.Managed && rec.Phase != store.Deleting {
			left = append(left, rec.ID)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return &store.InvalidSpec{Why: fmt.Sprintf("the group's key is missing, and what was in force is no longer known; "+
		"%s left as they are and not healed: %s; apply the group again to have them looked after: "+
		"leasehold group apply -f FILE", reason.Counted(len(left), "instance is", "instances are"),
		reason.Names(left))}
}

// settleSize applies the size in force, which load or an operator may have chosen (AUTO-1, AUTO-3).
// Like the spec, it is part of the records: a size that this plan chooses takes effect once it has
// been written.
func (v *view) settleSize() {
	if v.spec == nil {
		return
	}
	v.asked = v.spec.Size
	if size := v.spec.SizeAt(v.g.Status.Record.Scale, v.now); size != v.spec.Size {
		g := *v.spec
		g.Size = size
		v.spec = &g
	}
}

// due returns when a timer that ends at a time may fire: no timer fires in grace (SAFE-13).
func (v *view) due(at time.Time) time.Time {
	if !at.IsZero() && at.Before(v.s.GraceEnd) {
		return v.s.GraceEnd
	}
	return at
}

// ends returns when a recorded timer may fire; zero if there is none. If its start is unknown on
// our clock, it starts now.
func (v *view) ends(due Due, name string, t *store.Timer) time.Time {
	if t == nil {
		return time.Time{}
	}
	return v.due(v.over(due, name, t))
}

// over returns when a recorded timer is over, also in a grace.
func (v *view) over(due Due, name string, t *store.Timer) time.Time {
	if at, known := due[name]; known {
		return at
	}
	return v.now.Add(t.For.D())
}

// timer returns a timer that starts now.
func (v *view) timer(length time.Duration) store.Timer {
	return store.Timer{Start: v.now.UTC(), For: store.Duration(length)}
}

func (v *view) decision(rule string, what store.Effect, why store.Cause) store.Decision {
	return store.Decision{
		Rule: rule, What: reason.Effect(what), Why: reason.Short(why), Cause: reason.Recorded(why),
		Revision: v.s.Revision, At: v.now.UTC(),
	}
}

// common returns the conditions of every action that creates or removes a machine: the spec and the
// shard, with its hold, are unchanged.
func (v *view) common() []store.Condition {
	return append(v.specUnchanged(), v.s.Shard.Unchanged())
}

// specUnchanged returns the condition that the spec in force is unchanged.
func (v *view) specUnchanged() []store.Condition {
	out := []store.Condition{store.At(v.specKey(), v.g.Spec.Modified)}
	if v.g.Spec.StaticModified != 0 {
		out = append(out, store.At(v.g.Spec.Static, v.g.Spec.StaticModified))
	}
	return out
}

func (v *view) specKey() string { return v.s.Keys.Group(v.g.Name) }

// outdated reports whether a member was made from another template than the wanted one, or has not
// gone through the last relaunch (ROLL-1).
func (v *view) outdated(m *member) bool {
	return m.Record.Managed && (m.Record.Template != v.hash || m.Record.Relaunch < v.spec.Relaunch.Number)
}

func (v *view) paused() bool { return v.spec != nil && v.spec.Paused }
