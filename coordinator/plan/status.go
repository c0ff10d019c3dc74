package plan

import (
	"maps"
	"reflect"
	"slices"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// maxBlocked bounds the list of blocked work in a status.
const maxBlocked = 20

// status writes the state of the group.
type status struct {
	*draft
	held []store.Blocked // decided work that has to wait
	last *store.Status   // as it should be now
}

// update writes status/<group> when it has changed. It counts facts, not the draft: the results of
// this plan's actions are counted once they exist.
func (d *status) update() {
	switch {
	case d.spec == nil && d.invalid == nil:
		d.forget()
		return
	case d.groupEnds():
		return
	}
	old := &d.g.Status.Record
	st := store.Status{
		Schema: store.Schema, Group: d.g.Name, Accepted: d.spec, AcceptedRevision: d.acceptedRevision,
		Invalid: d.invalid,
		State:   store.GroupRefused, Phases: map[store.Phase]int{}, Verdicts: map[store.Verdict]int{},
		Storm: d.storms.storm, Breaker: d.healing.breaker, HealNext: d.healing.nextToHeal(),
		Rollout: d.roll.rollout, Scale: d.scaler.scale,
		LastGood: old.LastGood, History: old.History,
		Agents: d.agents.wave, DrillDue: d.drills.due,
	}
	if st.Beside = d.g.Spec.Beside; d.invalid != nil || d.g.Spec.Pending {
		st.Beside = old.Beside
	}
	d.countInstances(&st)
	d.countSlots(&st)
	d.countRecords(&st)
	st.Blocked = d.blockedWork()
	if d.spec != nil {
		requested := d.spec.Size
		if d.spec.Deleting || d.spec.Stopped || d.spec.Unstarted {
			requested = 0
		}
		st.Health = HealthScore(st.Healthy, requested)
		st.State = d.state(&st)
		d.remembersGood(&st)
		st.Uneven, st.Rebalance, st.Shares = d.zoning.unevenly(), d.zoning.followRebalance(), d.shares.follow()
	}
	st.OK = st.Health == 100 && st.Invalid == nil && d.damage.damaged == 0
	st.Since = old.Since
	if old.State != st.State || old.Health != st.Health || !sameInvalid(old.Invalid, st.Invalid) || old.Since.IsZero() {
		st.Since = d.now.UTC()
	}
	d.last = &st
	if len(d.orders.settled) == 0 && d.g.Status.Present() && d.g.StatusSpoiled == "" && d.same(old, &st) {
		return
	}
	d.write(old, &st)
}

// statusAction writes the status.
func (d *status) statusAction(st *store.Status) Action {
	key := d.s.Keys.Status(d.g.Name)
	a := Action{
		Group: d.g.Name, Rule: "REC-10", Effect: effect(store.EffectStatus), NoJournal: true,
		Conditions: append([]store.Condition{store.At(key, d.g.Status.Modified)}, d.specUnchanged()...),
		Writes:     []store.Write{store.Put(key, nil)},
	}
	if d.unencoded {
		a.Status = st
	} else {
		a.Writes[0].Value = store.Encode(*st)
	}
	return a
}

func (d *status) write(old, st *store.Status) {
	if d.unencoded && st.Accepted != nil { // it must not keep this snapshot, and through that the one before
		accepted := *st.Accepted
		st.Accepted = &accepted
	}
	a := d.statusAction(st)
	if !d.g.Status.Present() {
		a.Writes = append(a.Writes, forgetEarlier(d.s.Keys, d.g.Name)...)
	}
	for _, r := range d.orders.settled {
		a.Conditions = append(a.Conditions, r.Unchanged())
		a.Writes = append(a.Writes, store.Delete(r.Key))
	}
	tell := func(n Note) {
		a.NoJournal, a.Rule, a.Effect, a.Counterfactual = false, n.Rule, n.Effect, n.Counterfactual
		a.Why, a.Cause = reason.Short(n.Cause), reason.Recorded(n.Cause)
	}
	switch {
	case d.g.StatusSpoiled != "":
		tell(Note{
			Rule: "SAFE-16", Effect: effect(store.EffectStatusWritten),
			Cause: store.Cause{Kind: store.CauseUnreadable, Text: d.g.StatusSpoiled},
		})
	case !sameInvalid(old.Invalid, st.Invalid) && st.Invalid != nil:
		tell(Note{Rule: "SAFE-10", Effect: effect(store.EffectSpecRefused), Cause: store.Cause{Text: st.Invalid.Why}})
		a.Facts = []store.Fact{{Kind: store.FactSpec, Name: d.g.Name, Rev: st.Invalid.Revision}}
		if d.spec != nil {
			a.Facts = append(a.Facts, store.Fact{Kind: store.FactSpecStays, Rev: st.AcceptedRevision})
		}
	case old.AcceptedRevision != st.AcceptedRevision:
		tell(Note{Rule: "REC-1", Effect: effect(store.EffectSpecAccepted), Cause: store.Cause{
			Kind: store.CauseSpec, Count: d.spec.Size, Name: d.hash, Other: setBeside(d.spec),
		}})
		a.Facts = []store.Fact{{Kind: store.FactSpec, Name: d.g.Name, Rev: st.AcceptedRevision}}
	case len(d.notes) > 0:
		tell(d.notes[0])
		d.notes = d.notes[1:]
	case old.State != st.State && old.State != "":
		tell(Note{
			Rule: "REC-11", Effect: named(store.EffectGroupState, string(st.State)),
			Cause: store.Cause{Kind: store.CauseStateBefore, Name: string(old.State)},
		})
	}
	a.Turn = st.Storm != nil && st.Storm.Ended == "" && (old.Storm == nil || old.Storm.Ended != "")
	if a.Notes = d.notes; a.NoJournal {
		d.actions = append(d.actions, a)
		return
	}
	d.actions = append([]Action{a}, d.actions...) // its consequences come after it in the journal
}

// forgetEarlier deletes the notes that an earlier group of the same name was deleted on purpose:
// they say nothing of the group that exists now, should its records be lost (SAFE-15).
func forgetEarlier(keys store.Keys, group string) []store.Write {
	var out []store.Write
	for _, key := range []string{keys.Group(group), keys.Static(group), keys.Status(group)} {
		out = append(out, store.Delete(keys.Gone(key)))
	}
	return out
}

// setBeside returns what an operator has set beside the spec: a pause, a stop or a deletion.
func setBeside(g *store.Group) string {
	switch {
	case g.Deleting:
		return reason.SpecDeleting
	case g.Stopped:
		return reason.SpecStopped
	case g.Unstarted:
		return reason.SpecUnstarted
	case g.Paused:
		return reason.SpecPaused
	default:
		return ""
	}
}

func (d *status) countInstances(st *store.Status) {
	// Neighbours are mostly alike, and a map is slow: equal neighbours are counted first, then
	// added.
	var phase store.Phase
	var verdict store.Verdict
	alike := 0
	add := func() {
		if alike > 0 {
			st.Phases[phase] += alike
			st.Verdicts[verdict] += alike
		}
	}
	defer add()
	for i := range d.g.Instances {
		m := d.members[i] // members begin with the instances, in their order
		rec := &m.Record
		if !rec.Managed {
			st.OnDemand++
			continue
		}
		if rec.Phase != phase || m.judgment.Verdict != verdict {
			add()
			phase, verdict, alike = rec.Phase, m.judgment.Verdict, 0
		}
		alike++
		if rec.Phase == store.Finished || rec.Phase == store.Running && m.working() {
			st.Healthy++
		}
		if d.spec != nil && rec.Phase.Fills() && d.outdated(m) {
			st.Outdated++
		}
	}
}

func (d *status) countSlots(st *store.Status) {
	for _, sl := range d.order {
		switch {
		case sl.Record.Errored != "":
			st.Errored++
		case sl.Record.Flapping > 0:
			st.Flapping++
		}
	}
}

// state returns the state of the group as a whole: REC-11.
func (d *status) state(st *store.Status) store.GroupState {
	switch {
	case d.spec.Deleting:
		return store.GroupDeleting
	case d.spec.Stopped:
		return store.GroupStopped
	case d.spec.Unstarted:
		return store.GroupReady
	case d.spec.Paused:
		return store.GroupPaused
	case d.spec.Size > 0 && st.Phases[store.Finished] >= d.spec.Size:
		return store.GroupFinished
	}
	if st.Errored == 0 {
		return store.GroupStarted
	}
	for _, sl := range d.order { // errored if every slot that is not healthy is given up
		if sl.Record.Errored == "" && sl.well == 0 {
			return store.GroupStarted
		}
	}
	return store.GroupErrored
}

// maxPast is how many past specs a status remembers.
const maxPast = 10

// remembersGood records the specs that were in force, and the last one with which the whole group
// was healthy (ROLL-4).
func (d *status) remembersGood(st *store.Status) {
	if d.g.Status.Record.AcceptedRevision != d.acceptedRevision {
		past := store.PastSpec{Revision: d.acceptedRevision, At: d.now.UTC(), Template: d.hash, Size: d.spec.Size}
		st.History = append([]store.PastSpec{past}, st.History...)
		st.History = st.History[:min(len(st.History), maxPast)]
	}
	good := d.spec.Size > 0 && d.roll.count.done >= d.spec.Size && d.roll.count.outdated == 0 &&
		st.State == store.GroupStarted
	if !good {
		return
	}
	if st.LastGood == nil || st.LastGood.Template != d.hash {
		st.LastGood = &store.GoodSpec{
			Revision: d.acceptedRevision, Template: d.hash, At: d.now.UTC(),
			Spec: d.spec.InstanceSpec(),
		}
	}
	if len(st.History) > 0 && !st.History[0].Good {
		st.History = slices.Clone(st.History)
		st.History[0].Good = true
	}
}

// same compares what a reader sees. The spec in force is compared by its revision: a full
// comparison would cost more than the rest of a plan.
func (d *status) same(a, b *store.Status) bool {
	if a.Accepted == nil != (b.Accepted == nil) || a.Accepted != nil && d.g.Spec.StaticModified != 0 &&
		!reflect.DeepEqual(a.Accepted, b.Accepted) {
		return false
	}
	if !samePart(a.Scale, b.Scale) || a.Scale != nil && a.Accepted != nil && b.Accepted != nil &&
		a.Accepted.Size != b.Accepted.Size {
		return false
	}
	if a.Beside == nil != (b.Beside == nil) || a.Beside != nil && a.Beside.Revision != b.Beside.Revision {
		return false
	}
	return a.AcceptedRevision == b.AcceptedRevision && sameInvalid(a.Invalid, b.Invalid) && a.State == b.State &&
		a.Health == b.Health &&
		a.Healthy == b.Healthy && a.OK == b.OK && a.Since.Equal(b.Since) && maps.Equal(a.Phases, b.Phases) &&
		maps.Equal(a.Verdicts, b.Verdicts) &&
		a.Outdated == b.Outdated && a.OnDemand == b.OnDemand && a.Flapping == b.Flapping && a.Errored == b.Errored &&
		samePart(a.Agents, b.Agents) && a.DrillDue.Equal(b.DrillDue) &&
		samePart(a.Storm, b.Storm) && samePart(a.Breaker, b.Breaker) && a.HealNext == b.HealNext &&
		samePart(a.Rollout, b.Rollout) &&
		a.Uneven == b.Uneven && samePart(a.Rebalance, b.Rebalance) && samePart(a.Shares, b.Shares) &&
		sameGood(a.LastGood, b.LastGood) && slices.Equal(a.History, b.History) &&
		slices.EqualFunc(a.Blocked, b.Blocked, sameBlocked) && d.sameRecords(a, b)
}

// sameBlocked also compares what a cause points to.
func sameBlocked(a, b store.Blocked) bool { return a == b || reflect.DeepEqual(a, b) }

func samePart[T any](a, b *T) bool { return a == b || a != nil && b != nil && reflect.DeepEqual(a, b) }

func sameGood(a, b *store.GoodSpec) bool {
	return a == b || a != nil && b != nil && a.Template == b.Template && a.Revision == b.Revision
}

func sameInvalid(a, b *store.InvalidSpec) bool { return a == b || a != nil && b != nil && *a == *b }

// forget removes the status of a group whose spec was withdrawn before any spec of it was accepted.
func (d *status) forget() {
	if !d.g.Status.Present() || len(d.g.Instances) > 0 || d.damage.damaged > 0 {
		return
	}
	d.actions = append(d.actions, Action{
		Group: d.g.Name, Rule: "SAFE-10", Effect: effect(store.EffectStatusRemoved),
		Why: reason.Short(of(store.CauseNeverAccepted)), Cause: of(store.CauseNeverAccepted),
		Conditions: append([]store.Condition{d.g.Status.Unchanged()}, d.specUnchanged()...),
		Writes:     []store.Write{store.Delete(d.g.Status.Key)},
	})
}

// groupEnds reports whether an action of this plan removes the group.
func (d *draft) groupEnds() bool {
	if d.spec == nil || !d.spec.Deleting || !d.mayAct() || d.damage.damaged > 0 {
		return false
	}
	return !slices.ContainsFunc(d.members, func(m *member) bool { return m.Record.Managed })
}

// HealthScore is healthy ÷ requested as a percentage, rounded down, at most 100, and 100 for
// nothing requested (REC-10).
func HealthScore(healthy, requested int) int {
	if requested == 0 {
		return 100
	}
	return min(100, healthy*100/requested)
}

// task is work that may be blocked.
type task struct {
	work     store.Work
	instance string
	slot     int
	zone, to string
}

// without are the rules whose decisions depend on more than a verdict.
var without = map[string]store.Counterfactual{
	"HEAL-6":  store.UnlessDown,
	"HEAL-8":  store.UnlessRoom,
	"HEAL-9":  store.UnlessSize,
	"REC-3":   store.UnlessFilled,
	"REC-7":   store.UnlessKept,
	"REC-8":   store.UnlessAdopted,
	"REC-11":  store.UnlessStarted,
	"REC-12":  store.UnlessEndedBadly,
	"REC-16":  store.UnlessOrdered,
	"REC-17":  store.UnlessUneven,
	"ROLL-1":  store.UnlessStrategy,
	"ROLL-2":  store.UnlessStrategy,
	"ROLL-4":  store.UnlessProgress,
	"AUTO-1":  store.UnlessLoad,
	"FLAP-3":  store.UnlessSteady,
	"FLAP-5":  store.UnlessTemplateWorks,
	"EXP-1":   store.UnlessYounger,
	"SPOT-2":  store.UnlessNoticed,
	"SPOT-3":  store.UnlessYounger,
	"SPOT-4":  store.UnlessShared,
	"DRAIN-1": store.UnlessDrained,
	"DRAIN-3": store.UnlessEvacuated,
	"SAFE-2":  store.UnlessManyLost,
	"SAFE-15": store.UnlessDamaged,
	"SAFE-12": store.UnlessUnrecorded,
	"PROV-7":  store.UnlessUnoffered,
}
