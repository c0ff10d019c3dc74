package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// mostBlocked bounds the list of blocked work in a status.
const mostBlocked = 20

// status writes status/<group> where it has changed. It counts facts, not the draft: what the
// actions of this plan bring is counted once it is there.
func (d *draft) status() {
	switch {
	case d.spec == nil && d.invalid == nil:
		d.forgetStatus()
		return
	case d.groupEnds():
		return
	}
	old := &d.g.Status.Record
	st := store.Status{
		Schema: store.Schema, Group: d.g.Name, Accepted: d.spec, AcceptedRevision: d.acceptedRevision,
		Invalid: d.invalid,
		State:   store.GroupRefused, Phases: map[store.Phase]int{}, Verdicts: map[store.Verdict]int{},
		Storm: d.storm, Rollout: d.rollout, LastGood: old.LastGood, History: old.History,
	}
	if st.Beside = d.g.Spec.Beside; d.invalid != nil {
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
		st.Uneven, st.Rebalance = d.unevenly(), d.followRebalance()
	}
	st.OK = st.Health == 100 && st.Invalid == nil && d.damaged == 0
	st.Since = old.Since
	if old.State != st.State || old.Health != st.Health || !sameInvalid(old.Invalid, st.Invalid) || old.Since.IsZero() {
		st.Since = d.now.UTC()
	}
	if len(d.settled) == 0 && d.g.Status.Present() && d.g.StatusSpoiled == "" && d.sameStatus(old, &st) {
		return
	}
	d.writeStatus(old, &st)
}

func (d *draft) writeStatus(old, st *store.Status) {
	a := Action{
		Group: d.g.Name, Rule: "REC-10", What: "status", NoJournal: true,
		Conditions: append([]store.Condition{store.At(d.s.Keys.Status(d.g.Name), d.g.Status.Modified)},
			d.specUnchanged()...),
		Writes: []store.Write{store.Put(d.s.Keys.Status(d.g.Name), store.Encode(*st))},
	}
	for _, r := range d.settled {
		a.Conditions = append(a.Conditions, r.Unchanged())
		a.Writes = append(a.Writes, store.Delete(r.Key))
	}
	switch {
	case d.g.StatusSpoiled != "":
		a.NoJournal, a.Rule, a.What, a.Why = false, "SAFE-16", "status written anew",
			"it could not be read: "+d.g.StatusSpoiled
	case !sameInvalid(old.Invalid, st.Invalid) && st.Invalid != nil:
		a.NoJournal, a.Rule, a.What, a.Why = false, "SAFE-10", "spec not accepted", st.Invalid.Why
		a.Evidence = []string{fmt.Sprintf("groups/%s rev %d", d.g.Name, st.Invalid.Revision)}
		if d.spec != nil {
			a.Evidence = append(a.Evidence, fmt.Sprintf("rev %d stays in force", st.AcceptedRevision))
		}
	case old.AcceptedRevision != st.AcceptedRevision:
		a.NoJournal, a.Rule, a.What, a.Why = false, "REC-1", "spec accepted",
			fmt.Sprintf("size %d, template %s%s", d.spec.Size, d.hash, standing(d.spec))
		a.Evidence = []string{fmt.Sprintf("groups/%s rev %d", d.g.Name, st.AcceptedRevision)}
	case len(d.notes) > 0:
		a.NoJournal, a.Rule, a.What, a.Why, a.Counterfactual = false, d.notes[0].Rule, d.notes[0].What, d.notes[0].Why,
			d.notes[0].Counterfactual
		d.notes = d.notes[1:]
	case old.State != st.State && old.State != "":
		a.NoJournal, a.Rule, a.What, a.Why = false, "REC-11", "group is "+string(st.State), "it was "+string(old.State)
	}
	if a.Notes = d.notes; a.NoJournal {
		d.actions = append(d.actions, a)
		return
	}
	d.actions = append([]Action{a}, d.actions...) // what follows from it comes after it in the journal
}

// standing is what an operator has set besides, in words.
func standing(g *store.Group) string {
	switch {
	case g.Deleting:
		return ", to be deleted"
	case g.Stopped:
		return ", stopped"
	case g.Unstarted:
		return ", not started"
	case g.Paused:
		return ", paused"
	default:
		return ""
	}
}

func (d *draft) countInstances(st *store.Status) {
	// Neighbours are mostly alike, and a map is slow: what is alike is counted first, and then
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

func (d *draft) countSlots(st *store.Status) {
	for _, sl := range d.order {
		switch {
		case sl.Record.Errored != "":
			st.Errored++
		case sl.Record.Flapping > 0:
			st.Flapping++
		}
	}
}

// state is the state of the group as a whole: REC-11.
func (d *draft) state(st *store.Status) store.GroupState {
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

// mostPast is how many past specs a status remembers.
const mostPast = 10

// remembersGood notes the specs that were in force, and the last one with which the whole group was
// healthy (ROLL-4).
func (d *draft) remembersGood(st *store.Status) {
	if d.g.Status.Record.AcceptedRevision != d.acceptedRevision {
		past := store.PastSpec{Revision: d.acceptedRevision, At: d.now.UTC(), Template: d.hash, Size: d.spec.Size}
		st.History = append([]store.PastSpec{past}, st.History...)
		st.History = st.History[:min(len(st.History), mostPast)]
	}
	good := d.spec.Size > 0 && d.roll.done >= d.spec.Size && d.roll.outdated == 0 && st.State == store.GroupStarted
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

// sameStatus compares what a reader sees. The spec in force is compared by its revision: comparing
// all of it each time would cost more than the rest of a plan.
func (d *draft) sameStatus(a, b *store.Status) bool {
	if a.Accepted == nil != (b.Accepted == nil) || a.Accepted != nil && d.g.Spec.StaticModified != 0 &&
		!reflect.DeepEqual(a.Accepted, b.Accepted) {
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
		samePart(a.Storm, b.Storm) && samePart(a.Rollout, b.Rollout) && a.Uneven == b.Uneven &&
		samePart(a.Rebalance, b.Rebalance) && sameGood(a.LastGood, b.LastGood) &&
		slices.Equal(a.History, b.History) && slices.Equal(a.Blocked, b.Blocked) && d.sameRecords(a, b)
}

func samePart[T any](a, b *T) bool { return a == b || a != nil && b != nil && reflect.DeepEqual(a, b) }

func sameGood(a, b *store.GoodSpec) bool {
	return a == b || a != nil && b != nil && a.Template == b.Template && a.Revision == b.Revision
}

func sameInvalid(a, b *store.InvalidSpec) bool { return a == b || a != nil && b != nil && *a == *b }

// forgetStatus removes the status of a group whose spec was withdrawn before any spec of it
// was accepted.
func (d *draft) forgetStatus() {
	if !d.g.Status.Present() || len(d.g.Instances) > 0 || d.damaged > 0 {
		return
	}
	d.actions = append(d.actions, Action{
		Group: d.g.Name, Rule: "SAFE-10", What: "status removed",
		Why:        "the group's key is gone, and no spec of it was ever in force",
		Conditions: append([]store.Condition{d.g.Status.Unchanged()}, d.specUnchanged()...),
		Writes:     []store.Write{store.Delete(d.g.Status.Key)},
	})
}

// groupEnds reports whether an action of this plan removes the group.
func (d *draft) groupEnds() bool {
	if d.spec == nil || !d.spec.Deleting || !d.mayAct() || d.damaged > 0 {
		return false
	}
	return !slices.ContainsFunc(d.members, func(m *member) bool { return m.Record.Managed })
}

// blockRefused tells once of all machines that a provider refuses to make for one reason (PROV-5).
func (d *draft) blockRefused() {
	if len(d.s.Refusals) == 0 {
		return
	}
	waiting, why := map[Refused]int{}, map[Refused]string{}
	for _, m := range d.members {
		if m.phase != store.Pending && m.phase != store.Creating {
			continue
		}
		if of, r, refused := d.refusal(m); refused {
			waiting[of]++
			why[of] = r.Why
		}
	}
	for of, n := range waiting { // the list is sorted
		d.block("PROV-5", task{work: store.WorkCreateMissing}, store.BlockedByRefusal,
			store.BlockedFacts{Name: of.Provider, Count: n, Text: why[of]})
	}
}

// blockCopies tells of machines beside an instance's own that none of our calls made: they are
// left alone (PROV-4).
func (d *draft) blockCopies(m *member) {
	if len(m.Sighting.Copies) == 0 || !m.phase.Registered() {
		return // all of them go, or one of them may yet register, which shows that the others are not needed
	}
	var refs []string
	for _, c := range m.Sighting.Copies {
		if !c.Spare {
			refs = append(refs, c.Ref)
		}
	}
	if len(refs) > 0 {
		d.block("PROV-4", m.task(store.WorkInstance), store.BlockedByCopies,
			store.BlockedFacts{Count: len(refs), Text: strings.Join(refs[:min(3, len(refs))], ", ")})
	}
}

func (d *draft) blockedWork() []store.Blocked {
	d.held = append([]store.Blocked(nil), d.blocked...) // what follows is told where it happens
	d.blockRefused()
	for _, m := range d.members {
		d.blockCopies(m)
		if m.phase == store.Running {
			continue
		}
		if m.Calls.Problem != "" && (m.phase == store.Pending || m.phase == store.Creating ||
			m.phase == store.Deleting) {
			d.block("HEAL-12", m.task(store.WorkPhase), store.BlockedByProvider,
				store.BlockedFacts{Phase: m.phase, Text: m.Calls.Problem})
		}
		if m.Record.Phase == store.Checking && m.Alive.Present() && reportIsCurrent(m.Instance) &&
			!m.Report.Record.Healthy && !m.failing() {
			d.blockHealth(m)
		}
	}
	list := append([]store.Blocked(nil), d.blocked...)
	sort.SliceStable(list, func(i, j int) bool { return list[i].What < list[j].What })
	if extra := len(list) - mostBlocked; extra > 0 {
		list = append(list[:mostBlocked],
			store.Blocked{
				Rule: list[mostBlocked].Rule, Work: store.WorkMore, Of: store.BlockedFacts{Count: extra},
				What: fmt.Sprintf("%d more", extra), Why: "see leasehold instance list",
			})
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// blockHealth records what a member that is not healthy yet waits for. One that has failed waits
// for something else, recorded where that is decided.
func (d *draft) blockHealth(m *member) {
	if m.slot != nil && m.slot.Record.Errored != "" {
		d.block("FLAP-3", m.task(store.WorkHealth), store.BlockedByChecksGivenUp,
			store.BlockedFacts{Text: m.Report.Record.Why, Slot: m.slot.number, Name: m.slot.Record.Errored})
		return
	}
	d.block("DET-10", m.task(store.WorkHealth), store.BlockedByChecks,
		store.BlockedFacts{Text: m.Report.Record.Why, For: m.Record.Spec.MaxChecking})
}

// HealthScore is healthy ÷ requested as a percentage, rounded down, at most 100, and 100 for
// nothing requested (REC-10).
func HealthScore(healthy, requested int) int {
	if requested == 0 {
		return 100
	}
	return min(100, healthy*100/requested)
}

// progress takes instances to the phase that the facts show. It destroys nothing and needs no
// budget, so it goes on while the group is paused or the shard on hold.
func (d *draft) progress() {
	for _, m := range d.members {
		switch m.Record.Phase {
		case store.Creating:
			d.created(m)
		case store.Booting:
			d.registered(m)
		case store.Stopping:
			d.stopped(m)
		case store.Starting:
			d.started(m)
		case store.Checking:
			if !d.finished(m) {
				d.healthyNow(m)
			}
		case store.Running:
			if !d.finished(m) && !d.rebooted(m) {
				d.remember(m)
			}
		default: // goes on by what others decide
		}
		if m.Record.Phase != store.Deleting {
			d.hear(m)
		}
	}
}

// finished: the workload of a task has ended well (REC-12).
func (d *draft) finished(m *member) bool {
	if !m.Alive.Present() || !endedWell(m.Instance) {
		return false
	}
	a := d.step(m, store.Finished, "REC-12", "finished", because("its workload ended with exit code 0"),
		[]string{fmt.Sprintf("report rev %d", m.Report.Modified)}, nil)
	a.Conditions = append(a.Conditions, m.Report.Unchanged())
	return true
}

// created: the provider has the machine.
func (d *draft) created(m *member) {
	switch {
	case m.Calls.Made:
		d.step(m, store.Booting, "SAFE-8", "machine exists", because("the provider made it"),
			[]string{"provider ref " + m.Calls.Ref}, func(r *store.Instance) {
				r.Ref, r.Address = m.Calls.Ref, m.Calls.Address
			})
	case m.Sighting.Listed && !m.Calls.Busy: // a call that is under way says more, and soon
		d.step(m, store.Booting, "ELECT-3", "machine exists", because("the provider lists it"),
			[]string{providerSays(m.Instance)}, func(r *store.Instance) {
				r.Ref, r.Address = m.Sighting.Ref, m.Sighting.Address
			})
	}
}

// registered: its agent holds a lease.
func (d *draft) registered(m *member) {
	if !m.Alive.Present() || m.AliveUnreadable != "" {
		return
	}
	a := d.step(m, store.Checking, "DET-11", "agent registered", because(fmt.Sprintf("after %s", d.since(m))),
		[]string{streamSays(m.Instance)}, nil)
	a.Conditions = append(a.Conditions, m.Alive.Unchanged())
}

// healthyNow: it reports, and its checks pass.
func (d *draft) healthyNow(m *member) {
	if !m.Alive.Present() || m.Alive.Record.State != store.StreamOpen || !reportIsCurrent(m.Instance) ||
		!m.Report.Record.Healthy {
		return
	}
	if !m.working() || !restartConfirmed(m.Instance) {
		return
	}
	why := passed(m.Report.Record.Checks)
	a := d.step(m, store.Running, "DET-9", "healthy", because(fmt.Sprintf("%s, %s after it registered", why, d.since(m))),
		[]string{streamSays(m.Instance), fmt.Sprintf("report rev %d", m.Report.Modified)},
		func(r *store.Instance) { r.Restart, r.Boot = nil, m.Alive.Record.BootID })
	a.Conditions = append(a.Conditions, m.Alive.Unchanged(), m.Report.Unchanged())
}

// rebooted: its machine has started again by itself. What comes up has its time to get healthy, as
// after a restart that was ordered; from what it was before nothing follows.
func (d *draft) rebooted(m *member) bool {
	if !rebooted(m.Instance) || m.dead() {
		return false
	}
	a := d.step(m, store.Checking, "DET-10", "back after a restart of its machine",
		because("it reports from another boot, and nobody ordered that"), []string{streamSays(m.Instance)}, nil)
	a.Conditions = append(a.Conditions, m.Alive.Unchanged())
	return true
}

// passed returns which checks an instance passed that is healthy: all that count, and what the
// optional ones tell.
func passed(checks []store.CheckReport) string {
	if len(checks) == 0 {
		return "its agent reports and it has no checks"
	}
	count, failing := 0, 0
	for _, c := range checks {
		switch {
		case !c.Optional:
			count++
		case !c.Healthy:
			failing++
		}
	}
	why := fmt.Sprintf("checks %d/%d", count, count)
	if failing > 0 {
		why += fmt.Sprintf(" (and %d optional failing)", failing)
	}
	return why
}

// remember forgets the failures of a slot whose instance has been healthy for long enough (FLAP-4).
func (d *draft) remember(m *member) {
	if !m.Record.Managed || !m.healthy() {
		return
	}
	if m.Record.Counted {
		d.recovered(m)
		return
	}
	sl := m.slot
	if d.spec == nil || len(sl.Record.Failures) == 0 || sl.touched || d.standsIn(m) {
		return
	}
	if due := d.forgetFrom(m, sl); d.now.Before(due) {
		d.wake(due)
		return
	}
	a := d.forget(sl, "FLAP-4", m.ID()+" has been healthy for "+d.spec.Flap.Reset.String(), m.Unchanged())
	a.Cause.Kind = store.CauseCalm
}

// standsIn reports whether a member has to go and that others have failed in its place, on what is
// wanted: that the old one is well proves nothing of the new (FLAP-2, FLAP-5).
func (d *draft) standsIn(m *member) bool {
	if !d.leaving(m) && !m.unwantedOrdered() {
		return false
	}
	return slices.ContainsFunc(m.slot.Record.Failures,
		func(f store.Failure) bool { return f.Template == d.hash && f.Instance != m.ID() })
}

// forget has a slot start afresh.
func (d *draft) forget(sl *slot, rule, why string, also ...store.Condition) *Action {
	rec := &sl.Record
	rec.Failures, rec.Retry, rec.GiveUp, rec.Flapping, rec.Errored = nil, nil, nil, 0, ""
	sl.retry, sl.giveUp = time.Time{}, time.Time{}
	a := Action{
		Group: d.g.Name, Slot: &sl.number, Rule: rule, What: "slot's failures forgotten", Why: why, Conditions: also,
	}
	d.writeSlot(&a, sl)
	d.actions = append(d.actions, a)
	return &d.actions[len(d.actions)-1]
}

// forgetFrom is when a member has been healthy for flap.reset: since it runs, and since the last
// failure of its slot, which may have been its own. A failure that a wrong clock put into the
// future does not count.
func (d *draft) forgetFrom(m *member, sl *slot) time.Time {
	reset := d.spec.Flap.Reset.D()
	due := m.PhaseStart.Add(reset)
	for _, f := range sl.Record.Failures {
		if at := f.At.Add(reset); at.After(due) && d.now.Sub(f.At) > -time.Minute {
			due = at
		}
	}
	return due
}

// recovered takes back that its failure is counted: the next one is another (FLAP-1).
func (d *draft) recovered(m *member) {
	a := d.step(m, m.phase, "HEAL-6", "recovered", because(m.judgment.Why), m.evidence(),
		func(r *store.Instance) { r.Counted = false })
	a.Conditions = append(a.Conditions, m.Alive.Unchanged(), m.Report.Unchanged())
}

func (d *draft) since(m *member) time.Duration {
	return d.now.Sub(m.PhaseStart).Round(100 * time.Millisecond)
}

// task is work that may be blocked.
type task struct {
	work     store.Work
	instance string
	slot     int
	zone, to string
}

// task is work on the member.
func (m *member) task(work store.Work) task { return task{work: work, instance: m.ID()} }

// block records that a task is due and cannot be done yet.
func (d *draft) block(rule string, what task, why store.BlockedKind, of store.BlockedFacts) {
	of.Group = d.g.Name
	if what.work == store.WorkFill || what.work == store.WorkSlot {
		of.Slot = what.slot
	}
	if what.work == store.WorkRebalance {
		of.Zone, of.To = what.zone, what.to
	}
	b := store.Blocked{Rule: rule, Instance: what.instance, Kind: why, Work: what.work, Of: of}
	reason.Classify(&b)
	reason.Fill(&b)
	d.blocked = append(d.blocked, b)
}

// number returns how many there are of something, as one would.
func number(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// counterfactual is what would have prevented a decision: every entry of the journal tells it.
func counterfactual(rule string, verdict store.Verdict) store.Counterfactual {
	if c, ok := without[rule]; ok {
		return c
	}
	switch verdict {
	case store.Lost:
		return store.UnlessReported
	case store.Unhealthy:
		return store.UnlessChecksPassed
	case store.Dead:
		return store.UnlessListedRunning
	case store.Stuck:
		return store.UnlessReady
	default:
		return ""
	}
}

// without are the rules whose decisions rest on more than a verdict.
var without = map[string]store.Counterfactual{
	"HEAL-6":  store.UnlessDown,
	"HEAL-8":  store.UnlessRoom,
	"HEAL-9":  store.UnlessSize,
	"HEAL-13": store.UnlessProvider,
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
	"FLAP-3":  store.UnlessSteady,
	"FLAP-5":  store.UnlessTemplateWorks,
	"EXP-1":   store.UnlessYounger,
	"SPOT-2":  store.UnlessNoticed,
	"SPOT-3":  store.UnlessYounger,
	"DRAIN-1": store.UnlessDrained,
	"DRAIN-3": store.UnlessEvacuated,
	"SAFE-2":  store.UnlessManyLost,
	"SAFE-15": store.UnlessDamaged,
	"SAFE-12": store.UnlessUnrecorded,
}
