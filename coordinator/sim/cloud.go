package sim

import (
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// shardID is the ID of the world's shard, with which its machines are tagged.
const shardID = "imagined"

// cloud is a provider.
type cloud struct {
	*fake.Cloud
	w   *World
	cfg Provider
}

func newCloud(w *World, cfg Provider) *cloud {
	c := &cloud{w: w, cfg: cfg}
	c.Cloud = fake.NewCloud(cfg.Config, fake.World{
		Clock: clock{w}, Chance: w.chance.Rand, Boots: c.boots, Ends: c.ends, Observe: c.observe,
	})
	return c
}

// clock is the world's clock, for its clouds.
type clock struct{ *World }

func (c clock) After(d time.Duration, do func()) { c.after(d, do) }

// cloud returns the provider with a name; nil if there is none.
func (w *World) cloud(name string) *cloud {
	for _, c := range w.clouds {
		if c.cfg.Name == name {
			return c
		}
	}
	return nil
}

func (w *World) machine(id string) *fake.Machine {
	for _, c := range w.clouds {
		if m := c.Machine(id); m != nil {
			return m
		}
	}
	return nil
}

// create creates a machine and its agent.
func (c *cloud) create(rec store.Instance, most time.Duration, answer func(provider.Machine, error)) {
	req := machineOf(rec.ID, rec.Group, rec.Zone)
	req.Template.Spot = rec.Spec.Spot
	c.Create(req, most, func(m *fake.Machine) {
		c.w.addAgent(newAgent(c, m, rec.Spec, rec.Template))
	}, answer)
}

func machineOf(id, group, zone string) provider.CreateRequest {
	return provider.CreateRequest{
		Zone: zone, Bootstrap: provider.Bootstrap{Instance: id, Group: group, Shard: shardID},
	}
}

// boots starts a machine's agent some time after the machine has come up, if ever.
func (c *cloud) boots(m *fake.Machine) {
	w, a, boot := c.w, c.w.agents[m.ID], m.Boots
	w.stir(m.ID)
	if boot == 1 {
		a.mute = w.chance.happens(c.cfg.NeverBoots)
	}
	var takes time.Duration
	recorded := w.cfg.Start != nil && boot == 1
	if recorded {
		var ok bool
		takes, ok = w.cfg.Start(m.Group(), w.chance.IntN)
		a.mute = !ok
	}
	flaw := w.bad[a.template]
	if flaw == NeverBoots {
		w.after(time.Second, func() {
			if m.Running() && m.Boots == boot {
				m.Crash("kernel panic")
			}
		})
	}
	if a.mute || flaw.silent() {
		return
	}
	if !recorded {
		takes = w.chance.within(c.cfg.Joins)
	}
	w.after(takes, func() {
		if m.Running() && m.Boots == boot {
			a.start()
		}
	})
}

func (c *cloud) ends(m *fake.Machine, _ fake.Down) (busy bool) {
	if a := c.w.agents[m.ID]; a != nil {
		a.ended()
	}
	return false
}

// observe reports what happened to a machine to the observer.
func (c *cloud) observe(e fake.Event, m *fake.Machine) {
	if e == fake.Removed {
		c.w.dropAgent(m.ID)
	}
	c.w.stir(m.ID)
	if c.w.cfg.Observer.Machine != nil {
		seen := c.describe(m)
		seen.Event = e
		c.w.cfg.Observer.Machine(c.w.Now(), seen)
	}
}

func (c *cloud) describe(m *fake.Machine) Machine {
	return Machine{
		Provider: c.cfg.Name, Instance: m.ID, Group: m.Group(), Zone: m.Zone(), Boot: m.Boots, State: m.State(),
	}
}
