package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// budget limits how many instances may be down, new or removed at once: by the group's own budgets,
// by the budget that it shares, and by the limits of the shard.
type budget struct {
	*draft
	shared  *sharedBudget   // with other groups; nil: none
	room    *room           // room that the shard's limits leave; nil: there are no limits
	drafted map[string]bool // keys of the instances that this plan creates
	ending  []*member       // agents and workloads that a drill ends: see unavailable
}

// counts are the counts of managed members that budgets are based on: by phase, recorded and
// drafted. Every step updates them, so that no decision has to count again.
type counts struct {
	machines int // existing and not dead: see expansion
	shed     int // of these, those that drain because the group was too large: see mostFor
	filled   int // slots
	up       int // slots with an instance that has fully booted and is not down
	well     int // slots with a healthy instance
	creating int
	leaving  int
}

// add adds a member to the counts, or subtracts it.
func (f *fleet) add(m *member, by int) {
	if !m.Record.Managed {
		return
	}
	c, sl := &f.counts, m.slot
	if m.countsAsMachine() {
		c.machines += by
		if m.shed() {
			c.shed += by
		}
	}
	if m.comingUp() {
		c.creating += by
	}
	if m.goingDown() {
		c.leaving += by
	}
	slots := func(in int, slots *int, yes bool) int {
		if !yes {
			return in
		}
		if in+by == 0 || in == 0 {
			*slots += by
		}
		return in + by
	}
	sl.filled = slots(sl.filled, &c.filled, m.fills())
	done := m.phase == store.Finished // its slot needs no more instances
	sl.up = slots(sl.up, &c.up, done || f.up(m))
	sl.well = slots(sl.well, &c.well, done || m.healthy())
	f.countZone(sl)
}

// countsAsMachine reports whether a member counts against size and max_expansion: it has a machine,
// or may soon have one. A member that is being deleted counts until it is gone (REC-18), even if
// only this plan deletes it: that action may fail on a changed key while the next one succeeds.
// Dead members do not count, nor does a leaving member whose machine will end by a notice: it
// cannot be kept, so its replacement waits for no budget (SPOT-2).
func (m *member) countsAsMachine() bool {
	switch m.Record.Phase {
	case store.Draining:
		return !m.dead() && !m.noticed()
	case store.Deleting:
		return !m.Record.Dead && !m.noticed() && m.Record.Called
	default:
		return !m.dead()
	}
}

// shed reports whether a member drains because the group was too large.
func (m *member) shed() bool {
	return m.Record.Phase == store.Draining && m.Record.LeavesBecause() == store.PurposeSize
}

// comingUp reports whether a member counts against max_creating. A member that failed to come up
// does not count: it would block its own replacement forever.
func (m *member) comingUp() bool {
	up := func(p store.Phase) bool {
		return p == store.Pending || p == store.Creating || p == store.Booting || p == store.Starting
	}
	return !m.failing() && (up(m.phase) || up(m.Record.Phase))
}

// goingDown reports whether a member counts against max_deleting. It still counts if only this plan
// ends that.
func (m *member) goingDown() bool {
	down := func(p store.Phase) bool { return p == store.Draining || p == store.Stopping || p == store.Deleting }
	return down(m.phase) || down(m.Record.Phase)
}

// booted reports whether a member has fully booted. Failing checks do not count here (HEAL-5), but
// a member whose workload has ended is down. After a start it first has to stay up for
// startup_duration (ROLL-3). An instance that this plan takes to running does not count yet: that
// action may fail.
func (f *fleet) booted(m *member) bool {
	if m.phase != store.Running || m.Record.Phase != store.Running || m.dead() || m.crashed() {
		return false
	}
	startup := f.startup()
	if startup == 0 {
		return true
	}
	due := m.PhaseStart.Add(startup)
	f.wake(due) // work that waits for it can continue then
	return !f.now.Before(due)
}

func (v *view) startup() time.Duration {
	if v.spec == nil {
		return 0
	}
	return v.spec.Rollout.StartupDuration.D()
}

// proven reports whether a member has been healthy for startup_duration (ROLL-3), so that others
// may rely on it.
func (f *fleet) proven(m *member) bool {
	if !m.healthy() {
		return false
	}
	startup := f.startup()
	if startup == 0 {
		return true
	}
	since := m.HealthySince
	if since.Before(m.PhaseStart) {
		since = m.PhaseStart
	}
	if due := since.Add(startup); f.now.Before(due) {
		f.wake(due)
		return false
	}
	return true
}

// expansion returns how many instances exist above size once the missing slots are filled: other
// work must leave healing the room that it needs (HEAL-10).
func (d *budget) expansion() int { return d.counts.machines - min(d.spec.Size, d.counts.filled) }

// deletionInTheWay returns the first member whose deletion has to end before there is room in
// max_expansion again; "" if deletions are not why there is none. A deletion may never end, for
// example if no coordinator can reach the machine.
func (d *budget) deletionInTheWay(excess int) (first string) {
	for _, m := range d.members {
		if m.Record.Managed && m.Record.Phase == store.Deleting && m.countsAsMachine() {
			if excess--; first == "" {
				first = m.ID()
			}
		}
	}
	if excess >= 0 {
		return ""
	}
	return first
}

// bounds are how much of the budgets may be in use when a kind of work begins.
type bounds struct{ expansion, down int }

func (d *budget) boundsOf(w store.WorkBudget) bounds {
	return bounds{expansion: d.spec.MaxExpansionFor(w), down: d.spec.MaxUnavailableFor(w, false)}
}

// mostFor is how many machines may exist for one to be made in a slot. If the one before was
// removed first, the limit is the one for the work that did so (REC-18). Where the size follows the
// load, what drains since load asked for fewer delays no growth: a drain may last for hours
// (AUTO-2). The group never has more machines for that than at scale.max.
func (d *budget) mostFor(sl *slot) int {
	var w store.WorkBudget
	switch v := sl.Record.Vacated; {
	case v == nil || v.Dead:
	case v.Roll:
		w = d.spec.Budget.Roll
	default:
		w = d.spec.Budget.Heal
	}
	expansion := d.spec.MaxExpansionFor(w)
	most := d.spec.Size + expansion
	if s := d.spec.Scale; s != nil && sl.Record.Vacated == nil {
		if chosen := d.g.Status.Record.Scale; chosen != nil {
			s = s.Under(chosen.Scheduled)
		}
		most = max(most, min(most+d.counts.shed, s.Max+expansion))
	}
	return most
}

// atCapacity reports whether no machine may be created in a slot.
func (d *budget) atCapacity(sl *slot) bool {
	machines := d.counts.machines
	if v := sl.Record.Vacated; v != nil && !v.Roll {
		machines -= d.finishing()
	}
	return machines >= d.mostFor(sl)
}

// unavailable returns how many of the wanted slots have no fully booted instance. An instance whose
// agent or workload a drill ends counts before it is down: nothing can call that back (DAY-6). The
// end of a machine can be: the leader looks at the group again before it asks for it.
func (d *budget) unavailable() int {
	down := max(0, d.spec.Size-d.counts.up)
	for _, m := range d.ending {
		if m.slot.up == 1 && d.up(m) {
			down++
		}
	}
	return min(down, d.spec.Size)
}

// unwell returns how many of the wanted slots have no healthy instance, as unavailable counts.
func (d *budget) unwell() int {
	down := max(0, d.spec.Size-d.counts.well)
	for _, m := range d.ending {
		if m.slot.well == 1 && m.healthy() {
			down++
		}
	}
	return min(down, d.spec.Size)
}

// roomToCreate and roomToDelete apply HEAL-7.
func (d *budget) roomToCreate() bool {
	return d.spec.Budget.MaxCreating == 0 || d.counts.creating < d.spec.Budget.MaxCreating
}

func (d *budget) roomToDelete() bool {
	return d.spec.Budget.MaxDeleting == 0 || d.counts.leaving < d.spec.Budget.MaxDeleting
}

// creationBlocker returns what blocks the creation of an instance; nil if nothing does.
func (d *budget) creationBlocker() *blocker {
	switch {
	case len(d.s.Shard.Record.Evacuated) > 0 && len(d.zones()) == 0:
		return blocked("DRAIN-3", store.BlockedByEvacuation, store.BlockedFacts{Name: strings.Join(d.wantedZones(), ",")})
	case !d.roomToCreate():
		return blocked("HEAL-7", store.BlockedByMaxCreating, store.BlockedFacts{})
	case d.made >= maxCreations:
		return nextPlan
	}
	return nil
}

// additionBlocker is creationBlocker for work that creates an additional machine: it waits for the
// limits of the shard, behind slots without an instance (CAP-1).
func (d *budget) additionBlocker() *blocker {
	if b := d.creationBlocker(); b != nil {
		return b
	}
	return d.limitBlocker(false)
}

// deletionBlocker returns what blocks the deletion of a member: max_deleting, or a load balancer. A
// member that failed or has to go does not wait for what busy ones use of the budget (BUSY-1).
func (d *budget) deletionBlocker(m *member) *blocker { return d.blockerToDelete(m, m.unwanted()) }

// givingWayBlocker is deletionBlocker for a member that works, and whose room a failed one needs
// (HEAL-8).
func (d *budget) givingWayBlocker(m *member) *blocker { return d.blockerToDelete(m, true) }

// plannedDeletionBlocker is deletionBlocker for planned work, which waits for busy ones even if the
// member has failed: a roll takes such a member only if nothing heals it, and a group that shrinks
// needs no other in its place (HEAL-9).
func (d *budget) plannedDeletionBlocker(m *member) *blocker { return d.blockerToDelete(m, false) }

func (d *budget) blockerToDelete(m *member, heals bool) *blocker {
	if m.goingDown() { // it is in the budget already
		return nil
	}
	if b := d.traffic.leavingBlocker(m); b != nil {
		return b
	}
	if d.roomToDelete() || heals && d.counts.leaving-d.finishing() < d.spec.Budget.MaxDeleting {
		return nil
	}
	return blocked("HEAL-7", store.BlockedByMaxDeleting, store.BlockedFacts{})
}

// Turns serializes a group's changes that use its budgets: each compares the key turns/<group> with
// its value after the previous change, and writes it. So if the answer to a transaction was lost,
// and etcd executes it only after we have decided something else, it fails: two changes that were
// each planned with the whole budget cannot both happen.
type Turns struct {
	keys store.Keys
	last map[string]store.Revision
}

// NewTurns starts with the revisions that a snapshot shows.
func NewTurns(s *Snapshot) Turns {
	t := Turns{keys: s.Keys, last: make(map[string]store.Revision, len(s.Groups))}
	for i := range s.Groups {
		t.last[s.Groups[i].Name] = s.Groups[i].Turn
	}
	t.last[LimitsTurn] = s.LimitsTurn
	for name, rev := range s.BudgetTurns {
		t.last[BudgetTurn(name)] = rev
	}
	return t
}

// Txn returns what an action compares and writes, including its turn if it takes one.
func (t Turns) Txn(a *Action) ([]store.Condition, []store.Write) {
	if !a.Turn {
		return a.Conditions, a.Writes
	}
	turn := store.Encode(store.Turn{Schema: store.Schema, Rule: a.Rule, Instance: a.Instance})
	conditions, writes := slices.Clone(a.Conditions), slices.Clone(a.Writes)
	for _, name := range a.turns() {
		key := t.keys.Turn(name)
		conditions, writes = append(conditions, store.At(key, t.last[name])), append(writes, store.Put(key, turn))
	}
	return conditions, writes
}

// turns returns the names of the turn keys that an action compares and writes.
func (a *Action) turns() []string {
	names := []string{a.Group}
	if a.Limited {
		names = append(names, LimitsTurn)
	}
	if a.BudgetGroup != "" {
		names = append(names, BudgetTurn(a.BudgetGroup))
	}
	return names
}

// TxnOf returns what actions that share a transaction compare and write.
func (t Turns) TxnOf(together []*Action) (conditions []store.Condition, writes []store.Write) {
	for _, a := range together {
		c, w := t.Txn(a)
		conditions, writes = append(conditions, c...), append(writes, w...)
	}
	return conditions, writes
}

// Done records that an action has happened.
func (t Turns) Done(a *Action, rev store.Revision) {
	if !a.Turn {
		return
	}
	for _, name := range a.turns() {
		t.last[name] = rev
	}
}

// takeTurns marks the actions that use a budget: those that compare the shard's record, as every
// action does that creates, restarts or removes a machine. The status that begins a storm takes a
// turn as well: what was decided before it, and is executed late, must not happen in it.
func (d *budget) takeTurns() {
	for i := range d.actions {
		a := &d.actions[i]
		a.Limited = len(d.s.Limits) > 0 && slices.ContainsFunc(a.Writes, func(w store.Write) bool { return d.drafted[w.Key] })
		a.Turn = a.Turn || a.Limited || slices.Contains(a.Conditions, d.s.Shard.Unchanged()) &&
			!slices.ContainsFunc(a.Writes, func(w store.Write) bool { return w.Delete && w.Key == d.specKey() })
		if a.Turn && d.shared != nil {
			a.BudgetGroup = d.shared.name
		}
	}
}

// allWell reports whether every slot has exactly one instance, which is healthy, and no other work
// is under way.
func (d *budget) allWell() bool {
	return d.counts.well >= d.spec.Size && d.counts.machines == d.spec.Size && d.counts.leaving == 0
}
