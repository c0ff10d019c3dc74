package sim_test

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// inForce is what is wanted of a group by what is in the database: the spec in groups/ if it is
// right, else the last accepted one.
type inForce struct {
	key, status store.Revision
	spec        store.Group
	hash        string
	there       bool
}

func (tr *trial) inForce(name string) inForce {
	keys := tr.w.Keys()
	f := inForce{key: tr.w.Revision(keys.Group(name)), status: tr.w.Revision(keys.Status(name))}
	if old, known := tr.specs[name]; known && old.key == f.key &&
		(old.status == f.status || f.key != 0 && !tr.spoiled[name]) {
		return old
	}
	if value := tr.w.Value(keys.Group(name)); value != nil {
		if g, err := store.ReadGroup(value); err == nil && g.Name == name {
			f.spec, f.there = g, true
		}
	}
	if accepted := sim.Read[store.Status](tr.w, keys.Status(name)).Record.Accepted; !f.there && accepted != nil {
		f.spec, f.there = *accepted, true
	}
	if f.there {
		f.hash = f.spec.InstanceSpec().TemplateHash()
	}
	tr.specs[name] = f
	return f
}

// members are the instances of a group, in order.
func (tr *trial) members(group string) []store.Instance {
	var out []store.Instance
	for _, id := range tr.w.Instances() {
		if rec := tr.w.Instance(id).Record; rec.Group == group {
			out = append(out, rec)
		}
	}
	return out
}

// change is what a transaction makes of one instance's record.
type change struct {
	old  store.Versioned[store.Instance]
	next store.Instance
	gone bool
}

func (c change) begins() bool { return !c.old.Present() && !c.gone }

// leaves reports whether the instance is taken down by it.
func (c change) leaves() bool {
	return !c.gone && c.old.Present() && going(c.next.Phase) && !going(c.old.Record.Phase)
}

func going(p store.Phase) bool {
	return p == store.Stopping || p == store.Draining || p == store.Deleting
}

func (tr *trial) changes(a *plan.Action) []change {
	var out []change
	for _, op := range a.Writes {
		kind, id, _ := tr.w.Keys().Split(op.Key)
		if kind != store.KindInstances {
			continue
		}
		c := change{old: tr.w.Instance(id), gone: op.Delete}
		if !op.Delete {
			next, err := store.Decode[store.Instance](store.KV{Key: op.Key, Value: op.Value})
			if err != nil {
				tr.fail("%s writes a record that cannot be read: %v", a.What(), err)
				continue
			}
			c.next = next.Record
		}
		out = append(out, c)
	}
	return out
}

// committing checks an action that is about to happen, on what is in the database by then.
func (tr *trial) committing(now time.Time, s *plan.Snapshot, p *plan.Plan, a *plan.Action) {
	changes := tr.changes(a)
	if len(changes) == 0 {
		return
	}
	in := inquiry{tr: tr, a: a, s: s, p: p, changes: changes, force: tr.inForce(a.Group)}
	for _, c := range changes {
		in.stands(c)
		if c.leaves() || c.old.Record.Phase == store.Draining && c.next.Phase == store.Deleting {
			in.destruction(c)
		}
	}
	if p != nil {
		in.budgets()
		in.canaries()
		in.inWindow()
		in.priorities()
		in.storm()
		in.stormAfterGrace(now)
		in.waits()
	}
}

// inquiry is the look at one action.
type inquiry struct {
	tr      *trial
	a       *plan.Action
	s       *plan.Snapshot
	p       *plan.Plan // nil: the action follows from an earlier plan
	changes []change
	force   inForce
}

// dead reports whether the leader has the provider's word that an instance no longer runs.
func (in *inquiry) dead(id string) bool {
	return in.p != nil && in.p.Judgments.Of(id).Verdict == store.Dead
}

// stands: while the shard is on hold or the group paused nothing is made and nothing taken down
// (SAFE-12, REC-13).
func (in *inquiry) stands(c change) {
	moves := c.begins() && c.next.Phase != store.Booting || c.leaves() || !c.gone &&
		c.next.Phase != c.old.Record.Phase &&
		(c.next.Phase == store.Creating || c.next.Phase == store.Deleting)
	if !moves {
		return
	}
	id := c.next.ID
	if in.tr.w.Shard().Hold != nil {
		in.tr.fail("%s goes from %q to %s while the shard is on hold: %s", id, c.old.Record.Phase, c.next.Phase,
			in.a.What())
	}
	if in.force.there && in.force.spec.Paused && in.a.Rule != "REC-8" {
		in.tr.fail("%s goes from %q to %s while its group is paused: %s", id, c.old.Record.Phase, c.next.Phase,
			in.a.What())
	}
}

// changed follows the records of every writer.
func (tr *trial) changed(_ time.Time, e store.Event) {
	if tr.w == nil {
		return // the world is being made
	}
	if tr.plot.all {
		_, _ = tr.digest.Write([]byte(e.KV.Key))
		_, _ = tr.digest.Write(e.KV.Value)
	}
	kind, id, _ := tr.w.Keys().Split(e.KV.Key)
	if kind != store.KindInstances {
		return
	}
	old, had := tr.records[id]
	if e.Deleted {
		delete(tr.records, id)
		if old.Phase != store.Deleting {
			tr.fail("the record of %s was removed while %s", id, old.Phase)
		}
		if m, there := tr.w.Machine(id); there {
			tr.fail("the record of %s was removed while its machine is %s", id, m.State)
		}
		return
	}
	now := tr.w.Instance(id).Record
	tr.records[id] = now
	if now.ID == "" {
		tr.fail("the record of %s cannot be read", id)
		return
	}
	if !had {
		if tr.used[id] {
			tr.fail("the ID %s is used again", id)
		}
		tr.used[id] = true
	}
	if !had || old.Phase != now.Phase {
		if err := store.ValidateTransition(old.Phase, now.Phase); err != nil {
			tr.fail("%s: %v", id, err)
		}
	}
	if had && (old.Slot != now.Slot || old.Group != now.Group || old.Managed != now.Managed ||
		old.Replaces != now.Replaces || old.Called && !now.Called) {
		tr.fail("%s: its record was given another past: %+v was %+v", id, now, old)
	}
}

// look checks what is true at any time.
func (tr *trial) look() {}
