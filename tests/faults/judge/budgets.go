package judge

import (
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// budgets: what is under way is recounted at each revision that begins something, and compared
// with what the spec of that very revision allows.
//
// Tolerated: the dead wait for no budget, nor does what a notice has doomed, nor an order to go now
// (HEAL-3, SPOT-2, REC-16). An instance that may rightly be taken for dead is left out where it
// would use a budget, and counted where it would be missing: the history does not have when the
// leader knew of it. A budget that an operator lowered is only not used further.
func (in *inquiry) budgets() {
	in.walk(in.steps, func(w *world, s *step) {
		if s.found || s.byHand || len(s.transitions) == 0 {
			return
		}
		for _, group := range groupsOf(s) {
			f := w.inForce(group)
			if !f.there || in.exempt(w, s, group) {
				continue
			}
			b := count{in: in, s: s, spec: f.spec, before: w.inGroup(group), after: w.inGroupAfter(group, s)}
			b.expansion()
			b.creating()
			b.deleting()
			if !f.spec.Deleting && !f.spec.Stopped {
				b.unavailable(w)
			}
		}
	})
}

// groupsOf returns the groups whose instances a step changes, in order.
func groupsOf(s *step) []string {
	var out []string
	for _, t := range s.transitions {
		rec := t.next
		if rec == nil {
			rec = t.old
		}
		if rec != nil && !slices.Contains(out, rec.Group) {
			out = append(out, rec.Group)
		}
	}
	slices.Sort(out)
	return out
}

func (in *inquiry) exempt(w *world, s *step, group string) bool {
	if slices.ContainsFunc(s.obeyed,
		func(r store.Request) bool { return r.Group == group || w.groups[group][r.Instance] }) {
		return true
	}
	return slices.ContainsFunc(s.transitions, func(t transition) bool {
		return t.old != nil && t.old.Group == group &&
			(t.old.Condemned != nil && t.old.Condemned.Now || noticed(t.old) || s.verdict(t.id) == store.Dead ||
				in.truth.down(t.id, s.at) && t.old.Phase.Registered())
	})
}

func noticed(m *store.Instance) bool { return m.Doomed != nil && m.Doomed.Rule == "SPOT-2" }

// count checks the budgets of one group at one step.
type count struct {
	in            *inquiry
	s             *step
	spec          store.Group
	before, after []*store.Instance // managed members
}

func (c *count) exceeded(rule, what string, of []*store.Instance) {
	var evidence []history.Event
	for _, t := range c.s.transitions {
		evidence = append(evidence, t.event)
	}
	for _, e := range c.s.journal {
		evidence = append(evidence, e.event)
	}
	for _, m := range of {
		what += fmt.Sprintf(" %s (%s)", m.ID, m.Phase)
	}
	c.in.violation(rule, c.s.at, what, evidence...)
}

func pick(members []*store.Instance, of func(*store.Instance) bool) []*store.Instance {
	var out []*store.Instance
	for _, m := range members {
		if of(m) {
			out = append(out, m)
		}
	}
	return out
}

// begun reports whether the step requests an instance of the group.
func (c *count) begun() bool {
	return slices.ContainsFunc(c.s.transitions, func(t transition) bool {
		return t.requests() && t.next.Group == c.spec.Name
	})
}

// expansion: never more instances than size and max_expansion allow together (HEAL-2).
func (c *count) expansion() {
	if !c.begun() {
		return
	}
	filling := func(m *store.Instance) bool {
		dead := m.Phase.Registered() && c.in.truth.mayBeDead(m.ID, c.s.at)
		return m.Phase != store.Deleting && !dead && !(m.Phase == store.Draining && noticed(m))
	}
	after, most := pick(c.after, filling), c.spec.Size+c.spec.MaxExpansion()
	if len(after) > max(most, len(pick(c.before, filling))) {
		c.exceeded("HEAL-2", fmt.Sprintf("%d instances stand in %s, and at most %d may (size %d, max_expansion %d):",
			len(after), c.spec.Name, most, c.spec.Size, c.spec.MaxExpansion()), after)
	}
}

// creating: max_creating limits the instances that are starting (HEAL-7). One with a fault may have
// failed, and does not count then.
func (c *count) creating() {
	most := c.spec.Budget.MaxCreating
	if most == 0 || !c.begun() {
		return
	}
	up := pick(c.after, func(m *store.Instance) bool {
		switch m.Phase {
		case store.Pending, store.Creating:
			return true
		case store.Booting, store.Starting:
			f := c.in.truth.fates[m.ID]
			return f == nil || len(f.harms) == 0 && !c.in.truth.down(m.ID, c.s.at)
		default:
			return false
		}
	})
	if len(up) > most {
		c.exceeded("HEAL-7", fmt.Sprintf("%d come up in %s, and max_creating is %d:", len(up), c.spec.Name, most), up)
	}
}

// deleting: max_deleting limits the instances that are being removed (HEAL-7).
func (c *count) deleting() {
	most := c.spec.Budget.MaxDeleting
	more := slices.ContainsFunc(c.s.transitions,
		func(t transition) bool { return t.leaves() && t.old.Managed && t.old.Group == c.spec.Name })
	if most == 0 || !more {
		return
	}
	down := pick(c.after, func(m *store.Instance) bool { return going(m.Phase) })
	if len(down) > most {
		c.exceeded("HEAL-7", fmt.Sprintf("%d go down in %s, and max_deleting is %d:", len(down), c.spec.Name, most),
			down)
	}
}

// unavailable: no booted instance is taken down if that leaves more slots without one than
// max_unavailable allows, unless the slot is no longer wanted (HEAL-3, HEAL-5). In a group with
// startup_duration an instance counts only after that time, by a clock that the history does not
// show: there nothing is a violation.
func (c *count) unavailable(w *world) {
	up := func(m *store.Instance) bool {
		return m.Phase == store.Finished || m.Phase == store.Running && !c.in.truth.surelyDead(m.ID, c.s.at) &&
			!w.hasEnded(m.ID)
	}
	for _, t := range c.s.transitions {
		if !t.leaves() || !t.old.Managed || t.old.Group != c.spec.Name || t.old.Phase != store.Running ||
			c.spec.Rollout.StartupDuration > 0 {
			continue
		}
		if c.in.filledSlots(w, c.spec.Name, c.s.at) > c.spec.Size || w.hasEnded(t.id) {
			continue
		}
		slots := map[int]bool{}
		for _, m := range c.after {
			slots[m.Slot] = slots[m.Slot] || up(m)
		}
		n := c.spec.Size
		for _, yes := range slots {
			if yes {
				n--
			}
		}
		if most := c.spec.MaxUnavailable(t.next.Phase == store.Stopping); !slots[t.old.Slot] && n > most {
			c.exceeded("HEAL-3",
				fmt.Sprintf("%s was taken down, and then %d of %d slots of %s have no booted instance, "+
					"and max_unavailable is %d:", t.id, n, c.spec.Size, c.spec.Name, most), c.after)
		}
	}
}
