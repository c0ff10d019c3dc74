package balancer

import (
	"context"
	"encoding/json"
	"time"
)

// Balancer spreads traffic over the members of a shard. Errors have the kinds of package provider
// (PROV-5): capacity where there is no room for a member, credentials, throttled, invalid for
// settings or a configuration that the balancer refuses; everything else is temporary.
type Balancer interface {
	// Capabilities never change while the balancer is in use.
	Capabilities() Capabilities

	// Validate returns what is wrong with a group's use of the balancer, or nil. It asks no target.
	Validate(Use) error

	// Add has every target send new connections to the member, with its weight. A member that is there
	// is changed where it differs: one that drains is ready again. It does not wait for the health
	// that the balancer sees.
	Add(ctx context.Context, shard string, m Member) error

	// Drain has every target begin no new connections to the member; those in use go on. It does not
	// wait for their end. A member that is not there, or has another address, is no error.
	Drain(ctx context.Context, shard string, m Member) error

	// Remove takes the member out of every target, with or without a Drain before: no new connection
	// begins. Connections still in use are cut where the balancer cannot remove a member that has
	// them. A member that is not there, or has another address, is no error.
	Remove(ctx context.Context, shard string, m Member) error

	// List returns what each target has of the shard's members, whatever their state. Recorded are the
	// members that the caller knows of: a balancer without Capabilities.Named finds members by them
	// alone. It is an error if no target answered.
	List(ctx context.Context, shard string, recorded []Member) (Listing, error)
}

// Capabilities are what a balancer can do.
type Capabilities struct {
	// CallTimeout is how long a single call may take before it is given up.
	CallTimeout time.Duration
	// Consistency is how long List may show the state before a call that has returned.
	Consistency time.Duration
	// Named: a member carries its shard and its instance. See "Who is whose" above.
	Named bool
	// Health: the balancer checks its members itself. Without it Status.Health is always unknown.
	Health bool
	// Connections: List counts connections in use.
	Connections bool
	// DrainEnds: List shows that a drain has ended, by no connection in use or by a member that is
	// gone. Without it the caller waits until the time for the drain is over.
	DrainEnds bool
	// Leaves: a member whose drain has ended leaves the list by itself.
	Leaves bool
	// Weights: members may have weights. Without it Validate refuses any.
	Weights bool
	// Settings is the JSON Schema of Use.Settings; nil: none are allowed.
	Settings json.RawMessage
}

// Use is how a group uses a balancer.
type Use struct {
	// Weight is the share of the traffic that a member gets, 1 to 256, relative to the others. 0 is
	// the balancer's own default.
	Weight   int
	Settings map[string]any // as Capabilities.Settings describes them
}

// MaxWeight is the largest weight.
const MaxWeight = 256

// Member is an instance as a balancer is to have it.
type Member struct {
	Instance string
	Address  string // an IP address
	Port     int
	Use
}

// State is what a target does with a member.
type State string

// The states of a member.
const (
	Ready    State = "ready"    // gets new connections, if the target takes it for healthy
	Draining State = "draining" // gets no new connections and keeps those in use
	// Disabled is there and gets no connections: a call was broken off, or an operator took it out by
	// hand. The next Add or Remove brings it to its end.
	Disabled State = "disabled"
)

// Health is what a target's own checks say of a member.
type Health string

// The health of a member.
const (
	HealthUnknown Health = "unknown"  // the target does not check it
	Checking      Health = "checking" // checks have not come to a verdict since it was added
	Up            Health = "up"
	Down          Health = "down"
)

// UnknownConnections says that a target does not know how many connections are in use. 0 says that
// it knows of none, even where it does not count them.
const UnknownConnections = -1

// Status is a member as a target has it.
type Status struct {
	Member
	State       State
	Health      Health
	Why         string // more about Health, in the target's own words
	Connections int    // in use, those that wait for the member included; or UnknownConnections
}

// SecretUser is implemented by a balancer that is configured with secrets of the shard. The
// coordinator says how their values are found before it makes the first call.
type SecretUser interface {
	UseSecrets(lookup func(name string) (string, error))
}
