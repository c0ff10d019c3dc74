package scenario

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// Scenario is what is to happen, to what world, and what is expected of it.
type Scenario struct {
	Seed     uint64
	Length   time.Duration
	Provider sim.Provider // how every provider of the groups is, but for its name
	Settings store.ShardSettings
	Replicas int
	Session  time.Duration // of a replica
	Events   []Event       // in order
	Expect   Expect

	groups    []store.Group // that are there from the beginning
	providers []string      // of all groups that there are at any time
}

// Event is one thing that happens.
type Event struct {
	At   time.Duration // from the beginning
	Kind string
	What string        // in words
	For  time.Duration // how long it lasts; 0: it does not end by itself, or at once
	play func(*stage) string
}

// Expect is what should come of it. Nil is not asked for.
type Expect struct {
	Availability *int           // percent at worst
	Serving      *int           // likewise, of machines that serve though their agents are not heard
	Created      *int           // machines at most
	AtOnce       *int           // likewise
	Storms       *int           // at most
	Converged    *time.Duration // after each event at most
	Whole        bool           // at the end all is as wanted
}

// Groups are those that are there from the beginning.
func (s *Scenario) Groups() []store.Group { return s.groups }

// Until has the scenario end at another time. What would happen later does not; it says how many
// events that are.
func (s *Scenario) Until(length time.Duration) (dropped int) {
	s.Length = length
	for i, e := range s.Events {
		if e.At >= length {
			dropped = len(s.Events) - i
			s.Events = s.Events[:i]
			break
		}
	}
	return dropped
}
