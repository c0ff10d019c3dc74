package plan

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// draft is a group as it will be once the actions decided so far have happened. It collects the
// decisions of the deciders below. Each decider has the draft, and through it all other deciders.
type draft struct {
	fleet

	actions   []Action
	blocked   []store.Blocked
	notes     []Note // journal entries for what is new in the status
	again     bool   // the deciders below decided in the last plan: see Planner
	unencoded bool   // see Planner
	made      int    // number of IDs that this plan has given out for the group

	// In the order in which decide uses them.
	damage    damage
	storms    storms
	roll      roll
	stages    stages
	analysis  analysis
	templates templates
	progress  progress
	agents    agents
	orders    orders
	drills    drills
	removals  removals
	drains    drains
	flapping  flapping
	healing   healing
	settling  settling
	sizing    sizing
	expiry    expiry
	shares    shares
	zoning    zoning
	traffic   traffic
	scaler    scaler
	status    status
	provider  providerCalls

	// Used by several of them.
	budget  budget
	windows windows
}

// connect gives the draft to every decider.
func (d *draft) connect() {
	d.damage.draft, d.storms.draft, d.roll.draft, d.stages.draft, d.analysis.draft = d, d, d, d, d
	d.templates.draft, d.progress.draft, d.agents.draft, d.orders.draft, d.drills.draft = d, d, d, d, d
	d.removals.draft, d.drains.draft, d.flapping.draft, d.healing.draft, d.settling.draft = d, d, d, d, d
	d.sizing.draft, d.expiry.draft, d.shares.draft, d.zoning.draft, d.traffic.draft = d, d, d, d, d
	d.scaler.draft, d.status.draft, d.provider.draft, d.budget.draft, d.windows.draft = d, d, d, d, d
}

// member is an instance in the draft.
type member struct {
	*Instance
	phase    store.Phase // as drafted
	judgment Judgment
	doom     doom
	age      age
	slot     *slot  // nil if it is on demand
	touched  bool   // an action of this plan changes its record
	drilled  bool   // this plan orders the end of its machine
	quiet    bool   // it leaves its load balancers for a restart
	movesTo  string // the zone that this plan moves its creation to
	// fallsBack: this plan creates it on demand, for lack of spot capacity
	fallsBack bool
}

func (m *member) ID() string { return m.Record.ID }

// gone reports whether the member no longer counts: it is being deleted.
func (m *member) gone() bool { return m.phase == store.Deleting }

func (m *member) dead() bool { return m.judgment.Verdict == store.Dead }

// failing reports whether the member must be healed.
func (m *member) failing() bool { return m.judgment.Verdict.Failed() }

// unwanted reports whether the member must go once its place is taken.
func (m *member) unwanted() bool {
	return m.failing() || m.Record.Condemned != nil || m.doom.rule != ""
}

// working reports whether there is no evidence against the member.
func (m *member) working() bool {
	return m.judgment.Verdict == store.Live || m.judgment.Verdict == store.Doomed
}

// healthy reports whether a member works and has reported so since its present boot: a member that
// has just come back has not proved anything yet.
func (m *member) healthy() bool {
	return m.phase == store.Running && m.Record.Phase == store.Running && m.working() && reportIsCurrent(m.Instance) &&
		m.Report.Record.Healthy
}

// fills reports whether the member can fill its slot.
func (m *member) fills() bool {
	return m.Record.Managed && (m.phase.Fills() && !m.dead() || m.phase == store.Finished)
}

// slot is a slot in the draft.
type slot struct {
	store.Versioned[store.Slot]
	number  int
	members []*member  // oldest first
	only    [1]*member // where members is if there is one
	retry   time.Time  // not to be filled before this time, if it flaps
	giveUp  time.Time  // when it is given up, if it still flaps
	touched bool
	waited  bool           // its record says that it has to be filled again
	damaged *store.Damaged // the record of its instance is lost or unreadable
	filled  int            // members that fill it
	up      int            // members that have fully booted and are not down
	well    int            // members that are healthy
	zone    string         // zone of the member that will stay, if it is counted in the crowd
	counted bool
	spot    bool // that member is a spot machine
	flapped bool // on an earlier template, until a new one reset it
}

func newDraft(s *Snapshot, g *Group, now time.Time) *draft {
	d := &draft{}
	d.connect()
	d.s, d.g, d.now = s, g, now
	d.slots = newSlotIndex(max(len(g.Slots), len(g.Instances)))
	d.accept()
	d.settleSize()
	slots := make([]slot, len(g.Slots))
	d.order = make([]*slot, 0, max(len(g.Slots), len(g.Instances)))
	for i := range g.Slots {
		v := &g.Slots[i]
		sl := &slots[i]
		sl.Versioned, sl.number, sl.waited = *v, v.Record.Number, v.Record.Vacated != nil
		sl.retry = d.ends(g.SlotDue[sl.number], store.TimerRetry, v.Record.Retry)
		sl.giveUp = d.ends(g.SlotDue[sl.number], store.TimerGiveUp, v.Record.GiveUp)
		d.resetForNewTemplate(sl)
		d.slots.set(sl.number, sl)
		d.order = append(d.order, sl)
	}
	members := make([]member, len(g.Instances))
	d.members = make([]*member, 0, len(g.Instances)+4)
	for i := range g.Instances {
		m := &members[i]
		m.Instance, m.phase = &g.Instances[i], g.Instances[i].Record.Phase
		d.members = append(d.members, m)
		if m.Record.Managed {
			d.place(m)
		}
	}
	d.damage.follow()
	if !slices.IsSortedFunc(d.order, byNumber) {
		slices.SortFunc(d.order, byNumber)
	}
	return d
}

func byNumber(a, b *slot) int { return cmp.Compare(a.number, b.number) }

// resetForNewTemplate resets a slot for a new template (FLAP-7). The reset is written with the
// slot's next change; until then every leader derives the same.
func (v *view) resetForNewTemplate(sl *slot) {
	r := &sl.Record
	if v.spec == nil || r.Template == "" || r.Template == v.hash {
		return
	}
	sl.flapped = r.Flapping > 0 || r.Errored != ""
	r.Flapping, r.Retry, r.GiveUp, r.Template = 0, nil, nil, ""
	r.Errored, r.ErroredCause = "", store.Cause{}
	r.Failures = nil
	sl.retry, sl.giveUp = time.Time{}, time.Time{}
}

// older orders members by the creation of their records; drafted ones are the youngest.
func older(a, b *member) bool {
	if a.Created != b.Created {
		return b.Created == 0 || a.Created != 0 && a.Created < b.Created
	}
	return a.ID() < b.ID()
}

// newMember drafts a new instance in a slot and returns it with the write that records it.
func (d *draft) newMember(sl *slot, replaces string, why motive) (*member, store.Write) {
	rec := d.newRecord(sl, why)
	rec.Managed, rec.Replaces, rec.Converts = true, replaces, why.purpose == store.PurposeShares
	rec.Rebalances = why.purpose == store.PurposeZones || rec.Converts
	sl.Record.Vacated = nil
	m := d.join(rec)
	return m, store.Put(m.Key, store.Encode(rec))
}

// newRecord returns the record of a new instance of the group, made from the template that is due
// (ROLL-9). Without a slot the instance is on demand.
func (d *draft) newRecord(sl *slot, why motive) store.Instance {
	number, from := -1, d.templates.source(sl, why.purpose)
	if sl != nil {
		number = sl.number
	}
	if from.why != "" {
		why.cause = with(why.cause, func(a *store.CauseAlso) { a.Made = from.why })
	}
	var fallback bool
	from.spec.Spot, fallback = d.shares.buy(sl)
	rec := store.Instance{
		Schema: store.Schema, ID: d.newID(number), Group: d.g.Name, Slot: number, Phase: store.Pending,
		Fallback: fallback, Since: d.now.UTC(), Created: d.now.UTC(), Spec: from.spec, Zone: d.zoning.zoneFor(sl, &from.spec),
		Template: from.hash, Purpose: why.purpose,
		Relaunch: d.spec.Relaunch.Number, Last: d.decision(why.rule, effect(store.EffectRequested), why.cause),
	}
	rec.Config = rec.Spec.ConfigHash()
	return rec
}

// join adds a member that this plan creates.
func (d *draft) join(rec store.Instance) *member {
	m := &member{Instance: &Instance{}, phase: rec.Phase, touched: true}
	m.Record, m.Key = rec, d.s.Keys.Instance(rec.ID)
	m.PhaseStart, m.Born = d.now, d.now
	m.judgment = Judgment{Verdict: store.Unborn, Rule: rec.Last.Rule, Cause: reason.Known(rec.Last.Cause, rec.Last.Why)}
	d.members = append(d.members, m)
	if rec.Managed {
		d.place(m)
	}
	d.add(m, 1)
	if d.budget.room != nil {
		waited := m.slot != nil && m.slot.waited
		if d.budget.room.take(d.budget.kind(&rec.Spec), waited); waited {
			m.slot.waited = false
		}
		if d.budget.drafted == nil {
			d.budget.drafted = map[string]bool{}
		}
		d.budget.drafted[m.Key] = true
	}
	return m
}

const idLetters = "bcdfghjklmnpqrstvwxz2456789" // no vowels, so that no words appear

// newID returns an ID that was never used: it depends on the revision of the cache, which only
// grows, and on the term's seed.
func (d *draft) newID(slot int) string {
	place := fmt.Sprint(slot)
	if slot < 0 {
		place = "x"
	}
	return fmt.Sprintf("%s-%s-%s", d.g.Name, place, d.unique(place))
}

// unique returns six letters that no other call with any cache returns for the group.
func (d *draft) unique(of string) string {
	d.made++
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s/%s/%d/%d", d.s.Seed, d.g.Name, of, d.s.Revision, d.made)
	v := h.Sum64()
	suffix := make([]byte, 6)
	for i := range suffix {
		suffix[i] = idLetters[v%uint64(len(idLetters))]
		v /= uint64(len(idLetters))
	}
	return string(suffix)
}

// share maps words to a number in [0,1), always the same for the same words.
func share(words ...string) float64 {
	h := fnv.New64a()
	for _, w := range words {
		_, _ = h.Write([]byte(w)) // never fails
		_, _ = h.Write([]byte{0})
	}
	v := h.Sum64()
	v ^= v >> 33 // IDs differ in their last letters, which must affect the upper half
	v *= 0xff51afd7ed558ccd
	v ^= v >> 33
	return float64(v>>11) / (1 << 53)
}

// step appends an action that takes a member to another phase, with everything that such an action
// compares.
func (d *draft) step(m *member, to store.Phase, rule string, what store.Effect, why store.Cause,
	facts []store.Fact, change func(*store.Instance),
) *Action {
	rec := m.Record
	a := Action{
		Group: d.g.Name, Instance: m.ID(), Slot: rec.Place(), Rule: rule, Effect: what,
		Why: reason.Short(why), Cause: reason.Recorded(why), Facts: facts, From: rec.Phase, To: to,
		Verdict:        m.judgment.Verdict,
		Counterfactual: counterfactual(rule, m.judgment.Verdict),
		Conditions:     []store.Condition{m.Unchanged()},
	}
	if to != rec.Phase {
		rec.Phase, rec.Since = to, d.now.UTC()
		rec.Dead = to == store.Deleting && m.dead()
		d.traffic.enter(m, &rec)
	}
	rec.Last = d.decision(rule, what, why)
	if change != nil {
		change(&rec)
	}
	if rec.Restart != nil && rec.Restart != m.Record.Restart {
		rec.Since = d.now.UTC() // the next level of a restart has its own time
	}
	a.Writes = []store.Write{store.Put(m.Key, store.Encode(rec))}
	d.add(m, -1)
	m.phase, m.touched = to, true
	d.add(m, 1)
	d.actions = append(d.actions, a)
	return &d.actions[len(d.actions)-1]
}

// with adds further details to a cause.
func with(c store.Cause, add func(*store.CauseAlso)) store.Cause {
	var a store.CauseAlso
	if c.Also != nil {
		a = *c.Also
	}
	add(&a)
	c.Also = &a
	return c
}

// orderedBy returns the cause of work that an operator ordered.
func orderedBy(operator string) store.Cause { return store.Cause{Kind: store.CauseOrder, By: operator} }

// Update returns the least action that brings an instance up to date with its group, and why
// (ROLL-2): ActionLiveUpdate, ActionRestart or ActionRecreate; "" if it is up to date. Compute
// decides whether and when that happens.
func Update(in store.Instance, wanted store.Group) (action, why string) {
	v := &view{spec: &wanted, hash: wanted.InstanceSpec().TemplateHash()}
	m := &member{Instance: &Instance{}}
	m.Record = in
	if !v.outdated(m) {
		return "", ""
	}
	action, cause := v.change(m)
	return action, reason.Short(cause)
}
