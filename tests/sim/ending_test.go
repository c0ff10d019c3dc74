package sim_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// patience is how long everything may take to come right once nothing goes wrong any more. The
// longest waits of these groups are minutes; several may follow one another.
const patience = 40 * time.Minute

// end ends all troubles: every group comes to its rightful end, and stays there.
func (tr *trial) end() {
	for !tr.w.Reachable() {
		tr.w.Step()
	}
	tr.w.Calm()
	tr.settle()
	tr.healsInAFreeze()
	deadline, asked := tr.w.Elapsed()+patience, tr.w.Elapsed()
	missing := "not looked yet"
	for next := tr.w.Elapsed() + 2*time.Minute; missing != "" && tr.failed == ""; next += 5 * time.Second {
		tr.w.RunUntil(sim.Epoch.Add(next))
		if missing = tr.missing(); missing == "" {
			break
		}
		if tr.w.Elapsed() > deadline {
			tr.fail("%s after all troubles have ended: %s", patience, missing)
		}
		if tr.w.Elapsed()-asked > 5*time.Minute { // an operator who looks at it now and then
			asked = tr.w.Elapsed()
			tr.retryAll()
		}
	}
	if tr.failed == "" {
		tr.stays()
	}
}

// settle is what operators do then.
func (tr *trial) settle() {
	w := tr.w
	tr.mend()
	for _, hash := range tr.badHash {
		w.MendTemplate(hash)
	}
	for _, id := range tr.planted {
		w.Clear(id)
	}
	if w.Shard().Hold != nil {
		w.Release()
	}
	if w.Shard().Settings.LimitInstances > 0 {
		w.Set("limit_instances", "0")
	}
	w.Set("budget_groups", "shop:100") // a group that stays down holds up the others for good
	for _, name := range tr.groups() {
		f := tr.inForce(name)
		if !f.there || w.Value(w.Keys().Group(name)) == nil {
			continue
		}
		if f.spec.Deleting {
			tr.editGroup(name, "resumed at last", func(g *store.Group) { g.Paused = false })
			continue
		}
		switch tr.between(1, 12) {
		case 1:
			tr.editGroup(name, "deleted at last", func(g *store.Group) { g.Deleting, g.Paused = true, false })
		case 2:
			tr.editGroup(name, "stopped at last", func(g *store.Group) { g.Stopped, g.Paused = true, false })
		case 3:
			tr.editGroup(name, "paused at last", func(g *store.Group) { g.Stopped, g.Paused = false, true })
		default:
			if f.spec.Paused || f.spec.Stopped {
				tr.editGroup(name, "resumed at last", func(g *store.Group) { g.Stopped, g.Paused = false, false })
			}
		}
	}
	tr.retryAll()
}

// retryAll is what operators do whenever they look.
func (tr *trial) retryAll() {
	w := tr.w
	for _, zone := range slices.Sorted(maps.Keys(w.Shard().Evacuated)) {
		tr.order(store.Request{Kind: store.RequestReturn, Zone: zone})
	}
	for _, id := range w.Instances() {
		if rec := w.Instance(id).Record; rec.Protected != "" {
			tr.order(store.Request{Kind: store.RequestProtect, Instance: id, Group: rec.Group, Mode: store.ProtectOff})
		}
	}
	for _, name := range tr.groups() {
		if f := tr.inForce(name); f.there && !f.spec.Deleting {
			st := sim.Read[store.Status](tr.w, tr.w.Keys().Status(name)).Record
			if st.Errored > 0 || st.Flapping > 0 || st.Rollout != nil && st.Rollout.Blamed != "" {
				tr.order(store.Request{Kind: store.RequestRetry, Group: name})
			}
			if st.Storm != nil && st.Storm.Ended == "" {
				tr.order(store.Request{Kind: store.RequestOverrideStorm, Group: name})
			}
		}
	}
	if tr.w.Shard().Hold != nil {
		tr.w.Release()
	}
}

// missing returns what is not as it should be in the end; "" if nothing is.
func (tr *trial) missing() string {
	for _, name := range []string{"db", "job", "web"} {
		if why := tr.missingOf(name); why != "" {
			return "group " + name + ": " + why
		}
	}
	return tr.leaks()
}

// leaks: no machine without a record, and no record without a machine.
func (tr *trial) leaks() string {
	for _, id := range tr.w.Machines() {
		if !tr.w.Instance(id).Present() && !slices.Contains(tr.planted, id) {
			return "machine " + id + " has no record"
		}
	}
	for _, id := range tr.w.Instances() {
		rec := tr.w.Instance(id).Record
		if _, there := tr.w.Machine(id); !there && tr.inForce(rec.Group).there && !tr.inForce(rec.Group).spec.Paused &&
			rec.Managed && !tr.tolerant(tr.inForce(rec.Group).spec) {
			return "record " + id + " has no machine"
		}
	}
	return ""
}

// tolerant reports whether what has failed may stay as it is: it is not to be healed, or no budget
// lets anyone.
func (tr *trial) tolerant(g store.Group) bool {
	return g.Heal.Policy == store.HealNone || g.MaxExpansionFor(g.Budget.Heal) == 0 && g.MaxUnavailableFor(g.Budget.Heal,
		false) == 0
}

// mayRoll reports whether any budget lets a roll replace what works.
func mayRoll(g store.Group) bool {
	return g.MaxExpansionFor(g.Budget.Roll) > 0 || g.MaxUnavailableFor(g.Budget.Roll, false) > 0
}

func (tr *trial) missingOf(name string) string {
	w := tr.w
	f := tr.inForce(name)
	members := slices.DeleteFunc(tr.members(name), func(m store.Instance) bool { return !m.Managed })
	switch {
	case !f.there || f.spec.Deleting:
		if w.Value(w.Keys().Group(name)) != nil || len(members) > 0 {
			return fmt.Sprintf("it is deleted, and %d instances or its key are left", len(members))
		}
		return ""
	case f.spec.Stopped:
		if len(members) > 0 {
			return fmt.Sprintf("it is stopped, and %d instances are left", len(members))
		}
		return ""
	case f.spec.Paused:
		return ""
	}
	if ages(f.spec) {
		return tr.missingOfAging(f, members)
	}
	slots := map[int]bool{}
	for _, m := range members {
		slots[m.Slot] = true
		if why := tr.unfit(f, m); why != "" {
			return m.ID + " " + why
		}
	}
	if f.spec.Heal.Policy == store.HealNone && len(members) > len(slots) && len(slots) == f.spec.Size {
		return "" // what failed stays for the operator to see, its failed replacement too
	}
	if len(members) != f.spec.Size || len(slots) != f.spec.Size {
		return fmt.Sprintf("%d instances in %d slots, size is %d", len(members), len(slots), f.spec.Size)
	}
	return ""
}

// ages reports whether instances of a group are replaced again and again because they grow old.
func ages(g store.Group) bool {
	return g.Spot.Enabled || g.Capacity.Spot > 0 || g.Expiry.ForcedAge != nil || g.Expiry.EligibleAge != nil
}

// missingOfAging asks less of a group in which some instance always is on the way: that one works
// in each slot. Forced expiry comes before a roll (REC-5) and creates from the last good template
// until the new one is proved (ROLL-9): where each comes of age before the others have been
// replaced, the roll gets no room.
func (tr *trial) missingOfAging(f inForce, members []store.Instance) string {
	slots := map[int]bool{}
	st := sim.Read[store.Status](tr.w, tr.w.Keys().Status(f.spec.Name)).Record
	unproved := f.spec.Expiry.ForcedAge != nil && st.Rollout != nil && !st.Rollout.Proved
	for _, m := range members {
		good := unproved && st.LastGood != nil && m.Template == st.LastGood.Template
		if why := tr.unfit(f, m); why == "" || why == outdated && good {
			slots[m.Slot] = true
		}
	}
	if len(slots) != f.spec.Size {
		return fmt.Sprintf("%d slots have a working instance, size is %d", len(slots), f.spec.Size)
	}
	return ""
}

const outdated = "is outdated"

// unfit returns why a member is not as it should be in the end; "" if it is.
func (tr *trial) unfit(f inForce, m store.Instance) string {
	switch {
	case m.Phase == store.Finished:
		return ""
	case (m.Condemned != nil || m.Doomed != nil) && !tr.tolerant(f.spec):
		return "is to go still"
	}
	if m.Phase != store.Running && !tr.failsForGood(f, m) {
		return "is " + string(m.Phase)
	}
	if !tr.w.Works(m.ID) && !tr.failsForGood(f, m) {
		return "does not work"
	}
	proactive := f.spec.Rollout.Strategy == store.StrategyProactive
	if (m.Template != f.hash && proactive || m.Relaunch < f.spec.Relaunch.Number) && !tr.tolerant(f.spec) &&
		mayRoll(f.spec) && tr.w.Works(m.ID) && !tr.heldForGood(f.spec) {
		return outdated
	}
	return ""
}

// failsForGood reports whether a member has failed and nothing may be done about it.
func (tr *trial) failsForGood(f inForce, m store.Instance) bool {
	j, known := tr.w.Judgment(m.ID)
	return known && j.Verdict.Failed() && (tr.tolerant(f.spec) || tr.heldForGood(f.spec))
}

// maxAtRest is how many actions two minutes may bring in which nothing goes wrong and no instance
// grows old.
const maxAtRest = 100

// did is how many actions were carried out.
func (tr *trial) did() int {
	n := 0
	for _, of := range tr.actions {
		n += of
	}
	return n
}

// stays: once all is as it should be, nothing is taken down or made any more.
func (tr *trial) stays() {
	restless := map[string]bool{}
	for _, name := range tr.groups() {
		g := tr.inForce(name).spec
		restless[name] = ages(g) || g.Lifecycle == store.LifecycleTask || tr.tolerant(g)
		st := sim.Read[store.Status](tr.w, tr.w.Keys().Status(name)).Record
		tr.endings[string(st.State)]++
	}
	before := map[string]bool{}
	for _, id := range tr.w.Instances() {
		if rec := tr.w.Instance(id).Record; rec.Managed && rec.Phase == store.Running && !restless[rec.Group] {
			before[id] = true
		}
	}
	did := tr.did()
	tr.w.RunUntil(tr.w.Now().Add(2 * time.Minute))
	if n := tr.did() - did; n > maxAtRest && len(before) == len(tr.w.Instances()) {
		tr.fail("all was as it should be, and in the two minutes after that %d actions were carried out", n)
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if rec := tr.w.Instance(id); !rec.Present() || rec.Record.Phase != store.Running {
			tr.fail("all was as it should be, and two minutes later %s is %q", id, rec.Record.Phase)
		}
	}
}
