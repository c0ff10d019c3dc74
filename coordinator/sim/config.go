package sim

import (
	"time"

	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// Config is what a world begins with. What is left out has a default.
type Config struct {
	Seed     uint64
	Shard    string              // its name
	Settings store.ShardSettings // of the shard
	// Replicas is how many coordinators there are, SessionTTL when a dead one is known to be so.
	Replicas   int
	SessionTTL time.Duration
	Providers  []Provider
	Balancers  []Balancer
	// Sources give numbers from outside, by name.
	Sources  map[string]Source
	Groups   []store.Group
	Observer Observer
	// Begins is when the world begins; zero: Epoch. Windows and schedules go by it.
	Begins time.Time
	// Start, if set, is how long the agent of a group's new machine takes until its first word, which
	// never comes if ok is false; else Joins and NeverBoots of the provider say so. Chance returns a
	// number below the one that it is given.
	Start func(group string, chance func(int) int) (takes time.Duration, ok bool)
	// LoadEvery is how often loads are measured: 5s, or more where much time has to go by.
	LoadEvery time.Duration
}

// Source is what a source of numbers from outside answers.
type Source func(w *World) (float64, error)

// Provider is one of the providers of a world.
type Provider struct {
	Name string
	fake.Config
	Joins      fake.Range // from a machine's existence to its agent's first word
	NeverBoots int        // of a hundred machines, whose agents never say a word
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
		c.SessionTTL = 3 * time.Second
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
