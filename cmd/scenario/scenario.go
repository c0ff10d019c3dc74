package scenario

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// Scenario is a world, what happens to it, and what is expected.
type Scenario struct {
	Seed     uint64
	Length   time.Duration
	Provider sim.Provider // configuration of every provider of the groups, except its name
	Settings store.ShardSettings
	Replicas int
	Session  time.Duration // session TTL of a replica
	Events   []Event       // in order
	Expect   Expect

	groups    []store.Group // groups that exist from the beginning
	all       []store.Group // all groups that exist at any time
	providers []string      // names, of all groups that exist at any time
	sources   []string      // external metrics that these groups name
}

// Event is one event of a scenario.
type Event struct {
	At   time.Duration // since the beginning
	Kind string
	what text
	For  time.Duration // how long it lasts; 0: it ends at once, or never by itself
	play func(*stage) string
}

// Expect are the expectations; a nil one is not checked.
type Expect struct {
	Availability *int           // least percentage
	Serving      *int           // the same for machines that serve, even if their agents are not connected
	Created      *int           // most machines
	AtOnce       *int           // most machines
	Storms       *int           // most
	Over         *int           // most instances
	Changes      *int           // most changes of size
	Turns        *int           // most changes of direction
	Below        *time.Duration // longest in total
	Converged    *time.Duration // longest after each event
	Whole        bool           // everything is complete at the end
}

// Groups returns the groups that exist from the beginning.
func (s *Scenario) Groups() []store.Group { return s.groups }

// Until ends the scenario at another time. It returns how many events are later and do not happen.
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
