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

	// Add has every target send new connections to the member, with its weight. If the target has
	// the member already, differences are corrected: a draining member becomes ready again. Add
	// does not wait for the balancer's health checks.
	Add(ctx context.Context, shard string, m Member) error

	// Drain has every target send no new connections to the member; connections in use continue. It
	// does not wait for their end. A missing member, or one with another address, is no error.
	Drain(ctx context.Context, shard string, m Member) error

	// Remove takes the member out of every target, with or without a Drain before: no new
	// connection begins. If the balancer cannot remove a member that has connections, they are cut.
	// A missing member, or one with another address, is no error.
	Remove(ctx context.Context, shard string, m Member) error

	// List returns each target's members of the shard, in any state. Recorded are the members that
	// the caller knows of: a balancer without Capabilities.Named finds members only by them. It is
	// an error if no target answered.
	List(ctx context.Context, shard string, recorded []Member) (Listing, error)
}

// Capabilities are a balancer's abilities and limits.
type Capabilities struct {
	// CallTimeout is how long a single call may take before it is given up.
	CallTimeout time.Duration
	// Consistency is how long List may show the state before a call that has returned.
	Consistency time.Duration
	// Named: a member carries its shard and its instance. See "Who is whose" above.
	Named bool
	// Health: the balancer checks its members. Without it Status.Health is always unknown.
	Health bool
	// Connections: List counts connections in use.
	Connections bool
	// DrainEnds: List shows the end of a drain, either by no connection in use or by the member's
	// absence. Without it the caller waits for the whole drain time.
	DrainEnds bool
	// Leaves: a member disappears from List by itself when its drain has ended.
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

// Member is an instance's wanted entry in a balancer.
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
	Ready    State = "ready"    // gets new connections, unless the target's checks fail
	Draining State = "draining" // gets no new connections and keeps the existing ones
	// Disabled exists and gets no connections: a call was interrupted, or an operator disabled it
	// by hand. The next Add or Remove completes it.
	Disabled State = "disabled"
)

// Health is the result of a target's own checks of a member.
type Health string

// The health of a member.
const (
	HealthUnknown Health = "unknown"  // the target does not check it
	Checking      Health = "checking" // no verdict since it was added
	Up            Health = "up"
	Down          Health = "down"
)

// UnknownConnections means that the target does not know the number of connections in use. 0 means
// that there are none, even where the target does not count them.
const UnknownConnections = -1

// Status is a target's entry of a member.
type Status struct {
	Member
	State       State
	Health      Health
	Why         string // more about Health, in the target's own words
	Connections int    // in use, including those that wait for the member; or UnknownConnections
	// DefaultWeight is the weight of the member if the caller wants none; 0: any.
	DefaultWeight int
}

// SecretUser is implemented by a balancer whose configuration names secrets of the shard. The
// coordinator provides the lookup of their values before the first call.
type SecretUser interface {
	UseSecrets(lookup func(name string) (string, error))
}
