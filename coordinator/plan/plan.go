package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Plan is what to do now, in this order, and when to look again if nothing happens meanwhile.
type Plan struct {
	Actions []Action
	Calls   []Call
	// MemberCalls are for load balancers; Watched are those for which something is waited for.
	MemberCalls []MemberCall
	Watched     map[string]bool
	Judgments   Judgments
	Held        map[string][]store.Blocked // by group: what was decided and may not be done, and why
	Next        time.Time                  // zero: only when something changes
	Due         map[string]time.Time       // the same for each group; "" is the shard
	Tallies     map[string]Tally           // the losses of each group: see Snapshot.Elsewhere
}

// Action is one transaction, or part of one: see Batch.
type Action struct {
	Group    string
	Instance string
	Slot     *int
	Rule     string
	What     string // a sentence for people, without the name of the instance
	Why      string
	Cause    store.Cause // why, in fields
	Evidence []string
	// Counterfactual is what would have prevented it.
	Counterfactual store.Counterfactual
	// Replacement is the instance that it requests in place of Instance.
	Replacement string
	Kind        store.EntryKind
	From, To    store.Phase
	Verdict     store.Verdict

	Conditions []store.Condition
	Writes     []store.Write
	Gone       []GoneNote // of the records that Writes deletes
	// Token is the join token that is granted with it; nil: none. The transaction writes it on a
	// lease.
	Token *TokenGrant
	// Turn is set if it uses a budget of its group: see Turns.
	Turn bool
	// Limited is set if it makes an instance, and there are limits of the shard (CAP-1).
	Limited bool
	// NoJournal actions leave no journal entry: they change nothing for a machine.
	NoJournal bool
	// Notes are further journal entries in the same transaction, so that each is written once.
	Notes []Note
}

// TokenGrant is the right of one machine to join as an instance.
type TokenGrant struct {
	Key      string // of the token, by its hash
	Instance string
	Valid    time.Duration
}

// Note is a journal entry about a group.
type Note struct {
	Rule, What, Why string
	Cause           store.Cause // Why in fields, if it has any
	Counterfactual  store.Counterfactual
}

// JournalEntries returns the actions to write to the journal: a itself, unless it has NoJournal,
// and its notes.
func (a *Action) JournalEntries() []Action {
	var told []Action
	if !a.NoJournal {
		told = append(told, *a)
	}
	for _, n := range a.Notes {
		told = append(told, Action{
			Group: a.Group, Rule: n.Rule, What: n.What, Why: n.Why, Cause: n.Cause, Counterfactual: n.Counterfactual,
		})
	}
	return told
}

// CallKind is what is asked of a provider.
type CallKind string

// The kinds of call.
const (
	CallCreate CallKind = "create" // of an instance that is pending or creating
	CallRemove CallKind = "remove" // stop, then delete, of an instance that is deleting
	// CallRestart is the restart of the machine of an instance that is stopping.
	CallRestart CallKind = "restart"
	// CallRemoveCopy removes a second machine that one of our calls made (PROV-4).
	CallRemoveCopy CallKind = "remove copy"
)

// Call is work for a provider. It follows from the phase of a record, so the next leader finds
// it again.
type Call struct {
	Kind     CallKind
	Instance string
	Group    string
	Provider string         // that is asked
	Rank     int            // the lower the more urgent
	Record   store.Revision // of the instance as planned: the call is void if it has changed
	Revision store.Revision // of the cache
	// Conditions must hold when the call leaves the queue: a pause or a hold wins against a call
	// that has not begun.
	Conditions []store.Condition
	Copy       Copy // that is to be removed
}

// Compute decides what to do. It never changes the snapshot.
func Compute(s Snapshot, now time.Time) Plan {
	p := Plan{
		Due:     make(map[string]time.Time, len(s.Groups)+1),
		Watched: map[string]bool{}, Held: map[string][]store.Blocked{}, Tallies: make(map[string]Tally, len(s.Groups)),
	}
	shard := s.Elsewhere
	drafts := make([]*draft, len(s.Groups))
	p.Judgments.groups = drafts
	for i := range s.Groups {
		d := newDraft(&s, &s.Groups[i], now)
		d.judgeAll()
		drafts[i], shard = d, shard.Plus(d.tally)
		p.Tallies[d.g.Name] = d.tally
	}
	limits := newRoom(s.Limits)
	for _, d := range drafts {
		d.room = limits
	}
	hold, damaged := holdForDamage(&s, now)
	for _, d := range drafts {
		if !damaged {
			d.decide(shard)
		}
		p.Actions = append(p.Actions, d.actions...)
		p.Calls = append(p.Calls, d.calls...)
		p.MemberCalls = append(p.MemberCalls, d.memberCalls...)
		for name := range d.watched {
			p.Watched[name] = true
		}
		p.Next = sooner(p.Next, d.next)
		p.Due[d.g.Name] = d.next
		if len(d.held) > 0 {
			p.Held[d.g.Name] = d.held
		}
	}
	if damaged { // before anything else is decided: whatever follows is planned on the shard as it is then
		p.Actions, p.Due[""] = []Action{hold}, p.Next
		return p
	}
	actions, next := planShard(&s, now)
	p.Actions = append(p.Actions, actions...)
	p.MemberCalls = append(p.MemberCalls, removeStrays(&s)...)
	p.Next = sooner(p.Next, next)
	p.Due[""] = next
	noteDeletions(&s, p.Actions, now)
	return p
}

// judgeAll judges every instance, and counts what budgets and storms are judged by.
func (d *draft) judgeAll() {
	for _, m := range d.members {
		m.judgment = judge(m.Instance, d.s, d.now)
		if m.doom = d.doomOf(m); m.doom.rule != "" && m.judgment.Verdict == store.Live {
			m.judgment.Verdict, m.judgment.Rule, m.judgment.Cause = store.Doomed, m.doom.rule, m.doom.cause
		}
		d.judgeTraffic(m)
		m.age = d.ageOf(m)
		d.wake(m.judgment.Until)
		d.add(m, 1)
	}
	d.countLosses()
	d.countRollout()
}

// decide takes the deciders in the order of REC-5. The dead come first, since they wait for no
// budget but use it.
func (d *draft) decide(shard Tally) {
	if d.g.Unreadable != "" {
		return // what cannot be read is not guessed at, least of all written over
	}
	if d.writeSlotsBack() {
		return // all else rests on them
	}
	d.followStorm(shard)
	d.followBreaker()
	d.track()
	d.chooseTemplate()
	d.progress()
	d.dropAlive()
	d.orders()
	d.finishRemovals()
	switch {
	case d.spec == nil:
		d.leftOver()
	case !d.mayAct():
		d.blockAll()
	default:
		d.drains()
		d.bringToSize()
		d.removeOnDemand()
		d.withdrawUnused()
	}
	d.traffic()
	d.spareDamaged()
	d.followScale()
	d.status()
	d.rollBack()
	d.takeTurns()
	d.callProvider()
}

// bringToSize empties the group, or brings it to its spec.
func (d *draft) bringToSize() {
	switch {
	case d.spec.Deleting:
		d.empty("REC-7", reason.GroupDeleted)
	case d.spec.Stopped:
		d.empty("REC-11", reason.GroupStopped)
	case d.spec.Unstarted:
		d.block("REC-11", task{work: store.WorkCreateAll}, store.BlockedNotStarted, store.BlockedFacts{})
	default:
		d.reconcile()
	}
}

func (d *draft) reconcile() {
	d.cleanSlots()
	d.giveUpFlapping()
	d.buryAll()
	d.saveNoticed()
	d.removeFinished()
	d.restFinished()
	d.withdrawFailed()
	d.scaleDown()
	d.expire(true)
	d.updateFailing()
	d.heal()
	d.expire(false)
	d.scaleUp()
	d.rollOut()
	d.convert()
	d.rebalance()
}

// mayAct reports whether machines may be made and removed at all.
func (d *draft) mayAct() bool {
	return d.s.Shard.Record.Hold == nil && !d.spec.Paused && d.s.Stale == "" && d.frozen == ""
}

// blockAll records why machines may not be made and removed at all.
func (d *draft) blockAll() {
	all := task{work: store.WorkAll}
	switch h := d.s.Shard.Record.Hold; {
	case h != nil:
		d.block("SAFE-12", all, store.BlockedByHold,
			store.BlockedFacts{Since: h.At.UTC().Truncate(time.Second), Name: h.By, Text: h.Why})
	case d.spec.Paused:
		d.block("REC-13", all, store.BlockedByPause, store.BlockedFacts{Text: d.halted()})
	case d.s.Stale != "":
		d.block("SAFE-3", all, store.BlockedByStaleState, store.BlockedFacts{Text: d.s.Stale})
	case d.frozen != "":
		d.block("SAFE-15", all, d.frozen, d.frozenBy)
	}
}

func sooner(a, b time.Time) time.Time {
	switch {
	case a.IsZero():
		return b
	case b.IsZero() || a.Before(b):
		return a
	default:
		return b
	}
}

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
	return &store.InvalidSpec{Why: fmt.Sprintf("the group's key is missing, and what was in force is not known any more; "+
		"%s left as they are and not healed: %s; apply the group again to have them looked after: "+
		"leasehold group apply -f FILE", isAre(len(left)),
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

// planShard decides what concerns no group alone: orders for the shard, orders that concern nothing
// we know, and extra machines.
func planShard(s *Snapshot, now time.Time) (actions []Action, next time.Time) {
	for _, r := range s.Orders {
		a := planOrder(s, r, now)
		actions = append(actions, a)
		if len(a.Writes) > 1 {
			break // it writes the shard's record: the others are decided on the next cache
		}
	}
	for _, r := range s.Lost {
		why := "there is no such group or instance"
		if r.Record.Kind == store.RequestAdopt {
			why = "no machine of this name is known to be extra, or its tag names no group"
		}
		actions = append(actions, refuse(r, why))
	}
	if s.Shard.Record.Hold != nil || s.Stale != "" || !s.Shard.Present() {
		return actions, time.Time{}
	}
	if hold, ok := holdForExtras(s, now); ok {
		return append(actions, hold), time.Time{}
	}
	extras, next := planExtras(s, now)
	return append(actions, extras...), next
}

// planOrder carries an order for the whole shard out, in the shard's record: so it stands for every
// leader (DRAIN-3).
func planOrder(s *Snapshot, r store.Versioned[store.Request], now time.Time) Action {
	zone, rec := r.Record.Zone, s.Shard.Record
	_, evacuated := rec.Evacuated[zone]
	rec.Evacuated = maps.Clone(rec.Evacuated)
	a := Action{
		Rule: "DRAIN-3", Why: reason.Short(orderedBy(r.Record.By)), Cause: orderedBy(r.Record.By),
		Evidence:       []string{"request " + r.Record.ID},
		Counterfactual: counterfactual("REC-16", ""),
	}
	switch {
	case !s.Shard.Present():
		return refuse(r, "the shard's record is missing")
	case zone == "":
		return refuse(r, "it names no zone")
	case r.Record.Kind == store.RequestEvacuate && !evacuated:
		if rec.Evacuated == nil {
			rec.Evacuated = map[string]store.Evacuation{}
		}
		rec.Evacuated[zone] = store.Evacuation{By: r.Record.By, At: now.UTC()}
		a.What = "zone " + zone + " is evacuated"
	case r.Record.Kind == store.RequestReturn && evacuated:
		delete(rec.Evacuated, zone)
		a.What = "zone " + zone + " may be used again"
	case r.Record.Kind == store.RequestEvacuate:
		return refuse(r, "zone "+zone+" is being evacuated already, by "+rec.Evacuated[zone].By)
	case r.Record.Kind == store.RequestReturn:
		return refuse(r, "zone "+zone+" is not evacuated")
	default:
		return refuse(r, fmt.Sprintf("this version knows no order %q for a shard", r.Record.Kind))
	}
	a.Conditions = []store.Condition{s.Shard.Unchanged(), r.Unchanged()}
	a.Writes = []store.Write{store.Put(s.Shard.Key, store.Encode(rec)), store.Delete(r.Key)}
	return a
}

// settle keeps one healthy member of a slot and lets the others go: HEAL-2, HEAL-6.
func (d *draft) settle(sl *slot, good, bad []*member) {
	keep := d.keeper(sl, good)
	if keep == nil {
		d.await(sl, good, bad)
		return
	}
	for _, m := range bad {
		if d.spared(m) || d.sweptAway(m) {
			continue
		}
		rule, why := m.grounds("HEAL-2")
		d.releaseFailed(sl, m, keep, rule, succeeded(why, keep))
	}
	d.forcedOut(sl, good)
	if keep.touched {
		return
	}
	for _, m := range good {
		switch {
		case m == keep || m.judgment.Verdict == store.Suspect || m.moving():
			continue // it is decided when it is known what it is, or that it has arrived
		case d.blamed() && d.rolls(m, keep) && !m.Record.Rebalances:
			d.release(m, keep, "FLAP-5", "withdrawn", store.Cause{Kind: store.CauseRollStopped, Other: keep.ID()})
			continue
		case older(keep, m) && !d.proven(m) && keep.Record.Protected != store.ProtectHeal &&
			(d.flapsNow(sl.Record) || d.goesBefore(keep, m)):
			rule, why := d.leavingFor(keep, m)
			d.block(rule, keep.task(store.WorkRemove), store.BlockedByReplacement,
				store.BlockedFacts{Other: m.ID(), Phase: m.phase, Cause: why})
			continue
		}
		switch {
		case older(keep, m):
			d.release(m, keep, "HEAL-6", "withdrawn",
				store.Cause{Kind: store.CauseUnneeded, Other: keep.ID()})
		case d.goesBefore(m, keep):
			rule, why := d.leavingFor(m, keep)
			d.release(m, keep, rule, "deleting", succeeded(why, keep))
		case !m.healthy():
			d.release(m, keep, "HEAL-2", "deleting",
				succeeded(of(store.CauseUnproved), keep))
		default:
			d.release(m, keep, "DET-15", "deleting", succeeded(of(store.CauseLostTooOften), keep))
		}
	}
}

// sweptAway reports whether a member is lost in a storm, and so not replaced.
func (d *draft) sweptAway(m *member) bool { return m.missed() && !d.probing() && d.heldByStorm(m) }

// probing reports whether a storm has lasted for probe_after. From then on a lost member whose
// replacement is healthy goes: it must not take the room that the next probe needs (SAFE-2).
func (d *draft) probing() bool {
	s := d.storm
	return s != nil && s.Ended == "" && s.Next != nil && !d.now.Before(d.ends(d.g.Due, store.TimerProbe, s.Next))
}

// await lets a slot without a proven healthy instance come to that.
func (d *draft) await(sl *slot, good, bad []*member) {
	for _, m := range bad {
		switch {
		case d.spared(m):
		case m.goesNow():
			d.release(m, good[0], "REC-16", "deleting", orderedBy(m.Record.Condemned.By))
		case d.sweptAway(m):
		case older(good[0], m) && m.failing() && !m.Record.Counted && !sl.touched && (d.up(good[0]) || !d.booted(m)):
			// A replacement that failed while the original does its work, if only just: it must not
			// take the room of the next.
			rule, why := m.grounds("HEAL-13")
			d.releaseFailed(sl, m, good[0], rule, followed(why, func(a *store.CauseAlso) { a.Keeper = good[0].ID() }))
		default:
			d.block("HEAL-2", m.task(store.WorkRemove), store.BlockedByReplacement,
				store.BlockedFacts{Other: good[0].ID(), Phase: good[0].phase})
		}
	}
	for _, m := range good {
		if first := sl.members[0]; m != first && d.inVain(m) {
			d.release(m, first, "HEAL-6", "withdrawn",
				store.Cause{Kind: store.CauseUnwanted, Text: m.Report.Record.Why})
		}
	}
	d.forcedOut(sl, good)
}

// moving reports whether its agent is on its way to another replica. It is not relied on before it
// has arrived, nor lets it go.
func (m *member) moving() bool { return m.Alive.Record.State == store.StreamMoved }

// inVain reports whether a replacement fails on a template that is not wanted any more: the next is
// made from another, and need not wait for as long as DET-10 gives this one. One that has not been
// checked yet may be there first.
func (d *draft) inVain(m *member) bool {
	if m.phase != store.Checking || !d.obsolete(m) || m.Record.Protected != "" || d.blamed() ||
		!reportIsCurrent(m.Instance) {
		return false
	}
	return slices.ContainsFunc(m.Report.Record.Checks,
		func(c store.CheckReport) bool { return !c.Healthy && !c.Pending && !c.Optional })
}

// leaving reports whether a member is to be replaced though it works: it is outdated, has grown too
// old or moves to another zone, and is not protected.
func (d *draft) leaving(m *member) bool { return d.urgency(m) > 0 }

// urgency ranks the reasons for replacing a working member. The replacement of one that is too old
// may be just as outdated (ROLL-9), and still keeps the slot.
func (d *draft) urgency(m *member) int {
	switch {
	case m.Record.Protected != "":
		return 0
	case m.age.rule != "" || m.rebalancedBy() != nil:
		return 2
	case d.outdated(m):
		return 1
	default:
		return 0
	}
}

// goesBefore reports whether of two members in a slot this one goes, though both work.
func (d *draft) goesBefore(m, other *member) bool { return d.urgency(m) > d.urgency(other) }

// leavingFor is the rule and the reason for which a member leaves a slot that another keeps.
func (d *draft) leavingFor(m, keep *member) (rule string, why store.Cause) {
	by := m.rebalancedBy()
	switch {
	case d.outdated(m) && !d.outdated(keep):
		return "ROLL-1", store.Cause{Kind: store.CauseOutdated}
	case m.age.rule != "":
		return m.age.rule, m.age.cause
	case by != nil && by == keep && by.Record.Converts:
		return "SPOT-4", of(store.CauseShares)
	case by != nil && by == keep:
		return "REC-17", of(store.CauseEven)
	case d.outdated(m):
		return "ROLL-1", store.Cause{Kind: store.CauseOutdated}
	default:
		return "DET-15", of(store.CauseLostTooOften)
	}
}

// keeper is the member that keeps the slot, if one is healthy: the oldest, but the youngest once
// the slot's instances were lost too often (DET-15), and none that is outdated or expired while
// another is not (HEAL-6).
func (d *draft) keeper(sl *slot, good []*member) *member {
	var keep *member
	for _, m := range good {
		switch {
		case !d.proven(m) || m.moving():
		case keep == nil, d.goesBefore(keep, m):
			keep = m
		case keep.Record.Protected == store.ProtectHeal:
		case d.flapsNow(sl.Record) && d.urgency(keep) == d.urgency(m):
			keep = m
		}
	}
	return keep
}

// release retires a member whose place is kept by another, who is part of the evidence.
func (d *draft) release(m, keep *member, rule, what string, why store.Cause) *Action {
	if m.touched || !d.mayDelete(m.task(store.WorkRemove), m) {
		return nil
	}
	evidence := append(append([]string(nil), m.evidence()...), keep.ID()+": "+keep.judgment.Why())
	also := append(m.proof(d.s.Keys), keep.Unchanged(), store.At(d.s.Keys.Alive(keep.ID()), keep.Alive.Modified))
	if keep.Report.Present() {
		also = append(also, keep.Report.Unchanged())
	}
	return d.retire(m, rule, what, why, evidence, also...)
}

// releaseFailed does so and counts the failure, if it was not counted when its replacement was
// requested.
func (d *draft) releaseFailed(sl *slot, m, keep *member, rule string, why store.Cause) {
	if m.touched || sl.touched && !m.Record.Counted {
		return
	}
	if m.Record.Counted || m.unwantedOrdered() {
		d.release(m, keep, rule, "deleting", why)
		return
	}
	if !d.mayDelete(m.task(store.WorkRemove), m) {
		return
	}
	d.fail(sl, m)
	if a := d.release(m, keep, rule, "deleting", why); a != nil {
		d.writeSlot(a, sl)
	}
}

// succeeded adds to a cause that another member is healthy in the member's place.
func succeeded(why store.Cause, keep *member) store.Cause {
	why.Heir = keep.ID()
	return why
}

// followed adds to a cause which member keeps the slot. What was ordered needs no other reason.
func followed(why store.Cause, add func(*store.CauseAlso)) store.Cause {
	if why.Kind == store.CauseOrder {
		return why
	}
	return with(why, add)
}
