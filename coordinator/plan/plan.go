package plan

import (
	"fmt"
	"maps"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Plan lists what to do now, in this order, and when to plan again if nothing happens before.
type Plan struct {
	Actions []Action
	Calls   []Call
	// MemberCalls are calls to load balancers; Watched names the balancers whose next List is
	// awaited.
	MemberCalls []MemberCall
	Watched     map[string]bool
	Judgments   Judgments
	Held        map[string][]store.Blocked // by group: decided work that has to wait, and why
	Wake        time.Time                  // zero: only when something changes
	Due         map[string]time.Time       // the same for each group; "" is the shard
	Tallies     map[string]Tally           // losses of each group: see Snapshot.Elsewhere
}

// Action is one transaction, or part of one: see Batch.
type Action struct {
	Group    string
	Instance string
	Slot     *int
	Rule     string
	Effect   store.Effect // what it does
	Why      string
	Cause    store.Cause  // why, in fields
	Facts    []store.Fact // the evidence
	// Counterfactual is what would have prevented the action.
	Counterfactual store.Counterfactual
	// Replacement is the instance that the action requests in place of Instance.
	Replacement string
	Kind        store.EntryKind
	From, To    store.Phase
	Verdict     store.Verdict

	Conditions []store.Condition
	Writes     []store.Write
	Gone       []GoneNote // of the records that Writes deletes
	// Status is what its first write says if that has no value: see Planner.Unencoded.
	Status *store.Status
	// Token is the join token that the action grants; nil: none. The transaction writes it with a
	// lease.
	Token *TokenGrant
	// Turn is set if the action uses a budget of its group, or begins a storm: see Turns.
	Turn bool
	// Limited is set if the action creates an instance, and the shard has limits (CAP-1).
	Limited bool
	// BudgetGroup is set if the action uses a budget that its group shares with others (REC-18).
	BudgetGroup string
	// NoJournal actions leave no journal entry: they change nothing for a machine.
	NoJournal bool
	// Notes are further journal entries in the same transaction, so that each is written exactly
	// once.
	Notes []Note
}

// TokenGrant allows one machine to join as an instance.
type TokenGrant struct {
	Key      string // key of the token, derived from its hash
	Instance string
	Valid    time.Duration
}

// Note is a journal entry about a group.
type Note struct {
	Rule           string
	Effect         store.Effect
	Cause          store.Cause
	Counterfactual store.Counterfactual
}

// What says what it does, without the name of its instance.
func (a *Action) What() string { return reason.Effect(a.Effect) }

// JournalEntries returns the actions to write to the journal: a itself, unless it has NoJournal,
// and its notes.
func (a *Action) JournalEntries() []Action {
	var entries []Action
	if !a.NoJournal {
		entries = append(entries, *a)
	}
	for _, n := range a.Notes {
		entries = append(entries, Action{
			Group: a.Group, Rule: n.Rule, Effect: n.Effect, Why: reason.Short(n.Cause),
			Cause: reason.Recorded(n.Cause), Counterfactual: n.Counterfactual,
		})
	}
	return entries
}

// CallKind is a kind of provider call.
type CallKind string

// The kinds of call.
const (
	CallCreate CallKind = "create" // create the machine of an instance that is pending or creating
	CallRemove CallKind = "remove" // stop, then delete, the machine of an instance that is deleting
	// CallRestart restarts the machine of an instance that is stopping.
	CallRestart CallKind = "restart"
	// CallRemoveCopy removes a second machine that one of our calls made (PROV-4).
	CallRemoveCopy CallKind = "remove copy"
	// CallHalt ends the machine of an instance for a drill (DAY-6).
	CallHalt CallKind = "halt"
)

// Call is a call to a provider. It follows from the phase of a record, so the next leader finds it
// again.
type Call struct {
	Kind     CallKind
	Instance string
	Group    string
	Provider string         // provider to call
	Rank     int            // lower ranks are more urgent
	Record   store.Revision // of the instance as planned: the call is void if it has changed
	Revision store.Revision // of the cache
	// Conditions must hold when the call leaves the queue: a pause or a hold stops a call that has
	// not begun.
	Conditions []store.Condition
	Copy       Copy // the copy to remove
}

// Compute decides what to do. It never changes the snapshot.
func Compute(s Snapshot, now time.Time) Plan { return new(Planner).compute(s, now) }

func (k *Planner) compute(s Snapshot, now time.Time) Plan {
	p := Plan{
		Due:     make(map[string]time.Time, len(s.Groups)+1),
		Watched: map[string]bool{}, Held: map[string][]store.Blocked{}, Tallies: make(map[string]Tally, len(s.Groups)),
	}
	shard := s.Elsewhere
	drafts := make([]*draft, len(s.Groups))
	p.Judgments.groups = drafts
	for i := range s.Groups {
		d := k.again(&s, &s.Groups[i], now)
		if d == nil {
			d = newDraft(&s, &s.Groups[i], now)
			d.unencoded = k.Unencoded
			d.judgeAll()
		}
		drafts[i], shard = d, shard.Plus(d.storms.tally)
		p.Tallies[d.g.Name] = d.storms.tally
	}
	limits := newRoom(s.Limits)
	for _, d := range drafts {
		d.budget.room = limits
	}
	shareBudgets(&s, drafts)
	hold, damaged := holdForDamage(&s, now)
	for _, d := range drafts {
		if !damaged && !d.again {
			d.decide(shard)
		}
		p.Actions = append(p.Actions, d.actions...)
		p.Calls = append(p.Calls, d.provider.calls...)
		p.MemberCalls = append(p.MemberCalls, d.traffic.memberCalls...)
		for name := range d.traffic.watched {
			p.Watched[name] = true
		}
		due := Sooner(d.next, d.scaler.next)
		p.Wake = Sooner(p.Wake, due)
		p.Due[d.g.Name] = due
		if len(d.status.held) > 0 {
			p.Held[d.g.Name] = d.status.held
		}
	}
	if damaged { // before anything else is decided: the rest is planned once the shard is on hold
		p.Actions, p.Due[""] = []Action{hold}, p.Wake
		return p
	}
	actions, next := planShard(&s, now)
	p.Actions = append(p.Actions, actions...)
	p.MemberCalls = append(p.MemberCalls, removeStrays(&s)...)
	p.Wake = Sooner(p.Wake, next)
	p.Due[""] = next
	noteDeletions(&s, p.Actions, now)
	return p
}

// judgeAll judges every instance, and counts what budgets and storms are based on.
func (d *draft) judgeAll() {
	for _, m := range d.members {
		m.judgment = judge(m.Instance, d.s, d.now)
		if m.doom = d.doomOf(m); m.doom.rule != "" && m.judgment.Verdict == store.Live {
			m.judgment.Verdict, m.judgment.Rule, m.judgment.Cause = store.Doomed, m.doom.rule, m.doom.cause
		}
		d.traffic.judge(m)
		m.age = d.expiry.ageOf(m)
		d.wake(m.judgment.Until)
		d.add(m, 1)
	}
	d.storms.countLosses()
	d.roll.countRollout()
}

// decide runs the deciders in the order of REC-5. Dead members come first, since they wait for no
// budget but use it.
func (d *draft) decide(shard Tally) {
	if d.g.Unreadable != "" {
		return // an unreadable group is neither guessed at nor overwritten
	}
	if d.damage.writeSlotsBack() {
		return // all other decisions depend on the slots
	}
	d.storms.follow(shard)
	d.healing.followBreaker()
	d.roll.track()
	d.healing.blameTemplate()
	d.templates.choose()
	d.progress.follow()
	d.damage.dropAlive()
	d.agents.follow()
	d.orders.carryOut()
	d.drills.follow()
	d.agents.blockStopped()
	d.removals.finish()
	switch {
	case d.spec == nil:
		d.removals.leftOver()
	case !d.mayAct():
		d.blockAll()
	default:
		d.drains.follow()
		d.bringToSize()
		d.removals.removeOnDemand()
		d.removals.withdrawUnused()
	}
	d.traffic.follow()
	d.damage.spareDamaged()
	d.scaler.follow()
	d.status.update()
	d.roll.rollBack()
	d.budget.takeTurns()
	d.provider.follow()
}

// bringToSize empties the group, or brings it to its spec.
func (d *draft) bringToSize() {
	switch {
	case d.spec.Deleting:
		d.removals.empty("REC-7", reason.GroupDeleted)
	case d.spec.Stopped:
		d.removals.empty("REC-11", reason.GroupStopped)
	case d.spec.Unstarted:
		d.block("REC-11", task{work: store.WorkCreateAll}, store.BlockedNotStarted, store.BlockedFacts{})
	default:
		d.reconcile()
	}
}

func (d *draft) reconcile() {
	d.sizing.cleanSlots()
	d.flapping.giveUpLong()
	d.healing.removeAllDead()
	d.healing.replaceNoticed()
	d.removals.removeFinished()
	d.removals.releaseBesideFinished()
	d.healing.withdrawFailed()
	d.sizing.scaleDown()
	d.expiry.expire(true)
	d.roll.updateFailing()
	d.healing.heal()
	d.expiry.expire(false)
	d.sizing.scaleUp()
	d.roll.rollOut()
	d.shares.convert()
	d.zoning.rebalance()
	d.agents.offerNext()
}

// mayAct reports whether machines may be created and removed at all.
func (d *draft) mayAct() bool {
	return d.s.Shard.Record.Hold == nil && !d.spec.Paused && !d.s.stale() && d.damage.frozen == ""
}

// blockAll records why machines may not be created or removed at all.
func (d *draft) blockAll() {
	all := task{work: store.WorkAll}
	switch h := d.s.Shard.Record.Hold; {
	case h != nil:
		d.block("SAFE-12", all, store.BlockedByHold,
			store.BlockedFacts{Since: h.At.UTC().Truncate(time.Second), Name: h.By, Text: h.Why})
	case d.spec.Paused:
		d.block("REC-13", all, store.BlockedByPause, d.halted())
	case d.s.stale():
		d.block("SAFE-3", all, store.BlockedByStaleState, store.BlockedFacts{Cause: d.s.Stale})
	case d.damage.frozen != "":
		d.block("SAFE-15", all, d.damage.frozen, d.damage.frozenBy)
	}
}

// Sooner returns the earlier of two times. Zero means never.
func Sooner(a, b time.Time) time.Time {
	switch {
	case a.IsZero():
		return b
	case b.IsZero() || a.Before(b):
		return a
	default:
		return b
	}
}

// planShard decides what belongs to no single group: orders for the shard, orders without a known
// target, and extra machines.
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
	if s.Shard.Record.Hold != nil || s.stale() || !s.Shard.Present() {
		return actions, time.Time{}
	}
	if hold, ok := holdForExtras(s, now); ok {
		return append(actions, hold), time.Time{}
	}
	extras, next := planExtras(s, now)
	return append(actions, extras...), next
}

// planOrder carries out an order for the whole shard in the shard's record, so that it holds for
// every leader (DRAIN-3).
func planOrder(s *Snapshot, r store.Versioned[store.Request], now time.Time) Action {
	zone, rec := r.Record.Zone, s.Shard.Record
	_, evacuated := rec.Evacuated[zone]
	rec.Evacuated = maps.Clone(rec.Evacuated)
	a := Action{
		Rule: "DRAIN-3", Why: reason.Short(orderedBy(r.Record.By)), Cause: orderedBy(r.Record.By),
		Facts:          requested(r),
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
		a.Effect = store.Effect{Kind: store.EffectZoneEvacuated, Zone: zone}
	case r.Record.Kind == store.RequestReturn && evacuated:
		delete(rec.Evacuated, zone)
		a.Effect = store.Effect{Kind: store.EffectZoneReturned, Zone: zone}
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
