package provider

import (
	"context"
	"encoding/json"
	"time"
)

// Provider makes and removes machines.
type Provider interface {
	// Capabilities never change while the provider is in use.
	Capabilities() Capabilities

	// Validate returns what is wrong with the provider's part of a template, or nil. It does no I/O:
	// leaders call it while they decide.
	Validate(Template) error

	// Create makes the machine for an instance, hands it its bootstrap document and returns once
	// the machine exists or is certain to (it need not have booted: StateStarting). Errors as in
	// Kind; after one that is temporary the machine may or may not exist.
	Create(ctx context.Context, req CreateRequest) (Machine, error)

	// Stop asks the machine to end in order, and makes it end after the timeout. It returns when
	// the machine has stopped. A machine that has stopped or is gone is no error.
	Stop(ctx context.Context, shard, instance string, timeout time.Duration) error

	// Delete removes the machine and all that belongs to it, stopping it the hard way if need be.
	// A machine that is gone is no error.
	Delete(ctx context.Context, shard, instance string) error

	// Restart ends a boot of an existing machine and boots it again, with a new boot ID. The boot
	// to be ended is named as List names it: a machine that has another one by now has been
	// restarted already, and is left alone without an error. So a call that comes late or twice
	// ends no second boot (SAFE-8). "" is whatever boot there is; so is any name to a provider
	// without Capabilities.Boots. ErrNotFound if the machine is gone.
	Restart(ctx context.Context, shard, instance, boot string) error

	// List returns every machine tagged with the shard's ID, in any state, or an error: never a
	// part. Reading all pages, and waiting out a throttle between them, is the provider's work.
	List(ctx context.Context, shard string) ([]Machine, error)
}

// Asker is implemented by a provider that has to ask outside whether a template is right.
type Asker interface {
	// Ask returns ErrInvalid if a template that passes Validate is refused, nil if it is not, and any
	// other error if that could not be found out.
	Ask(ctx context.Context, t Template) error
}

// Console is implemented by a provider that keeps what its machines write to their consoles.
type Console interface {
	// Console returns the end of what the machine has written so far, over all its boots and
	// whatever its state, at most ConsoleTail bytes. It changes nothing. ErrNotFound if the machine
	// is gone.
	Console(ctx context.Context, shard, instance string) (tail []byte, err error)
}

// ConsoleTail is how many bytes of a machine's console output are kept.
const ConsoleTail = 64 << 10

// Capabilities are what a provider can do, and how.
type Capabilities struct {
	// Zones in which machines can be made, in no particular order; never empty.
	Zones []string
	// Consistency is how long a machine whose Create has returned may be missing from List, and how
	// long one whose Delete has returned may still be in it.
	Consistency time.Duration
	// CallTimeout is how long a single call may take before it is given up.
	CallTimeout time.Duration

	// Boots: List names each machine's present boot, and Restart ends no other one.
	Boots bool
	// Crashes: a machine that ended by itself is listed as crashed or failed, never as stopped.
	Crashes bool
	// Remembers: a Create after the Delete of an instance fails with ErrDeleted. Without it a Create
	// that arrives late makes a machine again, which is found without a record and removed (REC-8).
	Remembers bool
	// Copies: neither names nor tokens are unique there, so that calls which overlap, or one whose
	// answer was lost, may make several machines for one instance (PROV-4). List shows each of them
	// with the call that made it, and the provider implements CopyRemover. Delete removes them all.
	Copies bool
	// Asks: the provider implements Asker, and wants to be asked about each new template.
	Asks bool
	// Site names where the machines are, if only coordinators at the same site see them: a host, a
	// directory. Lists from another site prove nothing of them. "": all see the same machines.
	Site string
	// MaxBootstrap is the size of the largest bootstrap document in bytes; 0 is no limit.
	MaxBootstrap int
	// Settings is the JSON Schema of Template.Settings; nil: Validate alone knows them.
	Settings json.RawMessage
}

// Template is the part of a group's template that is the provider's business.
type Template struct {
	InstanceTypes []string // in order of preference; the next is tried where there is no room for one
	Zones         []string
	Spot          bool              // the provider may take the machine away, for a lower price
	Tags          map[string]string // the user's, beside those that name shard, group and instance
	Settings      map[string]any    // as Capabilities.Settings describes them
}

// CreateRequest is everything needed to make a machine. Two requests for one instance differ only
// in the call, the join token, the coordinators' addresses, their agents and the certificate
// authority. After an error that says that there was no room or no quota, the next one may name
// another zone, and no Spot machine.
type CreateRequest struct {
	Template  Template
	Zone      string
	Bootstrap Bootstrap // names the instance and the shard
	// Agent is where a machine whose image has no agent fetches it: see package userdata.
	Agent AgentSource
	// Call tells this call from others for the instance. Only a provider with Capabilities.Copies
	// needs it: it is a tag of the machine there.
	Call string
}

// AgentSource is where coordinators offer the agent program. The zero value: nowhere.
type AgentSource struct {
	Addresses []string          // of coordinators, HOST:PORT, by HTTPS
	Host      string            // the name in their certificates, of the authority in the bootstrap document
	SHA256    map[string]string // of the program, by architecture as Go names it
}

// State is a machine's state as its provider reports it.
type State string

// The states of a machine.
const (
	StateStarting State = "starting" // being made, or booting
	StateRunning  State = "running"
	StateStopping State = "stopping" // on its way down
	StateStopped  State = "stopped"  // ended in order
	StateCrashed  State = "crashed"  // ended otherwise
	StateFailed   State = "failed"   // could not be made or started
	// StateUnknown is a machine that exists and of which the provider cannot tell whether it runs,
	// because its host is out of reach for example. It proves nothing.
	StateUnknown State = "unknown"
)

// Down reports whether the provider says that a machine in this state is not running.
func (s State) Down() bool { return s == StateStopped || s == StateCrashed || s == StateFailed }

// Machine is a machine as its provider sees it.
type Machine struct {
	Instance string // the tag
	Shard    string // the tag
	Group    string // the tag; for people
	Ref      string // the provider's own name of the machine
	State    State
	Why      string // more about State, for people: an exit code, an error
	Zone     string
	Address  string // where its workload is reached, if the provider knows
	BootID   string // of the machine's present boot, if the provider knows
	Call     string // the tag, where there may be several for one instance
	// Foreign: the provider knows that it did not make the machine, or not under this name. It is a
	// copy with the tags of another one. Calls do not touch it.
	Foreign bool
	// Unsettled: a List a second later may tell more of the State. The leader lists again soon.
	Unsettled bool
}

// CopyRemover is implemented by a provider with Capabilities.Copies.
type CopyRemover interface {
	// RemoveCopy removes the one machine of an instance that has this Ref. If it is gone, is not the
	// instance's, or was not made by that call, nothing is done.
	RemoveCopy(ctx context.Context, shard, instance, ref, call string) error
}

// SecretUser is implemented by a provider that is configured with secrets of the shard. The
// coordinator says how their values are found before it makes the first call.
type SecretUser interface {
	UseSecrets(lookup func(name string) (string, error))
}
