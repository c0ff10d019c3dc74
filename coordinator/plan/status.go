package plan

import (
	"fmt"
	"reflect"
	"sort"

	"github.com/leasehold/leasehold/store"
)

// mostBlocked bounds the list of blocked work in a status.
const mostBlocked = 20

// status writes status/<group> where it has changed. It counts facts, not the draft: what the actions of this plan
// bring is counted once it is there.
func (d *draft) status() {
	switch {
	case d.spec == nil && d.invalid == nil:
		d.forgetStatus()
		return
	case d.groupEnds():
		return
	}
	old := d.g.Status.Record
	st := store.Status{
		Schema: store.Schema, Group: d.g.Name, Accepted: d.spec, AcceptedRevision: d.acceptedRevision, Invalid: d.invalid,
		State: store.GroupStarted, Phases: map[store.Phase]int{}, Verdicts: map[store.Verdict]int{}, Blocked: d.blockedWork(),
	}
	healthy, size := 0, 0
	if d.spec != nil {
		size = d.spec.Size
		switch {
		case d.spec.Deleting:
			st.State = store.GroupDeleting
		case d.spec.Paused:
			st.State = store.GroupPaused
		}
	} else {
		st.State = store.GroupRefused
	}
	hash := ""
	if d.spec != nil {
		hash = d.spec.InstanceSpec().TemplateHash()
	}
	for i, in := range d.g.Instances {
		m := d.members[i] // members begin with the instances, in their order
		st.Phases[in.Record.Phase]++
		st.Verdicts[m.judgment.Verdict]++
		if !in.Record.Managed {
			continue
		}
		if in.Record.Phase == store.Running && m.judgment.Verdict == store.Live {
			healthy++
		}
		if in.Record.Phase.Fills() && in.Record.Template != hash {
			st.Outdated++
		}
	}
	st.Healthy = healthy
	if d.spec != nil {
		st.Health = HealthScore(healthy, size)
	}
	st.OK = st.Health == 100 && st.Invalid == nil
	st.Since = old.Since
	if old.State != st.State || old.Health != st.Health || !reflect.DeepEqual(old.Invalid, st.Invalid) || old.Since.IsZero() {
		st.Since = d.now.UTC()
	}
	if d.g.Status.Present() && string(store.Encode(old)) == string(store.Encode(st)) {
		return
	}
	a := Action{
		Group: d.g.Name, Rule: "REC-10", What: "status", Silent: true,
		Conditions: []store.Condition{store.At(d.s.Keys.Status(d.g.Name), d.g.Status.Modified), store.At(d.specKey(), d.g.Spec.Modified)},
		Writes:     []store.Write{store.Put(d.s.Keys.Status(d.g.Name), store.Encode(st))},
	}
	switch {
	case !reflect.DeepEqual(old.Invalid, st.Invalid) && st.Invalid != nil:
		a.Silent, a.Rule, a.What, a.Why = false, "SAFE-10", "spec not accepted", st.Invalid.Why
		a.Evidence = []string{fmt.Sprintf("groups/%s rev %d", d.g.Name, st.Invalid.Revision)}
		if d.spec != nil {
			a.Evidence = append(a.Evidence, fmt.Sprintf("rev %d stays in force", st.AcceptedRevision))
		}
	case old.AcceptedRevision != st.AcceptedRevision:
		a.Silent, a.Rule, a.What, a.Why = false, "REC-1", "spec accepted", fmt.Sprintf("size %d, template %s", size, hash)
		a.Evidence = []string{fmt.Sprintf("groups/%s rev %d", d.g.Name, st.AcceptedRevision)}
	}
	if a.Silent {
		d.actions = append(d.actions, a)
		return
	}
	d.actions = append([]Action{a}, d.actions...) // what follows from a spec comes after it in the journal
}

// forgetStatus removes the status of a group that nobody asked for any more before any spec of it was accepted.
func (d *draft) forgetStatus() {
	if !d.g.Status.Present() || len(d.g.Instances) > 0 {
		return
	}
	d.actions = append(d.actions, Action{
		Group: d.g.Name, Rule: "SAFE-10", What: "status removed", Why: "the group's key is gone, and no spec of it was ever in force",
		Conditions: []store.Condition{d.g.Status.Unchanged(), store.At(d.specKey(), 0)},
		Writes:     []store.Write{store.Delete(d.g.Status.Key)},
	})
}

// groupEnds says whether an action of this plan removes the group.
func (d *draft) groupEnds() bool {
	return d.spec != nil && d.spec.Deleting && d.count(func(*member) bool { return true }) == 0
}

func (d *draft) blockedWork() []store.Blocked {
	d.held = append([]store.Blocked(nil), d.blocked...) // what follows is told where it happens
	for _, m := range d.members {
		if m.Calls.Problem != "" && (m.phase == store.Pending || m.phase == store.Creating || m.phase == store.Deleting) {
			d.block("HEAL-12", string(m.phase)+" of "+m.ID(), m.Calls.Problem, "the provider is asked again", m.ID())
		}
		if m.Record.Phase == store.Checking && m.Alive.Present() && reportIsCurrent(m.Instance) && !m.Report.Record.Healthy {
			until := "it passes its checks"
			if limit := m.Record.Spec.MaxChecking; limit > 0 {
				until += fmt.Sprintf(", or has not within %s and is replaced", limit)
			}
			d.block("DET-10", "health of "+m.ID(), m.Report.Record.Why, until, m.ID())
		}
	}
	list := append([]store.Blocked(nil), d.blocked...)
	sort.SliceStable(list, func(i, j int) bool { return list[i].What < list[j].What })
	if extra := len(list) - mostBlocked; extra > 0 {
		list = append(list[:mostBlocked], store.Blocked{Rule: list[mostBlocked].Rule, What: fmt.Sprintf("%d more", extra), Why: "see leasehold instance list"})
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// HealthScore is healthy ÷ requested as a percentage, rounded down, at most 100, and 100 for nothing requested (REC-10).
func HealthScore(healthy, requested int) int {
	if requested == 0 {
		return 100
	}
	return min(100, healthy*100/requested)
}
