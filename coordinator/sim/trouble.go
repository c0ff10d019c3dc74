package sim

import (
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// zoneOf finds a zone of a provider; nil if there is none.
func (w *World) zoneOf(name, zone string) (*cloud, *zone) {
	c := w.cloud(name)
	if c == nil {
		return nil, nil
	}
	return c, c.zone(zone)
}

// LoseZone has all machines of a zone end, and none be made there.
func (w *World) LoseZone(providerName, zone string) {
	c, z := w.zoneOf(providerName, zone)
	if z == nil || z.lost {
		return
	}
	w.note("zone %s of %s is lost", zone, providerName)
	z.lost = true
	for _, id := range append([]string(nil), c.order...) {
		if m := c.machines[id]; m.zone == zone && m.running() {
			m.end(provider.StateCrashed, "its zone is lost")
		}
	}
}

// ReturnZone has machines be made in a zone again.
func (w *World) ReturnZone(providerName, zone string) {
	if _, z := w.zoneOf(providerName, zone); z != nil && z.lost {
		w.note("zone %s of %s is back", zone, providerName)
		z.lost = false
	}
}

// Fill sets whether a zone is full.
func (w *World) Fill(providerName, zone string, full bool) {
	if _, z := w.zoneOf(providerName, zone); z != nil && z.full != full {
		w.note("zone %s of %s full: %t", zone, providerName, full)
		z.full = full
	}
}

// NoSpot sets whether a zone has no spot machines. Those that it has stay.
func (w *World) NoSpot(providerName, zone string, none bool) {
	if _, z := w.zoneOf(providerName, zone); z != nil && z.dry != none {
		w.note("zone %s of %s has no spot machines: %t", zone, providerName, none)
		z.dry = none
	}
}

// ProviderFails has all calls to a provider fail for a while.
func (w *World) ProviderFails(name string, d time.Duration) {
	if c := w.cloud(name); c != nil {
		w.note("%s fails for %s", name, d)
		c.failsUntil = w.clock + d
	}
}

// ProviderThrottles has a provider refuse all calls for a while.
func (w *World) ProviderThrottles(name string, d time.Duration) {
	if c := w.cloud(name); c != nil {
		w.note("%s throttles for %s", name, d)
		c.throttleUntil = w.clock + d
	}
}

// ProviderSlows has calls to a provider take as long as they may, or longer, for a while.
func (w *World) ProviderSlows(name string, d time.Duration) {
	if c := w.cloud(name); c != nil {
		w.note("%s is slow for %s", name, d)
		c.slowUntil = w.clock + d
	}
}

// ListsLie has a provider's Lists be wrong for a while.
func (w *World) ListsLie(name string, lie Lie, d time.Duration) {
	c := w.cloud(name)
	if c == nil {
		return
	}
	w.note("lists of %s are %s for %s", name, lie, d)
	c.past = c.listed()
	c.lie, c.lieUntil = lie, w.clock+d
}

// Plant adds a machine without a record, with the group's tag. Its agent speaks after a
// while, if ever.
func (w *World) Plant(g store.Group, id, zone string, speaks time.Duration) {
	c := w.cloud(g.Provider)
	if c == nil || c.machines[id] != nil {
		return
	}
	w.note("machine %s is there, and nobody knows why", id)
	m := &machine{
		cloud: c, id: id, group: g.Name, zone: zone, spec: g.InstanceSpec(),
		template: g.InstanceSpec().TemplateHash(),
	}
	c.add(m)
	m.boots, m.state = 1, provider.StateRunning
	a := newAgent(w, m)
	w.agents[id] = a
	if speaks <= 0 {
		m.mute = true
		return
	}
	w.after(speaks, func() {
		if m.running() && m.boots == 1 {
			a.start()
		}
	})
}

// NoteGone notes that an instance's record was deleted on purpose.
func (w *World) NoteGone(id, group string) {
	w.put(w.keys.Gone(w.keys.Instance(id)), store.Gone{Schema: store.Schema, Instance: id, Group: group, At: w.Now()},
		0)
}

// Clear removes a machine without a record by hand.
func (w *World) Clear(id string) {
	if m := w.machine(id); m != nil && !w.instance(id).Present() {
		w.note("machine %s is removed by hand", id)
		m.cloud.remove(id)
	}
}

// Calm ends all that providers have of trouble, and lets every agent return.
func (w *World) Calm() {
	w.note("all troubles end")
	for _, c := range w.clouds {
		c.failsUntil, c.throttleUntil, c.slowUntil, c.lieUntil = 0, 0, 0, 0
		c.cfg.Fails, c.cfg.Throttled, c.cfg.ListFails, c.cfg.NeverBoots = 0, 0, 0, 0
		for _, z := range c.zones {
			z.full, z.dry, z.lost = false, false, false
		}
	}
	for _, b := range w.balancers {
		b.deafUntil, b.slowUntil, b.liesUntil, b.disliked = 0, 0, 0, ""
	}
	w.lost, w.stuckHooks, w.meddles, w.balancersFail = 0, 0, 0, 0
	for _, id := range w.agentIDs() {
		w.Return(id)
	}
}
