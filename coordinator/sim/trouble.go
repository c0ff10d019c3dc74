package sim

import (
	"time"

	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// zone returns a zone of a provider; nil if there is none.
func (w *World) zone(name, zone string) (*cloud, *fake.ZoneState) {
	c := w.cloud(name)
	if c == nil {
		return nil, nil
	}
	return c, c.Zone(zone)
}

// LoseZone ends all machines of a zone, and prevents new ones there.
func (w *World) LoseZone(providerName, zone string) {
	if c, z := w.zone(providerName, zone); z != nil && !z.Lost {
		w.note("zone %s of %s is lost", zone, providerName)
		c.Lose(z)
	}
}

// ReturnZone allows new machines in a zone again.
func (w *World) ReturnZone(providerName, zone string) {
	if _, z := w.zone(providerName, zone); z != nil && z.Lost {
		w.note("zone %s of %s is back", zone, providerName)
		z.Lost = false
	}
}

// Fill sets whether a zone is full.
func (w *World) Fill(providerName, zone string, full bool) {
	if _, z := w.zone(providerName, zone); z != nil && z.Full != full {
		w.note("zone %s of %s full: %t", zone, providerName, full)
		z.Full = full
	}
}

// NoSpot sets whether a zone has no spot capacity. Existing spot machines stay.
func (w *World) NoSpot(providerName, zone string, none bool) {
	if _, z := w.zone(providerName, zone); z != nil && z.NoSpot != none {
		w.note("zone %s of %s has no spot machines: %t", zone, providerName, none)
		z.NoSpot = none
	}
}

// ProviderFails makes all calls to a provider fail for a while.
func (w *World) ProviderFails(name string, d time.Duration) {
	if c := w.cloud(name); c != nil {
		w.note("%s fails for %s", name, d)
		c.FailUntil(w.Now().Add(d))
	}
}

// ProviderThrottles makes a provider refuse all calls for a while.
func (w *World) ProviderThrottles(name string, d time.Duration) {
	if c := w.cloud(name); c != nil {
		w.note("%s throttles for %s", name, d)
		c.ThrottleUntil(w.Now().Add(d))
	}
}

// ProviderSlows makes calls to a provider take the longest time, or longer, for a while.
func (w *World) ProviderSlows(name string, d time.Duration) {
	if c := w.cloud(name); c != nil {
		w.note("%s is slow for %s", name, d)
		c.SlowUntil(w.Now().Add(d))
	}
}

// Lies are the random faults of Lists.
var Lies = []fake.LieKind{fake.Empty, fake.Truncated, fake.Failing, fake.Tardy, fake.Duplicated, fake.Stale}

// ListsLie makes a provider's Lists wrong for a while.
func (w *World) ListsLie(name string, lie fake.LieKind, d time.Duration) {
	if c := w.cloud(name); c != nil {
		w.note("lists of %s are %s for %s", name, lie, d)
		c.Lie(fake.Lie{Kind: lie, Until: w.Now().Add(d)})
	}
}

// Plant adds a machine without a record, with the group's tag. Its agent connects after a while, if
// ever.
func (w *World) Plant(g store.Group, id, zone string, speaks time.Duration) {
	c := w.cloud(g.Provider)
	if c == nil || c.Machine(id) != nil {
		return
	}
	w.note("a machine %s appears that no one asked for", id)
	m := c.Plant(machineOf(id, g.Name, zone))
	a := newAgent(c, m, g.InstanceSpec(), g.InstanceSpec().TemplateHash())
	w.addAgent(a)
	if a.mute = speaks <= 0; a.mute {
		return
	}
	w.after(speaks, func() {
		if m.Running() && m.Boots == 1 {
			a.start()
		}
	})
}

// NoteGone writes the note that an instance's record was deleted on purpose.
func (w *World) NoteGone(id, group string) {
	w.put(w.keys.Gone(w.keys.Instance(id)), store.Gone{Schema: store.Schema, Instance: id, Group: group, At: w.Now()},
		0)
}

// Clear removes a machine without a record, as an operator would.
func (w *World) Clear(id string) {
	for _, c := range w.clouds {
		if c.Machine(id) != nil && !w.instance(id).Present() {
			w.note("machine %s is removed by hand", id)
			c.Vanish(id)
		}
	}
}

// Calm ends all trouble of providers, and makes every agent connect again.
func (w *World) Calm() {
	w.note("all troubles end")
	for _, c := range w.clouds {
		c.Calm()
		c.cfg.NeverBoots = 0
	}
	for _, b := range w.balancers {
		b.deafUntil, b.slowUntil, b.liesUntil, b.disliked = 0, 0, 0, ""
	}
	w.lost, w.stuckHooks, w.interferes, w.balancersFail = 0, 0, 0, 0
	for _, a := range w.agentsInOrder() {
		w.Return(a.m.ID)
	}
}
