package plan

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// Plan is what to do now, in this order, and when to look again if nothing happens meanwhile.
type Plan struct {
	Actions   []Action
	Calls     []Call
	Judgments map[string]Judgment        // of every instance, by ID
	Held      map[string][]store.Blocked // by group: what was decided and may not be done, and why
	Next      time.Time                  // zero: only when something changes
	Due       map[string]time.Time       // the same for each group; "" is the shard
	Tallies   map[string]Tally           // the losses of each group: see Snapshot.Elsewhere
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
	// Turn is set if it uses a budget of its group: see Turns.
	Turn bool
	// NoJournal actions leave no journal entry: they change nothing for a machine.
	NoJournal bool
	// Notes are further journal entries in the same transaction, so that each is written once.
	Notes []Note
}

// Note is a journal entry about a group.
type Note struct {
	Rule, What, Why string
	Counterfactual  store.Counterfactual
}

// JournalEntries returns the actions to write to the journal: a itself, unless it has NoJournal, and
// its notes.
func (a *Action) JournalEntries() []Action {
	var told []Action
	if !a.NoJournal {
		told = append(told, *a)
	}
	for _, n := range a.Notes {
		told = append(told, Action{Group: a.Group, Rule: n.Rule, What: n.What, Why: n.Why, Counterfactual: n.Counterfactual})
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
}

// Compute decides what to do. It never changes the snapshot.
func Compute(s Snapshot, now time.Time) Plan {
	p := Plan{
		Judgments: make(map[string]Judgment, instancesIn(&s)), Due: make(map[string]time.Time, len(s.Groups)+1),
		Held: map[string][]store.Blocked{}, Tallies: make(map[string]Tally, len(s.Groups)),
	}
	shard := s.Elsewhere
	drafts := make([]*draft, len(s.Groups))
	for i := range s.Groups {
		d := newDraft(&s, &s.Groups[i], now)
		d.judgeAll()
		drafts[i], shard = d, shard.Plus(d.tally)
		p.Tallies[d.g.Name] = d.tally
	}
	hold, damaged := holdForDamage(&s, now)
	for _, d := range drafts {
		if !damaged {
			d.decide(shard)
		}
		p.Actions = append(p.Actions, d.actions...)
		p.Calls = append(p.Calls, d.calls...)
		for _, m := range d.members {
			p.Judgments[m.ID()] = m.judgment
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
	p.Next = sooner(p.Next, next)
	p.Due[""] = next
	noteDeletions(&s, p.Actions, now)
	return p
}

func instancesIn(s *Snapshot) int {
	n := 0
	for i := range s.Groups {
		n += len(s.Groups[i].Instances)
	}
	return n
}

// judgeAll judges every instance, and counts what budgets and storms are judged by.
func (d *draft) judgeAll() {
	for _, m := range d.members {
		m.judgment = judge(m.Instance, d.s, d.now)
		if m.doom = d.doomOf(m); m.doom.rule != "" && m.judgment.Verdict == store.Live {
			m.judgment.Verdict, m.judgment.Rule, m.judgment.Why = store.Doomed, m.doom.rule, m.doom.why
		}
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
	d.weather(shard)
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
	}
	d.spareDamaged()
	d.status()
	d.takeTurns()
	d.callProvider()
}

// bringToSize empties the group, or brings it to its spec.
func (d *draft) bringToSize() {
	switch {
	case d.spec.Deleting:
		d.empty("REC-7", "the group is being deleted")
	case d.spec.Stopped:
		d.empty("REC-11", "the group is stopped")
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
