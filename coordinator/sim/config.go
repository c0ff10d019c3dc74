package sim

import (
	"time"

	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// Config is the initial state of a world. Everything has a default.
type Config struct {
	Seed     uint64
	Shard    string              // the shard's name
	Settings store.ShardSettings // the shard's settings
	// Replicas is the number of coordinators, SessionTTL the time after which a dead one is
	// detected.
	Replicas   int
	SessionTTL time.Duration
	Providers  []Provider
	Balancers  []Balancer
	// Sources supply external metrics, by name.
	Sources  map[string]Source
	PerGroup bool // their numbers depend on the group
	Groups   []store.Group
	Observer Observer
	// Begins is the time at which the world begins; zero: Epoch. It matters to windows and
	// schedules.
	Begins time.Time
	// Start, if set, returns how long the agent of a group's new machine takes to connect, which it
	// never does if ok is false; else Joins and NeverBoots of the provider decide. chance returns a
	// random number below its argument.
	Start func(group string, chance func(int) int) (takes time.Duration, ok bool)
	// LoadEvery is the interval at which loads are measured: 5s by default, more for long
	// simulations. LoadSteady, if set, is the interval for a group whose instances have been the
	// same for a while.
	LoadEvery, LoadSteady time.Duration
	// Plain worlds take no shortcuts: every plan is made from nothing, every status is encoded, and
	// the leader sees every report. It makes no other difference.
	Plain bool
}

// Source returns the answer of a source of external metrics. The group is empty unless
// Config.PerGroup is set.
type Source func(w *World, group string) (float64, error)

// Provider configures one of the providers of a world.
type Provider struct {
	Name string
	fake.Config
	Joins      fake.Range // from a machine's existence to its agent's first connection
	NeverBoots int        // percentage of machines whose agents never connect
}

func (c Config) withDefaults() Config {
	if c.Shard == "" {
		c.Shard = "default"
	}
	if c.Begins.IsZero() {
		c.Begins = Epoch
	}
	if c.LoadEvery <= 0 {
		c.LoadEvery = loadSample
	}
	c.Settings = c.Settings.WithDefaults()
	if c.Replicas <= 0 {
		c.Replicas = 2
	}
	if c.SessionTTL <= 0 {
		c.SessionTTL = store.DefaultSessionTTL
	}
	if len(c.Providers) == 0 {
		c.Providers = []Provider{{Name: "cloud"}}
	}
	providers := make([]Provider, len(c.Providers))
	for i, p := range c.Providers {
		providers[i] = p.withDefaults()
	}
	c.Providers = providers
	return c
}

func (p Provider) withDefaults() Provider {
	if len(p.Zones) == 0 {
		p.Zones = fake.Zones("a", "b")
	}
	for _, r := range []struct {
		set *fake.Range
		def fake.Range
	}{
		{&p.Joins, fake.Between(2*time.Second, 10*time.Second)},
		{&p.Call, fake.Between(200*time.Millisecond, 2*time.Second)},
		{&p.List, fake.Between(50*time.Millisecond, 300*time.Millisecond)},
	} {
		if *r.set == (fake.Range{}) {
			*r.set = r.def
		}
	}
	if p.CallTimeout <= 0 {
		p.CallTimeout = 30 * time.Second
	}
	return p
}
