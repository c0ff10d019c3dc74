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

// Zones are kept even, counting the instances that will stay, one for each slot (REC-17).

// zoning chooses zones and rebalances them.
type zoning struct{ *draft }

// stays returns the member of a slot that will stay, as far as is known: a replacement counts
// instead of the member it replaces. It returns nil if none will.
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

// zone returns where a member is, or will be once this plan is carried out.
func (m *member) zone() string {
	if m.movesTo != "" {
		return m.movesTo
	}
	return m.Record.Zone
}

// spread returns how many staying members each zone has. It is counted on first use, and kept up to
// date then.
func (f *fleet) spread() map[string]int {
	if f.crowd == nil {
		f.crowd = map[string]int{}
		for _, sl := range f.order {
			f.countZone(sl)
		}
	}
	return f.crowd
}

// countZone counts a slot again.
func (f *fleet) countZone(sl *slot) {
	if f.crowd == nil {
		return
	}
	if sl.counted {
		f.count(sl, -1)
	}
	m := sl.stays()
	if sl.counted = m != nil; sl.counted {
		sl.zone, sl.spot = m.zone(), m.spot()
		f.count(sl, 1)
	}
}

func (f *fleet) count(sl *slot, n int) {
	f.crowd[sl.zone] += n
	f.counted += n
	if sl.spot {
		f.spots += n
	}
}

// zoneFor chooses the zone of a new instance in a slot, which takes the place of the present
// members: the zone with the fewest, among those that had room when last asked (REC-3, REC-17). Nil
// is an instance on demand: those are spread as well, and not counted.
func (d *zoning) zoneFor(sl *slot, spec *store.InstanceSpec) string {
	zones := d.openZones(spec.Provider, &spec.Template)
	if still := common(zones, d.zones()); spec.Provider == d.spec.Provider && len(still) > 0 {
		zones = still // of an older template: those that are still wanted
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
func (v *view) full(in Market, zone string) bool { return v.s.Full[in][zone].After(v.now) }

// zones returns the zones in which instances may be created: the wanted ones that are not evacuated
// (DRAIN-3).
func (v *view) zones() []string { return v.openZones(v.spec.Provider, &v.spec.Template) }

func (v *view) openZones(provider string, t *store.Template) []string {
	zones := v.namedZones(provider, t)
	if gone := v.s.Shard.Record.Evacuated; len(gone) > 0 {
		zones = slices.DeleteFunc(zones, func(z string) bool { _, evacuated := gone[z]; return evacuated })
	}
	return zones
}

// wantedZones are the zones of the group's template.
func (v *view) wantedZones() []string { return v.namedZones(v.spec.Provider, &v.spec.Template) }

// namedZones returns the zones that a template names, else all zones of its provider, in order.
func (v *view) namedZones(provider string, t *store.Template) []string {
	zones := t.Zones
	if len(zones) == 0 {
		zones = v.s.Zones[provider]
	}
	return slices.Sorted(slices.Values(zones))
}

// maxApart is by how much zones may differ at most in an even spread.
const maxApart = 1

// uneven returns between which zones the spread is uneven; ok is false if it is even.
func (d *zoning) uneven() (from, to string, ok bool) {
	zones := d.zones()
	if len(zones) < 2 {
		return "", "", false
	}
	crowd := d.spread()
	from, to = fullest(zones, crowd), emptiest(zones, crowd)
	return from, to, crowd[from]-crowd[to] > maxApart
}

// unevenly describes how instances are spread over the zones, if unevenly; "" if evenly.
func (d *zoning) unevenly() string {
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

// The first and the longest wait of a rebalance after a withdrawn one; the wait doubles each time
// (REC-17).
const (
	rebalanceWait    = 30 * time.Minute
	maxRebalanceWait = 24 * time.Hour
)

// rebalance evens out the zones of a group that asks for it, one instance at a time. It has the
// lowest priority: it begins only when no other work is due, creates the replacement first, and
// yields to healing like a roll (REC-17).
func (d *zoning) rebalance() {
	if d.spec.Spread != store.SpreadEven {
		return
	}
	from, to, uneven := d.uneven()
	if !uneven || d.rebalancing() {
		return
	}
	what := task{work: store.WorkRebalance, zone: from, to: to}
	wait := d.ends(d.g.Due, store.TimerRebalance, d.rebalanceWaits())
	shut := d.windows.blocker(store.PlannedRebalance)
	switch {
	case d.waits(what, shut):
	case d.roll.rollout != nil && d.spec.Rollout.Strategy == store.StrategyProactive:
		d.block("REC-17", what, store.BlockedByRoll, store.BlockedFacts{})
	case !d.budget.allWell() || !d.settledDown():
		d.block("REC-17", what, store.BlockedByUnsettled, store.BlockedFacts{})
	case d.spec.MaxExpansion() == 0:
		d.block("REC-17", what, store.BlockedByNoExpansion, store.BlockedFacts{})
	case wait.After(d.now):
		d.wake(wait)
		r := d.g.Status.Record.Rebalance
		d.block("REC-17", what, store.BlockedByWithdrawal,
			store.BlockedFacts{Cause: reason.Known(r.Cause, r.Why), For: r.Wait.For})
	case !d.waits(what, d.budget.additionBlocker()):
		d.rebalanceOne(from, to, what)
	}
}

func (d *zoning) rebalanceWaits() *store.Timer {
	if r := d.g.Status.Record.Rebalance; r != nil {
		return r.Wait
	}
	return nil
}

// settledDown reports whether every slot has one working member, no member has to go, and this plan
// changes none.
func (f *fleet) settledDown() bool {
	for _, sl := range f.order {
		for _, m := range sl.members {
			if len(sl.members) > 1 || sl.touched || m.touched || m.unwanted() || m.judgment.Verdict != store.Live {
				return false
			}
		}
	}
	return true
}

// rebalanceOne replaces the oldest movable instance of a zone by one in another zone.
func (d *zoning) rebalanceOne(from, to string, what task) {
	var m *member
	for _, sl := range d.order {
		for _, o := range sl.members {
			if o.Record.Zone == from && d.movable(sl, o) && (m == nil || d.movesBefore(o, m, older)) {
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
	why := store.Cause{
		Kind: store.CauseUneven, Name: from, Count: d.spread()[from], Other: to, Limit: d.spread()[to],
	}
	a := d.step(m, m.phase, "REC-17", effect(store.EffectReplaced), why, m.facts(), nil)
	a.Conditions = append(a.Conditions, d.common()...)
	d.addReplacement(a, m.slot, m, motive{store.PurposeZones, "REC-17", why})
	d.writeSlot(a, m.slot)
}

// rebalancedBy returns the member that was created to take a member's place in another zone; nil if
// there is none.
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
func (f *fleet) rebalancing() bool {
	for _, sl := range f.order {
		for _, m := range sl.members {
			if m.rebalancedBy() != nil && m.fills() {
				return true
			}
		}
	}
	return false
}

// withdrawRebalance withdraws a replacement that was to even out the zones and whose zone has no
// room: in another zone it would not help. It returns false if the replacement is needed because
// the instance that it replaces no longer works.
func (d *zoning) withdrawRebalance(m *member) bool {
	if !m.Record.Rebalances || len(d.others(m, usable)) == 0 ||
		d.waits(m.task(store.WorkWithdraw), d.budget.deletionBlocker(m)) {
		return false
	}
	d.retire(m, motive{
		store.PurposeZones, "REC-17", store.Cause{Kind: store.CauseFullZoneEven, Name: m.zone()},
	}, store.EffectWithdrawn, inWords(m.Calls.Problem))
	return true
}

// followRebalance updates the status's record of withdrawn rebalances, so that the next one waits.
func (d *zoning) followRebalance() *store.Rebalance {
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
				why, t := d.lastCause(m), d.timer(min(rebalanceWait<<min(tries, 10), maxRebalanceWait))
				return &store.Rebalance{
					Withdrawn: tries + 1, Last: m.ID(), Why: reason.Short(why), Cause: reason.Recorded(why), Wait: &t,
				}
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

// lastCause returns why a member leaves: by this plan, else by its record.
func (d *zoning) lastCause(m *member) store.Cause {
	for i := range d.actions {
		if a := &d.actions[i]; a.Instance == m.ID() && a.To != a.From {
			return reason.Known(a.Cause, a.Why)
		}
	}
	return reason.Known(m.Record.Last.Cause, m.Record.Last.Why)
}

// moveZone retries a creation in another zone when its own zone has no room: nothing was created
// there (REC-3).
func (d *zoning) moveZone(m *member) {
	market := MarketOf(m.Record.Spec)
	full, to := m.Record.Zone, d.zoneFor(m.slot, &m.Record.Spec)
	if to == "" || to == full || !d.full(market, full) || d.full(market, to) {
		return
	}
	a := d.step(m, store.Creating, "REC-3", store.Effect{Kind: store.EffectInZone, Zone: to},
		store.Cause{Kind: store.CauseFullZone, Name: full}, inWords(m.Calls.Problem),
		func(r *store.Instance) { r.Zone = to })
	a.Conditions = append(a.Conditions, d.common()...)
	m.movesTo = to
	d.countZone(m.slot)
}
