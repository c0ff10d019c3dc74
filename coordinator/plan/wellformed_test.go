package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// wellFormed returns what is wrong with a plan as others rely on it: the leader, the journal,
// `explain` and the next leader. "" if nothing is. Every plan of every test is looked at so
// (SAFE-4, SAFE-7, REC-9, REC-10, OBS-1).
func wellFormed(s *Snapshot, p *Plan, now time.Time) string {
	known := map[string]*Instance{}
	for i := range s.Groups {
		g := &s.Groups[i]
		for j := range g.Instances {
			known[g.Instances[j].Record.ID] = &g.Instances[j]
		}
		if _, told := p.Due[g.Name]; !told {
			return "nothing is told of when to look at group " + g.Name
		}
		if _, told := p.Tallies[g.Name]; !told {
			return "no losses are told of group " + g.Name
		}
		for _, b := range p.Held[g.Name] {
			if b.Rule == "" || b.What == "" || b.Why == "" || b.Until == "" {
				return fmt.Sprintf("what is blocked says not all: %+v", b)
			}
		}
	}
	for id, j := range p.Judgments.All() {
		switch {
		case known[id] == nil && j.Verdict != store.Unborn:
			return fmt.Sprintf("%s is judged and not there: %+v", id, j)
		case j.Verdict == "" || j.Rule == "" || j.Why() == "":
			return fmt.Sprintf("the verdict on %s says not all: %+v", id, j)
		case j.Verdict.Failed() && len(j.Facts) == 0:
			return fmt.Sprintf("the verdict on %s rests on nothing: %+v", id, j)
		case !j.Until.IsZero() && !j.Until.After(now):
			return fmt.Sprintf("the verdict on %s was to change at %s", id, j.Until)
		}
	}
	for i := range p.Actions {
		if problem := actionIsWellFormed(s, p, &p.Actions[i], known, now); problem != "" {
			return fmt.Sprintf("%s %s: %s: %s", p.Actions[i].Rule, p.Actions[i].Instance, p.Actions[i].What(), problem)
		}
	}
	for _, c := range p.Calls {
		in := known[c.Instance]
		switch {
		case in == nil || c.Group != in.Record.Group || c.Provider != in.Record.Spec.Provider ||
			c.Record != in.Modified || c.Revision != s.Revision:
			return fmt.Sprintf("a call is of another instance: %+v", c)
		case !slices.Contains(c.Conditions, in.Unchanged()) || !slices.Contains(c.Conditions, s.Shard.Unchanged()):
			return fmt.Sprintf("a call compares too little: %+v", c)
		case c.Kind == CallRemove && c.Rank != 3, c.Kind != CallRemove && c.Rank > 2,
			c.Kind == CallRestart && c.Rank > 1:
			return fmt.Sprintf("a call comes out of its turn: %+v", c)
		}
	}
	return ""
}

func actionIsWellFormed(s *Snapshot, p *Plan, a *Action, known map[string]*Instance, now time.Time) string {
	if a.Rule == "" || a.What() == "" || len(a.Conditions) == 0 || len(a.Writes) == 0 {
		return "it says not all"
	}
	// an extra has no record, or the action is overtaken
	if in := known[a.Instance]; in != nil && a.To != "" && a.Rule != "REC-8" {
		slot := in.Record.Place()
		switch {
		case a.Group != in.Record.Group || a.From != in.Record.Phase || (a.Slot == nil) != (slot == nil) ||
			slot != nil && *a.Slot != *slot:
			return fmt.Sprintf("it is told of group %s, slot %v, from %s", a.Group, a.Slot, a.From)
		case a.Verdict != p.Judgments.Of(a.Instance).Verdict:
			return fmt.Sprintf("it is told that it was %s", a.Verdict)
		case !slices.Contains(a.Conditions, in.Unchanged()):
			return "it does not compare the record"
		}
	}
	for _, op := range a.Writes {
		kind, name, _ := s.Keys.Split(op.Key)
		if op.Delete {
			continue // see TestDeletionsLeaveNotes
		}
		compared := slices.ContainsFunc(a.Conditions, func(c store.Condition) bool { return c.Key == op.Key })
		if !compared {
			return "it writes " + op.Key + " and does not compare it"
		}
		kv := store.KV{Key: op.Key, Value: op.Value}
		switch kind {
		case store.KindInstances:
			v, err := store.Decode[store.Instance](kv)
			if err != nil {
				return err.Error()
			}
			if problem := writtenWell(s, a, &v.Record, known[name], now); problem != "" {
				return "the record of " + name + ": " + problem
			}
		case store.KindSlots:
			v, err := store.Decode[store.Slot](kv)
			if group, n, ok := store.SplitSlot(name); err != nil || !ok || v.Record.Schema != store.Schema ||
				v.Record.Group != group || v.Record.Number != n {
				return fmt.Sprintf("slot %s is %+v, %v", name, v.Record, err)
			}
		case store.KindStatus:
			v, err := store.Decode[store.Status](kv)
			if err != nil {
				return err.Error()
			}
			if problem := statusIsWell(s, &v.Record, name); problem != "" {
				return "the status: " + problem
			}
		default:
		}
	}
	return ""
}

// writtenWell looks at an instance's record that an action writes; in is nil for a new one.
func writtenWell(s *Snapshot, a *Action, rec *store.Instance, in *Instance, now time.Time) string {
	last, replaced := rec.Last, reason.Effect(effect(store.EffectReplaced))
	switch {
	case rec.Schema != store.Schema || rec.ID == "" || rec.Group == "" || rec.Spec.Provider == "" ||
		rec.Created.IsZero():
		return "it lacks something"
	case last.Rule == "" || last.Revision != s.Revision || !last.At.Equal(now) || last.At.Location() != time.UTC:
		return fmt.Sprintf("it tells of its last change %+v", last)
	case in != nil && (last.Rule != a.Rule || !strings.HasPrefix(a.What(), last.What) && last.What != replaced):
		return fmt.Sprintf("it tells of its last change %+v", last)
	case in == nil && rec.Purpose == "" && rec.Phase != store.Deleting || in != nil && rec.Purpose != in.Record.Purpose:
		return fmt.Sprintf("it is made for %q", rec.Purpose)
	case in != nil && rec.Phase != in.Record.Phase &&
		(rec.Leaves != "") != (rec.Phase == store.Draining || rec.Phase == store.Deleting) &&
		(in.Record.Phase != store.Draining || in.Record.Leaves != ""):
		return fmt.Sprintf("it is %s and leaves for %q", rec.Phase, rec.Leaves)
	case in == nil && (!rec.Since.Equal(now) || rec.Phase != store.Pending && rec.Phase != store.Booting &&
		rec.Phase != store.Deleting):
		return fmt.Sprintf("it begins as %s since %s", rec.Phase, rec.Since)
	case in == nil && rec.Phase == store.Pending &&
		(!rec.Created.Equal(now) || rec.Called || rec.Config != rec.Spec.ConfigHash() ||
			rec.Template != rec.Spec.TemplateHash() || last.Why == ""):
		return fmt.Sprintf("it is made as %+v", rec)
	case in == nil:
		return ""
	case rec.Phase != a.To:
		return "its phase is " + string(rec.Phase)
	case rec.Phase != in.Record.Phase && !rec.Since.Equal(now):
		return fmt.Sprintf("it is %s since %s", rec.Phase, rec.Since)
	case rec.Phase == in.Record.Phase && rec.Restart == nil && !rec.Since.Equal(in.Record.Since):
		return fmt.Sprintf("it is still %s, since %s", rec.Phase, rec.Since)
	case !rec.Created.Equal(in.Record.Created) || rec.ID != in.Record.ID:
		return "it is another's"
	case rec.Phase == store.Draining &&
		(rec.Drain == nil || rec.Drain.Rule == "" || rec.Drain.Why == "" || rec.Drain.Token == "" &&
			in.Record.Phase != store.Draining):
		return fmt.Sprintf("it drains as %+v", rec.Drain)
	case rec.Phase == store.Stopping &&
		(rec.Restart == nil || rec.Restart.Token == "" || rec.Restart.Rule == "" || rec.Restart.Level == ""):
		return fmt.Sprintf("it restarts as %+v", rec.Restart)
	}
	return ""
}

// statusIsWell counts once more what a status counts.
func statusIsWell(s *Snapshot, st *store.Status, name string) string {
	i := slices.IndexFunc(s.Groups, func(g Group) bool { return g.Name == name })
	if i < 0 || st.Schema != store.Schema || st.Group != name || st.State == "" || st.Since.IsZero() {
		return fmt.Sprintf("it lacks something: %+v", st)
	}
	managed, onDemand, phases, verdicts := 0, 0, 0, 0
	for _, in := range s.Groups[i].Instances {
		if in.Record.Managed {
			managed++
		} else {
			onDemand++
		}
	}
	for _, n := range st.Phases {
		phases += n
	}
	for _, n := range st.Verdicts {
		verdicts += n
	}
	if phases != managed || verdicts != managed || st.OnDemand != onDemand || st.Healthy > managed || st.Health < 0 ||
		st.Health > 100 {
		return fmt.Sprintf("it counts %d by phase and %d by verdict of %d, %d on demand of %d", phases, verdicts,
			managed, st.OnDemand, onDemand)
	}
	if len(st.Blocked) > maxBlocked+1 || len(st.History) > maxPast {
		return "it tells too much"
	}
	for i, b := range st.Blocked {
		if b.Rule == "" || b.What == "" || b.Why == "" || b.Until == "" && i < maxBlocked || i > 0 &&
			i < maxBlocked && b.What < st.Blocked[i-1].What {
			return fmt.Sprintf("what is blocked says not all, or is out of order: %+v", st.Blocked)
		}
	}
	return ""
}
