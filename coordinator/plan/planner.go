package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Planner makes the plans of one leader, as Compute does. It keeps the drafts of groups that follow
// their load and in which all is well: while nothing but numbers changes there, and none of their
// deciders asked to be woken, only what the load asks for is judged again.
type Planner struct {
	// Unencoded leaves out the values of statuses: see Action.Status. It is for simulations, which
	// keep records as they are.
	Unencoded bool

	shard  Snapshot          // of the last plan, without its groups
	drafts map[string]*draft // by group
}

// Compute decides what to do. It never changes the snapshot.
func (k *Planner) Compute(s Snapshot, now time.Time) Plan {
	if !sameShard(&k.shard, &s) {
		clear(k.drafts)
	}
	k.shard = s
	k.shard.Groups = nil
	p := k.compute(s, now)
	for _, d := range p.Judgments.groups {
		switch {
		case d.again:
		case d.wellSettled():
			if k.drafts == nil {
				k.drafts = map[string]*draft{}
			}
			k.drafts[d.g.Name] = d
		default:
			delete(k.drafts, d.g.Name)
		}
	}
	return p
}

// sameShard reports whether two snapshots agree in all that a group whose draft is kept depends on.
// The losses of other groups matter only to a group that has some, too.
func sameShard(a, b *Snapshot) bool {
	none := func(s *Snapshot) bool {
		return len(s.Damaged)+len(s.Full)+len(s.Refusals)+len(s.Outages)+len(s.Limits)+len(s.Balancers) == 0 &&
			!s.ShardUnreadable && !s.stale()
	}
	return none(a) && none(b) && a.Shard.Modified == b.Shard.Modified && a.GraceEnd.Equal(b.GraceEnd) &&
		a.ClocksApart == b.ClocksApart && a.NoneAway == b.NoneAway && slices.Equal(a.Agents, b.Agents) &&
		maps.Equal(a.Configured, b.Configured)
}

// wellSettled reports whether all is well in the group, and nothing was decided but the numbers of
// the status.
func (d *draft) wellSettled() bool {
	spec, g := d.spec, d.g
	switch {
	case spec == nil || spec.Scale == nil || spec.ScaleHold != nil || spec.BudgetGroup != "" || spec.Agent.Version != "" ||
		spec.Deleting || spec.Stopped || spec.Unstarted || len(spec.LoadBalancers)+len(spec.Drills) > 0:
		return false
	case d.invalid != nil || !g.Spec.InForce() || !d.mayAct() || !g.untroubled() || d.status.last == nil:
		return false
	case d.storms.storm != nil || d.storms.tally.Lost > 0 || d.storms.tally.Now > 0 || d.healing.breaker != nil ||
		d.roll.rollout != nil || d.agents.wave != nil || d.status.last.Rebalance != nil || d.status.last.Shares != nil:
		return false
	case len(d.provider.calls)+len(d.traffic.memberCalls)+len(d.traffic.watched)+len(d.blocked)+len(d.status.held) > 0:
		return false
	case len(d.actions) > 1 || len(d.actions) == 1 && (d.actions[0].Rule != "REC-10" || !d.actions[0].NoJournal):
		return false
	case len(g.Instances) == 0 || len(d.members) != len(g.Instances):
		return false
	}
	return !slices.ContainsFunc(d.members, func(m *member) bool {
		rec := &m.Record
		return !rec.Managed || rec.Phase != store.Running || m.phase != store.Running || m.judgment.Verdict != store.Live ||
			m.touched || rec.Drill != nil
	})
}

// untroubled reports whether nothing is asked of the group, and nothing is wrong with its records.
func (g *Group) untroubled() bool {
	return g.Unreadable == "" && g.Unlisted == "" && g.StatusSpoiled == "" && g.Status.Present() &&
		len(g.Requests)+len(g.Extras)+len(g.Damaged)+len(g.SlotsSpoiled) == 0
}

// again judges the load of a group once more on its last draft, if that stands; nil if it does not,
// or if the load asks for another size.
func (k *Planner) again(s *Snapshot, g *Group, now time.Time) *draft {
	d := k.drafts[g.Name]
	if d == nil || !d.stands(g, now) {
		delete(k.drafts, g.Name)
		return nil
	}
	d.s, d.g, d.now, d.again = s, g, now, true
	d.actions, d.notes = nil, nil
	d.scaler.scale, d.scaler.next = nil, time.Time{}
	d.scaler.follow()
	if len(d.notes) > 0 || !d.status.again() {
		delete(k.drafts, g.Name)
		return nil
	}
	return d
}

// stands reports whether all that was decided but the size would be decided again.
func (d *draft) stands(g *Group, now time.Time) bool {
	was, is := &d.g.Spec, &g.Spec
	return g.OnlyNumbers && g.untroubled() && (d.next.IsZero() || now.Before(d.next)) &&
		len(g.Instances) == len(d.members) && d.members[0].Instance == &g.Instances[0] &&
		is.InForce() && is.Modified == was.Modified && is.StaticModified == was.StaticModified &&
		d.spec.Size == is.Group.SizeAt(g.Status.Record.Scale, now)
}

// again writes the numbers of the wish, if anything else is as it should be; false if it is not.
func (d *status) again() bool {
	old, st := &d.g.Status.Record, *d.last
	if st.Scale, st.Counted = old.Scale, d.s.Revision; !d.same(old, &st) {
		return false
	}
	if st = *old; samePart(old.Scale, d.scaler.scale) {
		return true
	}
	st.Scale, st.Counted = d.scaler.scale, d.s.Revision
	d.actions = append(d.actions, d.statusAction(&st))
	return true
}
