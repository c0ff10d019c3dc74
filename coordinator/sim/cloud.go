package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

var (
	errTimeout = errors.New("the call timed out")
	errTrouble = errors.New("the provider has trouble")
)

// cloud is a provider.
type cloud struct {
	w        *World
	cfg      Provider
	machines map[string]*machine
	order    []string        // the machines' IDs, sorted
	deleted  map[string]bool // IDs that were deleted
	zones    []*zone

	failsUntil    time.Duration // every call fails before
	throttleUntil time.Duration // every call is throttled before
	slowUntil     time.Duration // every call takes as long as it may before
	lie           Lie           // what Lists say until lieUntil
	lieUntil      time.Duration
	past          []provider.Machine // what a stale List says
}

// zone is a zone of a provider.
type zone struct {
	name string
	room int // for how many machines; 0: for any number
	full bool
	dry  bool // it has no spot machines
	lost bool
}

func newCloud(w *World, cfg Provider) *cloud {
	c := &cloud{w: w, cfg: cfg, machines: map[string]*machine{}, deleted: map[string]bool{}}
	for _, z := range cfg.Zones {
		c.zones = append(c.zones, &zone{name: z.Name, room: z.Room})
	}
	return c
}

// cloud is the provider with a name; nil if there is none.
func (w *World) cloud(name string) *cloud {
	for _, c := range w.clouds {
		if c.cfg.Name == name {
			return c
		}
	}
	return nil
}

func (c *cloud) capabilities() provider.Capabilities {
	var zones []string
	for _, z := range c.zones {
		zones = append(zones, z.name)
	}
	return provider.Capabilities{Zones: zones, Consistency: c.cfg.Consistency, CallTimeout: c.cfg.CallTimeout}
}

func (c *cloud) zone(name string) *zone {
	for _, z := range c.zones {
		if z.name == name {
			return z
		}
	}
	return nil
}

// outcome is what fate has in store for a call.
type outcome struct {
	takes    time.Duration // until its answer
	effect   time.Duration // until it does what it does
	err      error
	without  bool // it has no effect at all
	timedOut bool
}

// fate draws the outcome of a call that may take no longer than a time.
func (c *cloud) fate(most time.Duration) outcome {
	ch := c.w.chance
	o := outcome{takes: ch.within(c.cfg.Call)}
	switch {
	case c.w.clock < c.throttleUntil || ch.happens(c.cfg.Throttled):
		o.err, o.without = provider.ThrottledFor(time.Second+ch.upTo(5*time.Second)), true
	case c.w.clock < c.failsUntil || ch.happens(c.cfg.Fails):
		o.err, o.without = errTrouble, ch.happens(50)
	}
	if c.w.clock < c.slowUntil {
		o.takes = most/2 + ch.upTo(most)
	}
	o.effect = ch.upTo(o.takes)
	if o.takes >= most {
		o.takes, o.err, o.timedOut = most, errTimeout, true
		o.effect = min(o.effect, most) // what it began may happen to the last moment
	}
	return o
}

// create makes a machine. What is begun happens, whether or not the caller still waits.
func (c *cloud) create(rec store.Instance, deadline time.Duration, answer func(provider.Machine, error)) {
	o := c.fate(deadline - c.w.clock)
	if o.without {
		c.w.after(o.takes, func() { answer(provider.Machine{}, o.err) })
		return
	}
	c.w.after(o.effect, func() {
		m, err := c.make(rec)
		if err == nil {
			err = o.err
		} else if o.timedOut {
			err = o.err
		}
		var seen provider.Machine
		if err == nil {
			seen = m.seen()
		}
		c.w.after(o.takes-o.effect, func() { answer(seen, err) })
	})
}

// make is the moment in which a machine comes to be.
func (c *cloud) make(rec store.Instance) (*machine, error) {
	if m := c.machines[rec.ID]; m != nil && m.zone == rec.Zone && m.spec.Spot == rec.Spec.Spot {
		return m, nil
	} else if m != nil {
		c.w.tellMachine(MachineDoubled, m)
		return m, nil
	}
	if c.deleted[rec.ID] && !c.cfg.Forgetful {
		return nil, provider.ErrDeleted
	}
	z := c.zone(rec.Zone)
	if z == nil {
		return nil, provider.ErrInvalid
	}
	if z.full || z.lost || z.dry && rec.Spec.Spot || z.room > 0 && c.in(z.name) >= z.room {
		return nil, provider.ErrCapacity
	}
	m := &machine{
		cloud: c, id: rec.ID, group: rec.Group, zone: rec.Zone, spec: rec.Spec, template: rec.Template,
	}
	c.add(m)
	c.w.tellMachine(MachineMade, m)
	m.boot()
	return m, nil
}

func (c *cloud) add(m *machine) {
	c.machines[m.id] = m
	i, _ := slices.BinarySearch(c.order, m.id)
	c.order = slices.Insert(c.order, i, m.id)
	m.hidden = c.w.clock + c.w.chance.upTo(c.cfg.Consistency)
}

// in is how many machines a zone has.
func (c *cloud) in(zone string) int {
	n := 0
	for _, m := range c.machines {
		if m.zone == zone {
			n++
		}
	}
	return n
}

// stop has a machine end in order.
func (c *cloud) stop(id string, timeout time.Duration, answer func(provider.Machine, error)) {
	o := c.fate(c.cfg.CallTimeout + timeout)
	if m := c.machines[id]; m != nil && !o.without {
		o.takes += m.stopTakes(timeout)
		o.effect = o.takes
	}
	c.w.after(o.effect, func() {
		if m := c.machines[id]; m != nil && !o.without {
			m.end(provider.StateStopped, "")
		}
		c.w.after(o.takes-o.effect, func() { answer(provider.Machine{}, o.err) })
	})
}

func (c *cloud) delete(id string, answer func(provider.Machine, error)) {
	o := c.fate(c.cfg.CallTimeout)
	c.w.after(o.effect, func() {
		if !o.without {
			c.deleted[id] = true
			c.remove(id)
		}
		c.w.after(o.takes-o.effect, func() { answer(provider.Machine{}, o.err) })
	})
}

// remove is the moment in which a machine ceases to be.
func (c *cloud) remove(id string) {
	m := c.machines[id]
	if m == nil {
		return
	}
	m.end(provider.StateStopped, "")
	delete(c.machines, id)
	if i, there := slices.BinarySearch(c.order, id); there {
		c.order = slices.Delete(c.order, i, i+1)
	}
	delete(c.w.agents, id)
	m.gone = true
	c.w.tellMachine(MachineRemoved, m)
}

// restart reboots a machine, unless it has another boot than the one named by then.
func (c *cloud) restart(id, boot string, answer func(provider.Machine, error)) {
	o := c.fate(c.cfg.CallTimeout)
	c.w.after(o.effect, func() {
		err := o.err
		if m := c.machines[id]; m == nil && err == nil {
			err = provider.ErrNotFound
		} else if m != nil && !o.without && (boot == "" || m.bootID() == boot) {
			m.reboot()
		}
		c.w.after(o.takes-o.effect, func() { answer(provider.Machine{}, err) })
	})
}
