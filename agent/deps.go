package agent

import (
	"context"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/certificate"
	"github.com/leasehold/leasehold/agent/files"
	"github.com/leasehold/leasehold/agent/host"
	"github.com/leasehold/leasehold/agent/notice"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/secrets"
	"github.com/leasehold/leasehold/agent/upgrade"
	"github.com/leasehold/leasehold/agent/workload"
)

// Host measures the machine's load.
type Host interface {
	// Run measures until the context ends.
	Run(ctx context.Context)
	// Latest returns the last measurement without waiting.
	Latest() host.Sample
}

// Workload is the machine's workload. Start, Stop and Release are called one at a time.
type Workload interface {
	// Configure sets the command of the next start. A running workload is not affected.
	Configure(run []string, vars map[string]string)
	// Start starts the workload, or adopts one that an earlier agent left running. State has the
	// error as well. Start starts nothing once the context has ended.
	Start(ctx context.Context) error
	// Stop ends the workload in order, or at once when the context ends, and returns when it has
	// ended.
	Stop(ctx context.Context)
	// Release leaves the workload running, and reports whether the next agent can find it.
	Release() bool
	// StopReleased ends what runs since Release, as Stop does, even if another agent has restarted
	// it.
	StopReleased(ctx context.Context) error
	// Kill ends the workload at once, as a failure of its own would.
	Kill()
	State() workload.State
	// Changed signals that the workload ended by itself.
	Changed() <-chan struct{}
}

// Hook runs the command with which a machine is drained (DRAIN-1).
type Hook interface {
	// Want sets the wanted drain; nil means none. Setting the same again changes nothing. It kills
	// the hook of another drain.
	Want(drain *workload.Drain)
	// Ended returns the token of the last drain whose hook has ended, "" if there was none.
	Ended() string
	// Changed signals that Ended has changed.
	Changed() <-chan struct{}
	// Close kills a running hook, or leaves it to the next agent, and waits. It reports whether all
	// of it has ended.
	Close(keep bool) bool
}

// Notices watches for a notice that the machine will be taken away.
type Notices interface {
	// Run watches until the context ends.
	Run(ctx context.Context)
	// Watch sets the source of notices. Setting the same again changes nothing.
	Watch(spec notice.Spec)
	// Latest returns the present notice without waiting; nil if there is none.
	Latest() *notice.Notice
	// Changed signals that Latest has changed.
	Changed() <-chan struct{}
}

// Certificate is the machine's identity and the authorities it trusts. Only Join blocks.
type Certificate interface {
	// Run writes new certificates to disk until the context ends.
	Run(ctx context.Context)
	// Join gets the first certificate from a replica if there is none yet. The log has the reason
	// of an error that is certificate.ErrNotJoined.
	Join(ctx context.Context, ask func(context.Context, *protocol.JoinRequest) (*protocol.Certificate, error)) error
	// Credentials secure new connections; bare ones present no certificate. A connection of an
	// older generation must not be used any longer.
	Credentials(bare bool) (c credentials.TransportCredentials, generation uint64)
	Status() certificate.Status
	// Changed signals that Status has changed.
	Changed() <-chan struct{}
	// Renewal returns a request for another certificate when it is due, and when to call again;
	// zero: only after a change.
	Renewal(now time.Time) (request []byte, look time.Time)
	Accept(answer *protocol.Certificate)
	SetTrust(trust *protocol.Trust)
	// Tell records a coordinator's time.
	Tell(now *timestamppb.Timestamp)
}

// Deps are the agent's dependencies.
type Deps struct {
	Certificate Certificate
	Logger      *slog.Logger
	Host        Host
	Workload    Workload
	Hook        Hook
	Notices     Notices // from the source that the group names
	Evacuation  Notices // from the machine's operator; its source is fixed
	Fence       Fence
	// Secrets are the secrets of the workload, the hook and the checks; nil: there are none.
	Secrets *secrets.Holder
	// Uptime is a clock that continues while the agent is down or the machine sleeps; nil: the
	// kernel's.
	Uptime func() time.Duration
	Checks Checks
	// Files keeps the group's files; nil: the agent keeps none.
	Files *files.Manager
	// Upgrade takes offers of other versions; nil: the agent takes none.
	Upgrade *upgrade.Manager
	// Dial reaches a replica; nil is TCP from Config.Source.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Crash ends the agent at once without a goodbye; nil: not supported.
	Crash func()
	// Rand returns numbers in [0,1) for jitter; nil: math/rand/v2.
	Rand func() float64
}
