package fake

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// Config is how a cloud behaves when nothing is wrong, and how often something is.
type Config struct {
	Zones []Zone        // default a and b
	Call  Range         // how long a call takes
	List  Range         // how long a List takes
	Boot  time.Duration // from Create or Restart to running

	Consistency time.Duration // see provider.Capabilities
	CallTimeout time.Duration // see provider.Capabilities; default 40s

	// Fails and so on are how many of a hundred calls do.
	Fails     int // with or without effect
	Throttled int
	ListFails int
	// Forgetful clouds make a machine again whose ID was deleted before.
	Forgetful bool

	Seed uint64 // of a Provider: decides which calls a Fault with a Chance hits
}

// Zone is a zone of a cloud.
type Zone struct {
	Name string
	Room int // for how many machines; 0: for any number
}

// Zones are zones with room for any number of machines.
func Zones(names ...string) (zones []Zone) {
	for _, name := range names {
		zones = append(zones, Zone{Name: name})
	}
	return zones
}

// Range is a length of time between two bounds.
type Range struct{ From, To time.Duration }

// Between are lengths of time between two bounds.
func Between(from, to time.Duration) Range { return Range{from, to} }

// Exactly is a length of time that is always the same.
func Exactly(d time.Duration) Range { return Range{d, d} }

// Clock is the time in a cloud.
type Clock interface {
	Now() time.Time
	// After has something happen after a time.
	After(d time.Duration, do func())
}

// World is what a cloud is part of. All but Clock may be left out.
type World struct {
	Clock Clock
	// Chance decides what is left open. Without it, everything takes its longest, and a call has its
	// effect at its end.
	Chance *rand.Rand
	// Boots is called when a boot of a machine begins.
	Boots func(*Machine)
	// Ends is called when a boot ends. It reports whether something in the machine needs time for
	// that: then the machine is stopping until Cloud.Ended is called.
	Ends func(*Machine, Down) bool
	// Observe is called when something has become of a machine.
	Observe func(Event, *Machine)
	// Leaving are the machines of a shard that are gone for the cloud, though something of them still
	// runs: Lists show them.
	Leaving func(shard string) []provider.Machine
	// Address is where a machine's workload is reached: instead of Machine.Address.
	Address func(instance string) string
}

// Event is what became of a machine.
type Event string

// What becomes of machines.
const (
	Made      Event = "made"
	Doubled   Event = "doubled" // to be made otherwise, though there is one with its instance's ID
	Restarted Event = "restarted"
	Stopped   Event = "stopped"
	Crashed   Event = "crashed"
	Removed   Event = "removed"
)

// Cloud is a cloud. It is for one goroutine, or for several that share a lock with its clock.
type Cloud struct {
	cfg      Config
	world    World
	machines map[string]*Machine // by instance
	order    []string            // their instances, sorted
	inOrder  []*Machine          // the machines in that order
	last     []provider.Machine  // what a List showed last
	deleted  map[string]bool
	ghosts   map[string]ghost // machines that are gone, and that Lists still show
	zones    []*ZoneState

	faults []*Fault
	hit    *Fault     // that the last call was hit by
	odds   *rand.Rand // of faults
	lie    *lie
	// until when every call fails, is throttled, or takes as long as it may
	fails, throttled, slow time.Time
}

// ZoneState is a zone, and what is wrong with it.
type ZoneState struct {
	Zone
	Full   bool // it has no room
	NoSpot bool // it has no room for spot machines
	Lost   bool // it has no machine that runs: see Lose
}

type ghost struct {
	provider.Machine
	until time.Time
}

// NewCloud makes a cloud without machines.
func NewCloud(cfg Config, w World) *Cloud {
	if len(cfg.Zones) == 0 {
		cfg.Zones = Zones("a", "b")
	}
	if cfg.CallTimeout <= 0 {
		cfg.CallTimeout = 40 * time.Second
	}
	c := &Cloud{
		cfg: cfg, world: w, machines: map[string]*Machine{}, deleted: map[string]bool{}, ghosts: map[string]ghost{},
		odds: rand.New(rand.NewPCG(cfg.Seed, cfg.Seed)),
	}
	for _, z := range cfg.Zones {
		c.zones = append(c.zones, &ZoneState{Zone: z})
	}
	return c
}

// Capabilities are as configured.
func (c *Cloud) Capabilities() provider.Capabilities {
	return provider.Capabilities{
		Zones: c.zoneNames(), Consistency: c.cfg.Consistency, CallTimeout: c.cfg.CallTimeout,
		Boots: true, Crashes: true, Remembers: !c.cfg.Forgetful,
	}
}

func (c *Cloud) zoneNames() (names []string) {
	for _, z := range c.zones {
		names = append(names, z.Name)
	}
	return names
}

// Zone is a zone by its name; nil if there is none.
func (c *Cloud) Zone(name string) *ZoneState {
	for _, z := range c.zones {
		if z.Name == name {
			return z
		}
	}
	return nil
}

// Machine is an instance's machine; nil if there is none.
func (c *Cloud) Machine(instance string) *Machine { return c.machines[instance] }

// Instances are the IDs of all machines, in order.
func (c *Cloud) Instances() []string { return c.order }

func (c *Cloud) now() time.Time { return c.world.Clock.Now() }

func (c *Cloud) observe(e Event, m *Machine) {
	if c.world.Observe != nil {
		c.world.Observe(e, m)
	}
}

// existing is the shard's machine.
func (c *Cloud) existing(shard, instance string) *Machine {
	if m := c.machines[instance]; m != nil && m.shard() == shard {
		return m
	}
	return nil
}

// Create makes a machine. made, if set, is called when it comes to be, before it boots. Like all
// calls it may take no longer than most, if that is not 0, and what is begun happens unless it is
// given up before: then nothing more of it happens but what a Fault has come late.
func (c *Cloud) Create(req provider.CreateRequest, most time.Duration, made func(*Machine),
	answer func(provider.Machine, error),
) (giveUp func()) {
	var seen provider.Machine
	return c.begin(c.fate(CallCreate, req.Bootstrap.Instance, most), func() error {
		m, err := c.create(req, made)
		if err == nil {
			seen = m.seen()
		}
		return err
	}, func(err error) {
		if err != nil {
			seen = provider.Machine{}
		}
		answer(seen, err)
	})
}

// create is the moment in which a machine comes to be.
func (c *Cloud) create(req provider.CreateRequest, made func(*Machine)) (*Machine, error) {
	id, z := req.Bootstrap.Instance, c.Zone(req.Zone)
	switch m := c.machines[id]; {
	case m != nil && m.shard() != req.Bootstrap.Shard:
		return nil, fmt.Errorf("create machine %s: the name is taken by shard %s", id, m.shard())
	case m != nil:
		if m.Zone() != req.Zone || m.Request.Template.Spot != req.Template.Spot {
			c.observe(Doubled, m)
		}
		return m, nil
	case c.deleted[id] && !c.cfg.Forgetful:
		return nil, provider.ErrDeleted
	case z == nil:
		return nil, provider.ErrInvalid
	case z.Full || z.Lost || z.NoSpot && req.Template.Spot || z.Room > 0 && c.in(z.Name) >= z.Room:
		return nil, provider.ErrCapacity
	}
	m := c.add(req)
	if made != nil {
		made(m)
	}
	c.observe(Made, m)
	c.boot(m)
	return m, nil
}

// Plant adds a machine that runs, without a call and without booting it.
func (c *Cloud) Plant(req provider.CreateRequest) *Machine {
	m := c.add(req)
	m.beginBoot()
	return m
}

func (c *Cloud) add(req provider.CreateRequest) *Machine {
	m := &Machine{ID: req.Bootstrap.Instance, Request: req, cloud: c, ref: "ref-" + req.Bootstrap.Instance}
	m.hidden = c.now().Add(c.upTo(c.cfg.Consistency))
	c.machines[m.ID] = m
	delete(c.ghosts, m.ID)
	i, _ := slices.BinarySearch(c.order, m.ID)
	c.order, c.inOrder = slices.Insert(c.order, i, m.ID), slices.Insert(c.inOrder, i, m)
	return m
}

// in is how many machines a zone has.
func (c *Cloud) in(zone string) (n int) {
	for _, m := range c.machines {
		if m.Zone() == zone {
			n++
		}
	}
	return n
}

// Stop has a machine end in order.
func (c *Cloud) Stop(shard, instance string, within, most time.Duration, answer func(error)) (giveUp func()) {
	o := c.fate(CallStop, instance, most)
	if m := c.existing(shard, instance); m != nil && !o.without && c.world.Chance != nil {
		if m.Running() {
			o.takes += c.upTo(min(within, 3*time.Second))
		}
		o.effect = o.takes
	}
	return c.begin(o, func() error {
		if m := c.existing(shard, instance); m != nil {
			c.end(m, provider.StateStopped, "", Down{By: CallStop, Within: within})
		}
		return nil
	}, answer)
}

// Delete removes a machine.
func (c *Cloud) Delete(shard, instance string, most time.Duration, answer func(error)) (giveUp func()) {
	return c.begin(c.fate(CallDelete, instance, most), func() error {
		m := c.machines[instance]
		if m != nil && m.shard() != shard {
			return nil
		}
		c.deleted[instance] = true
		if m != nil {
			if lag := c.upTo(c.cfg.Consistency); lag > 0 {
				c.ghosts[instance] = ghost{m.seen(), c.now().Add(lag)}
			}
			c.remove(m, Down{By: CallDelete})
		}
		return nil
	}, answer)
}

// Vanish removes a machine without a call. It reports whether there was one.
func (c *Cloud) Vanish(instance string) bool {
	m := c.machines[instance]
	if m == nil {
		return false
	}
	c.deleted[instance] = true
	c.remove(m, Down{})
	return true
}

// remove is the moment in which a machine ceases to be.
func (c *Cloud) remove(m *Machine, how Down) {
	c.end(m, provider.StateStopped, "", how)
	delete(c.machines, m.ID)
	if i, there := slices.BinarySearch(c.order, m.ID); there {
		c.order, c.inOrder = slices.Delete(c.order, i, i+1), slices.Delete(c.inOrder, i, i+1)
	}
	m.gone = true
	c.observe(Removed, m)
}

// Restart boots a machine again, unless it has another boot than the one named by then.
func (c *Cloud) Restart(shard, instance, boot string, most time.Duration, answer func(error)) (giveUp func()) {
	return c.begin(c.fate(CallRestart, instance, most), func() error {
		m := c.existing(shard, instance)
		if m == nil {
			return provider.ErrNotFound
		}
		if boot == "" || boot == m.BootID() {
			c.end(m, provider.StateStopping, "", Down{By: CallRestart})
			c.boot(m)
			c.observe(Restarted, m)
		}
		return nil
	}, answer)
}

// Listing is the answer of a List, and how long it takes to arrive.
type Listing struct {
	Machines []provider.Machine // not to be changed
	Err      error
	Takes    time.Duration
	Never    bool // it does not arrive
	Lie      LieKind
}

// List returns the shard's machines as they are now, unless it lies.
func (c *Cloud) List(shard string) Listing {
	l := Listing{Takes: c.within(c.cfg.List)}
	if c.now().Before(c.slow) {
		l.Takes = c.upTo(c.cfg.CallTimeout)
	}
	f := c.take(CallList, "")
	switch {
	case f != nil:
		l.Takes, l.Err, l.Never = l.Takes+f.Delay, f.Err, f.Hang
	case c.now().Before(c.throttled):
		l.Err = provider.ThrottledFor(time.Second + c.upTo(3*time.Second))
	case c.now().Before(c.fails) || c.happens(c.cfg.ListFails):
		l.Err = ErrTrouble
	}
	if l.Err != nil {
		return l
	}
	l.Machines = c.listed(shard)
	c.falsify(&l, shard)
	if f != nil && f.Answer != nil {
		l.Machines = f.Answer(slices.Clone(l.Machines))
	}
	return l
}

// listed is the truth, as far as the cloud's consistency goes.
func (c *Cloud) listed(shard string) []provider.Machine {
	now := c.now()
	if c.asListed(shard, now) {
		return c.last
	}
	out := make([]provider.Machine, 0, len(c.order))
	for _, m := range c.inOrder {
		if m.shard() == shard && !now.Before(m.hidden) {
			out = append(out, m.seen())
		}
	}
	there := len(out)
	for id, g := range c.ghosts {
		if !now.Before(g.until) {
			delete(c.ghosts, id)
		} else if g.Shard == shard {
			out = append(out, g.Machine)
		}
	}
	if c.world.Leaving != nil {
		out = append(out, c.world.Leaving(shard)...)
	}
	if len(out) > there {
		slices.SortFunc(out, func(a, b provider.Machine) int { return strings.Compare(a.Instance, b.Instance) })
	}
	c.last = slices.Clip(out)
	return c.last
}

// asListed reports whether nothing has changed since the last List.
func (c *Cloud) asListed(shard string, now time.Time) bool {
	if len(c.last) == 0 || len(c.last) != len(c.inOrder) || len(c.ghosts) > 0 || c.world.Leaving != nil ||
		c.world.Address != nil {
		return false
	}
	for i, m := range c.inOrder {
		was := &c.last[i]
		if now.Before(m.hidden) || m.ID != was.Instance || m.State() != was.State || m.bootID != was.BootID ||
			m.Address != was.Address || m.ref != was.Ref || m.why != was.Why || m.shard() != shard {
			return false
		}
	}
	return true
}

// Lose has all machines of a zone crash, and none be made there until its Lost is reset.
func (c *Cloud) Lose(z *ZoneState) {
	z.Lost = true
	for _, id := range slices.Clone(c.order) {
		if m := c.machines[id]; m.Zone() == z.Name {
			m.Crash("its zone is lost")
		}
	}
}
