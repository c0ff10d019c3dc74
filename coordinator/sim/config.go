package sim

import (
	"time"

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
	Groups     []store.Group
	Observer   Observer
}

// Provider is one of the providers of a world.
type Provider struct {
	Name  string
	Zones []Zone
	Boot  Range // from a machine's existence to its agent's first word
	Call  Range // how long a call takes
	List  Range // how long a List takes

	Consistency time.Duration // see provider.Capabilities
	CallTimeout time.Duration // likewise

	// Fails and so on are how many of a hundred calls or machines do.
	Fails      int // with or without effect
	Throttled  int
	ListFails  int
	NeverBoots int // machines whose agents never say a word
	// Forgetful providers create a machine again whose ID was deleted before.
	Forgetful bool
}

// Zone is a zone of a provider.
type Zone struct {
	Name string
	Room int // for how many machines; 0: for any number
}

// Range is a length of time between two bounds.
type Range struct{ From, To time.Duration }

func (c Config) withDefaults() Config {
	if c.Shard == "" {
		c.Shard = "default"
	}
	c.Settings = c.Settings.WithDefaults()
	if c.Replicas <= 0 {
		c.Replicas = 2
	}
	if c.SessionTTL <= 0 {
		c.SessionTTL = 5 * time.Second
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
		p.Zones = []Zone{{Name: "a"}, {Name: "b"}}
	}
	for _, r := range []struct {
		set *Range
		def Range
	}{
		{&p.Boot, Range{2 * time.Second, 10 * time.Second}},
		{&p.Call, Range{200 * time.Millisecond, 2 * time.Second}},
		{&p.List, Range{50 * time.Millisecond, 300 * time.Millisecond}},
	} {
		if *r.set == (Range{}) {
			*r.set = r.def
		}
	}
	if p.CallTimeout <= 0 {
		p.CallTimeout = 30 * time.Second
	}
	return p
}
