package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
)

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
		d.crowd[sl.zone]--
	}
	m := sl.stays()
	if sl.counted = m != nil; sl.counted {
		sl.zone = m.zone()
		d.crowd[sl.zone]++
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
		func(z string) bool { return d.full(spec.Provider, z) }); len(open) > 0 {
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
func (d *draft) full(provider, zone string) bool { return d.s.Full[provider][zone].After(d.now) }

// zones are those in which instances may be made: the wanted ones that are not evacuated (DRAIN-3).
func (d *draft) zones() []string { return d.openZones(d.spec.Provider, &d.spec.Template) }

func (d *draft) openZones(provider string, t *store.Template) []string {
	zones := d.namedZones(provider, t)
	if gone := d.s.Shard.Record.Evacuated; len(gone) > 0 {
		zones = slices.DeleteFunc(zones, func(z string) bool { _, evacuated := gone[z]; return evacuated })
	}
	return zones
}

// wantedZones are those of the group's template.
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
