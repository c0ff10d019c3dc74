package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// mostCreations and mostRemovals bound what one plan requests; the rest follows on the next
// cache.
const (
	mostCreations = 200
	mostRemovals  = 200
)

// scaleUp fills the slots that are missing: first those that have a record, then new ones with the
// lowest free numbers (REC-3, HEAL-10). It never makes more than size and max_expansion allow
// together: what drains still counts.
func (d *draft) scaleUp() {
	missing := d.spec.Size - d.inUse()
	if missing <= 0 {
		return
	}
	// no more are filled in one plan, and drafting 100,000 missing ones would take longer than the
	// rest
	idle := d.idle(min(missing, mostCreations+1))
	have, full := d.spec.Size-missing, false
	for i, sl := range idle {
		switch {
		case i == mostCreations:
			return
		case sl.touched:
			continue
		case d.waits(sl, task{work: store.WorkFill, slot: sl.number}):
			continue
		case d.atCapacity() && !sl.diedLast():
			full = true // but not for the dead: they wait for no budget (HEAL-3)
			continue
		case !d.mayCreate(task{work: store.WorkCreateRemaining}):
			return
		}
		why := fmt.Sprintf("%d of %d slots are filled", have, d.spec.Size)
		m, write := d.newMember(sl, sl.leaver(), "REC-3", why)
		a := Action{
			Group: d.g.Name, Instance: m.ID(), Slot: m.Record.Place(), Rule: "REC-3", What: "requested",
			Why: m.Record.Last.Why, To: store.Pending, Counterfactual: counterfactual("REC-3", ""),
			Conditions: append(d.common(), store.Absent(m.Key)), Writes: []store.Write{write},
		}
		d.madeFrom(&a, &m.Record)
		d.writeSlot(&a, sl)
		d.actions = append(d.actions, a)
		have++
	}
	if full {
		d.block("REC-18", task{work: store.WorkCreateMissing}, store.BlockedByCapacity,
			store.BlockedFacts{Count: d.counts.standing, Limit: d.spec.Size + d.spec.Budget.MaxExpansion})
	}
}

// leaver names the instance whose place the next one in the slot takes; "" if there is none.
func (sl *slot) leaver() string {
	if id := draining(sl); id != "" || sl.Record.Vacated == nil {
		return id
	}
	return sl.Record.Vacated.Instance
}

// diedLast reports whether the slot is empty since its instance died.
func (sl *slot) diedLast() bool { return sl.Record.Vacated != nil && sl.Record.Vacated.Dead }

// idle lists slots that may be filled: those that have a record first, each kind in order of
// number.
func (d *draft) idle(missing int) []*slot {
	var idle []*slot
	for _, sl := range d.order {
		if !sl.occupied() {
			idle = append(idle, sl)
		}
	}
	slices.SortFunc(idle, byNumber)
	for n := 0; len(idle) < missing; n++ {
		if d.slots.get(n) == nil {
			idle = append(idle, d.slot(n))
		}
	}
	return idle[:missing]
}

// cleanSlots forgets slots that are empty and no longer wanted.
func (d *draft) cleanSlots() {
	if len(d.order) <= d.spec.Size {
		return
	}
	used := 0
	var idle []*slot
	for _, sl := range d.order {
		switch {
		case sl.damaged != nil || slices.ContainsFunc(sl.members, func(m *member) bool { return !m.gone() }):
			used++
		case sl.Present() && !sl.touched:
			idle = append(idle, sl)
		}
	}
	slices.SortFunc(idle, func(a, b *slot) int { return byNumber(b, a) })
	for _, sl := range idle[:max(0, min(len(idle), used+len(idle)-d.spec.Size))] {
		sl.touched = true
		d.slots.set(sl.number, nil)
		d.order = slices.DeleteFunc(d.order, func(o *slot) bool { return o == sl })
		d.actions = append(d.actions, Action{
			Group: d.g.Name, Slot: &sl.number, Rule: "REC-4", What: "slot removed",
			Why: "nobody is in it and it is not wanted", NoJournal: true,
			Conditions: append(d.common(), sl.Unchanged()), Writes: []store.Write{store.Delete(sl.Key)},
		})
	}
}

// The order in which slots go when there are too many: HEAL-9, REC-19.
const (
	slotFailed   = iota // a member failed or is condemned, and no other works yet
	slotDoubtful        // a member is suspect or doomed, and no other works yet
	slotInWork          // a member is coming up, and no other works yet
	slotOutdated        // what works in it is outdated
	slotWorking         // a member works
)

// whyFirst says why a slot of a kind goes.
var whyFirst = map[int]string{
	slotFailed:   "nobody wanted works in its slot",
	slotInWork:   "it is not working yet",
	slotDoubtful: "it is suspect or doomed",
	slotOutdated: "it is outdated",
	slotWorking:  "it is the oldest of its zone",
}

// scaleDown removes whole slots while there are too many: REC-4, HEAL-9. Damaged slots are not
// counted: an instance may have been on its way out when its record was lost, and another one would
// be removed in its stead (SAFE-15).
func (d *draft) scaleDown() {
	surplus := d.counts.filled - d.spec.Size
	for _, sl := range d.order {
		if sl.damaged != nil {
			surplus--
		}
	}
	if surplus <= 0 {
		return
	}
	healing := d.healingInProgress()
	list := d.candidates()
	for range min(surplus, mostRemovals) {
		c := list.take()
		if c == nil {
			d.block("REC-13", task{work: store.WorkScaleDown}, store.BlockedByProtectedRest, store.BlockedFacts{})
			return
		}
		if c.kind >= slotOutdated && healing != "" {
			d.block("REC-4", task{work: store.WorkScaleDownWell}, store.BlockedByScaleHealing,
				store.BlockedFacts{Other: healing})
			return
		}
		for _, m := range c.members {
			if m.touched {
				return // the rest on the next cache
			}
			if !d.mayDelete(m.task(store.WorkScaleDown), m) {
				return
			}
			d.retire(m, "HEAL-9", "deleting",
				store.Cause{Kind: store.CauseSmaller, Text: fmt.Sprintf("%s above size %d, and %s",
					number(surplus, "slot"), d.spec.Size, whyFirst[c.kind])},
				m.evidence(), m.proof(d.s.Keys)...)
		}
	}
}

// healingInProgress names a replacement that is coming up for a failed one, if there is one.
func (d *draft) healingInProgress() string {
	for _, m := range d.members {
		if m.fills() && m.phase != store.Running && m.Record.Replaces != "" &&
			len(d.others(m, func(o *member) bool { return o.failing() })) > 0 {
			return m.ID()
		}
	}
	return ""
}

// candidate is a slot that may go.
type candidate struct {
	kind    int
	spot    bool
	zone    string
	members []*member // oldest first
}

// candidates are the slots that may go, and how many instances that will stay each zone has.
type candidates struct {
	list  []candidate
	crowd map[string]int
	// above is how many of those on demand are more than the group wants, if it wants shares of spot
	// and on demand.
	divided bool
	above   int
}

func (d *draft) candidates() candidates {
	all := candidates{crowd: maps.Clone(d.spread()), divided: d.divided()}
	if _, onDemand := d.shares(); all.divided {
		all.above = onDemand - d.spec.Capacity.OnDemand(d.spec.Size)
	}
	for _, sl := range d.order {
		if sl.filled == 0 || sl.damaged != nil {
			continue
		}
		c := candidate{kind: d.kindOf(sl), spot: sl.spot, zone: sl.zone, members: sl.staying()}
		if !slices.ContainsFunc(c.members, func(m *member) bool { return m.Record.Protected != "" }) {
			all.list = append(all.list, c)
		}
	}
	return all
}

// kindOf ranks how soon a slot goes: by the best working member, else by the worst other one.
func (d *draft) kindOf(sl *slot) int {
	best, worst := slotFailed, slotInWork
	for _, m := range sl.staying() {
		switch {
		case m.failing() || m.Record.Condemned != nil:
			worst = slotFailed
		case m.doom.rule != "" || m.judgment.Verdict == store.Suspect:
			worst = min(worst, slotDoubtful)
		case m.phase != store.Running:
		case d.obsolete(m):
			best = max(best, slotOutdated)
		default:
			best = slotWorking
		}
	}
	if best > slotFailed {
		return best
	}
	return worst
}

// staying lists who is in a slot and not on the way out.
func (sl *slot) staying() []*member {
	leaves := func(m *member) bool { return m.gone() || m.phase == store.Draining }
	if !slices.ContainsFunc(sl.members, leaves) {
		return sl.members
	}
	return slices.DeleteFunc(slices.Clone(sl.members), leaves)
}

// take takes out the slot that goes first: by kind, then the oldest in the fullest zone. It returns
// nil if none is left.
func (all *candidates) take() *candidate {
	if len(all.list) == 0 {
		return nil
	}
	first := 0
	for i := range all.list {
		if all.before(&all.list[i], &all.list[first]) {
			first = i
		}
	}
	c, last := all.list[first], len(all.list)-1
	all.list[first] = all.list[last]
	all.list = all.list[:last]
	all.crowd[c.zone]--
	if !c.spot {
		all.above--
	}
	return &c
}

func (all *candidates) before(a, b *candidate) bool {
	if a.kind != b.kind {
		return a.kind < b.kind
	}
	if all.divided && a.spot != b.spot {
		return b.spot == (all.above > 0) // the kind of which there is too much (SPOT-4)
	}
	if x, y := all.crowd[a.zone], all.crowd[b.zone]; x != y {
		return x > y
	}
	return older(a.members[0], b.members[0])
}

// Zones are kept even over the instances that will stay, one for each slot (REC-17).

// stays is the member of a slot that will stay, as far as is known: a replacement is counted
// instead of the one it replaces. Nil if none will.
func (sl *slot) stays() *member {
	var oldest, youngest *member
	for _, m := range sl.members {
		if !m.fills() {
			continue
		}
		if oldest == nil {
			oldest = m
		}
		if !m.unwanted() {
			youngest = m
		}
	}
	if youngest != nil {
		return youngest
	}
	return oldest
}

// zone is where a member is, or will be once this plan is carried out.
func (m *member) zone() string {
	if m.movesTo != "" {
		return m.movesTo
	}
	return m.Record.Zone
}

// spread is how many of those that will stay each zone has. It is counted when it is needed first,
// and kept up to date then.
func (d *draft) spread() map[string]int {
	if d.crowd == nil {
		d.crowd = map[string]int{}
		for _, sl := range d.order {
			d.countZone(sl)
		}
	}
	return d.crowd
}

// countZone counts a slot again.
func (d *draft) countZone(sl *slot) {
	if d.crowd == nil {
		return
	}
	if sl.counted {
		d.count(sl, -1)
	}
	m := sl.stays()
	if sl.counted = m != nil; sl.counted {
		sl.zone, sl.spot = m.zone(), m.spot()
		d.count(sl, 1)
	}
}

func (d *draft) count(sl *slot, n int) {
	d.crowd[sl.zone] += n
	d.counted += n
	if sl.spot {
		d.spots += n
	}
}

// zoneFor is the zone for a new instance in a slot, which is made instead of those that are there:
// the one with the fewest, of those that had room when last asked (REC-3, REC-17). Nil is an
// instance on demand, which also spreads the instances that are not counted.
func (d *draft) zoneFor(sl *slot, spec *store.InstanceSpec) string {
	zones := d.openZones(spec.Provider, &spec.Template)
	if still := common(zones, d.zones()); spec.Provider == d.spec.Provider && len(still) > 0 {
		zones = still // of an older template: those that are wanted still
	}
	if open := slices.DeleteFunc(slices.Clone(zones),
		func(z string) bool { return d.full(MarketOf(*spec), z) }); len(open) > 0 {
		zones = open
	}
	crowd := d.spread()
	switch {
	case sl == nil:
		crowd = maps.Clone(crowd)
		for _, m := range d.members {
			if !m.Record.Managed && !m.gone() {
				crowd[m.Record.Zone]++
			}
		}
	case sl.counted:
		crowd[sl.zone]--
		defer func() { crowd[sl.zone]++ }()
	}
	return emptiest(zones, crowd)
}

func emptiest(zones []string, crowd map[string]int) string {
	best := ""
	for i, z := range zones {
		if i == 0 || crowd[z] < crowd[best] {
			best = z
		}
	}
	return best
}

func fullest(zones []string, crowd map[string]int) string {
	best := ""
	for i, z := range zones {
		if i == 0 || crowd[z] > crowd[best] {
			best = z
		}
	}
	return best
}

func common(a, b []string) []string {
	var both []string
	for _, z := range a {
		if slices.Contains(b, z) {
			both = append(both, z)
		}
	}
	return both
}

// full reports whether a zone had no room lately.
func (d *draft) full(in Market, zone string) bool { return d.s.Full[in][zone].After(d.now) }

// zones are those in which instances may be made: the wanted ones that are not evacuated (DRAIN-3).
func (d *draft) zones() []string { return d.openZones(d.spec.Provider, &d.spec.Template) }

func (d *draft) openZones(provider string, t *store.Template) []string {
	zones := d.namedZones(provider, t)
	if gone := d.s.Shard.Record.Evacuated; len(gone) > 0 {
		zones = slices.DeleteFunc(zones, func(z string) bool { _, evacuated := gone[z]; return evacuated })
	}
	return zones
}

// wantedZones are the zones of the group's template.
func (d *draft) wantedZones() []string { return d.namedZones(d.spec.Provider, &d.spec.Template) }

// namedZones are those that a template names, else all that its provider has, in order.
func (d *draft) namedZones(provider string, t *store.Template) []string {
	zones := t.Zones
	if len(zones) == 0 {
		zones = d.s.Zones[provider]
	}
	return slices.Sorted(slices.Values(zones))
}

// mostApart is by how much zones may differ at most in an even spread.
const mostApart = 1

// uneven says between which zones the spread is uneven; ok is false if it is even.
func (d *draft) uneven() (from, to string, ok bool) {
	zones := d.zones()
	if len(zones) < 2 {
		return "", "", false
	}
	crowd := d.spread()
	from, to = fullest(zones, crowd), emptiest(zones, crowd)
	return from, to, crowd[from]-crowd[to] > mostApart
}

// unevenly says in words how instances are spread over the zones, if unevenly; "" if evenly.
func (d *draft) unevenly() string {
	if d.spec.Size < 2 || d.spec.Deleting || d.spec.Stopped || d.spec.Unstarted {
		return ""
	}
	if _, _, uneven := d.uneven(); !uneven {
		return ""
	}
	var parts []string
	for _, z := range d.zones() {
		parts = append(parts, fmt.Sprintf("%s %d", z, d.spread()[z]))
	}
	return strings.Join(parts, ", ")
}

// How long the next rebalance waits after one that was withdrawn, and for how long at most: it
// doubles each time (REC-17).
const (
	rebalanceWait     = 30 * time.Minute
	rebalanceWaitMost = 24 * time.Hour
)

// rebalance evens the zones of a group that wants it, one instance at a time. It has the lowest
// priority of all: it begins only while nothing else is to be done, makes the replacement first,
// and gives way to healing like a roll does (REC-17).
func (d *draft) rebalance() {
	if d.spec.Spread != store.SpreadEven {
		return
	}
	from, to, uneven := d.uneven()
	if !uneven || d.rebalancing() {
		return
	}
	what := task{work: store.WorkRebalance, zone: from, to: to}
	wait := d.ends(d.g.Due, store.TimerRebalance, d.rebalanceWaits())
	switch {
	case d.rollout != nil && d.spec.Rollout.Strategy == store.StrategyProactive:
		d.block("REC-17", what, store.BlockedByRoll, store.BlockedFacts{})
	case !d.allWell() || !d.settledDown():
		d.block("REC-17", what, store.BlockedByUnsettled, store.BlockedFacts{})
	case d.spec.Budget.MaxExpansion == 0:
		d.block("REC-17", what, store.BlockedByNoExpansion, store.BlockedFacts{})
	case wait.After(d.now):
		d.wake(wait)
		r := d.g.Status.Record.Rebalance
		d.block("REC-17", what, store.BlockedByWithdrawal, store.BlockedFacts{Text: r.Why, For: r.Wait.For})
	case d.mayCreate(what):
		d.rebalanceOne(from, to, what)
	}
}

func (d *draft) rebalanceWaits() *store.Timer {
	if r := d.g.Status.Record.Rebalance; r != nil {
		return r.Wait
	}
	return nil
}

// settledDown reports whether every slot has one member that works, that no member has to go, and
// that this plan changes none.
func (d *draft) settledDown() bool {
	for _, sl := range d.order {
		for _, m := range sl.members {
			if len(sl.members) > 1 || sl.touched || m.touched || m.unwanted() || m.judgment.Verdict != store.Live {
				return false
			}
		}
	}
	return true
}

// rebalanceOne replaces the oldest instance of a zone that may be replaced by one in another zone.
func (d *draft) rebalanceOne(from, to string, what task) {
	var m *member
	for _, sl := range d.order {
		for _, o := range sl.members {
			if o.Record.Zone == from && d.movable(sl, o) && (m == nil || older(o, m)) {
				m = o
			}
		}
	}
	if m == nil {
		d.block("REC-17", what, store.BlockedByProtectedZone, store.BlockedFacts{})
		return
	}
	if market := (Market{d.spec.Provider, m.spot()}); d.full(market, to) {
		d.wake(d.s.Full[market][to])
		d.block("REC-17", what, store.BlockedByFullZone, store.BlockedFacts{})
		return
	}
	why := fmt.Sprintf("zone %s has %d instances, and zone %s has %d", from, d.spread()[from], to, d.spread()[to])
	a := d.step(m, m.phase, "REC-17", replaced, because(why), m.evidence(), nil)
	a.Conditions = append(a.Conditions, d.common()...)
	d.addReplacement(a, m.slot, m, "REC-17", because(why))
	d.writeSlot(a, m.slot)
}

// rebalancedBy is the member that was made to take a member's place in another zone; nil if there
// is none.
func (m *member) rebalancedBy() *member {
	if m.slot == nil {
		return nil
	}
	for _, o := range m.slot.members {
		if o.Record.Rebalances && o.Record.Replaces == m.ID() && o.fills() {
			return o
		}
	}
	return nil
}

// rebalancing reports whether a rebalance is under way.
func (d *draft) rebalancing() bool {
	for _, sl := range d.order {
		for _, m := range sl.members {
			if m.rebalancedBy() != nil && m.fills() {
				return true
			}
		}
	}
	return false
}

// withdrawRebalance withdraws a replacement that was to even the zones and whose zone has no room:
// in another zone it would not help. It returns false if the replacement is needed because the
// instance that it replaces no longer works.
func (d *draft) withdrawRebalance(m *member) bool {
	if !m.Record.Rebalances || len(d.others(m, usable)) == 0 || !d.mayDelete(m.task(store.WorkWithdraw), m) {
		return false
	}
	d.retire(m, "REC-17", "withdrawn",
		because("zone "+m.zone()+" has no room, and it was made to even the zones"),
		[]string{m.Calls.Problem})
	return true
}

// followRebalance is what the status remembers of rebalances that were withdrawn, so that the next
// one waits.
func (d *draft) followRebalance() *store.Rebalance {
	old := d.g.Status.Record.Rebalance
	tries, last := 0, ""
	if old != nil {
		tries, last = old.Withdrawn, old.Last
	}
	for _, sl := range d.order {
		for _, m := range sl.members {
			if !m.Record.Rebalances || m.Record.Converts {
				continue
			}
			replaced := sl.member(m.Record.Replaces)
			switch {
			case replaced == nil:
			case m.fills() && d.proven(m):
				return nil // it takes its place
			case m.ID() != last && !m.fills() && replaced.fills():
				t := d.timer(min(rebalanceWait<<min(tries, 10), rebalanceWaitMost))
				return &store.Rebalance{Withdrawn: tries + 1, Last: m.ID(), Why: d.lastWhy(m), Wait: &t}
			}
		}
	}
	if _, _, uneven := d.uneven(); old != nil && !uneven && !d.rebalancing() {
		return nil
	}
	return old
}

// member is the one with an ID; nil if it is not in the slot.
func (sl *slot) member(id string) *member {
	for _, m := range sl.members {
		if m.ID() == id {
			return m
		}
	}
	return nil
}

// lastWhy is why a member leaves: as this plan decides, else as its record says.
func (d *draft) lastWhy(m *member) string {
	for i := range d.actions {
		if a := &d.actions[i]; a.Instance == m.ID() && a.To != a.From {
			return a.Why
		}
	}
	return m.Record.Last.Why
}
