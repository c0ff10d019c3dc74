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
	// Latest returns the last measurement, at once.
	Latest() host.Sample
}

// Workload is what the machine exists for. Start, Stop and Release are called one at a time.
type Workload interface {
	// Configure sets what the next start runs. What runs goes on as it is.
	Configure(run []string, vars map[string]string)
	// Start starts the workload, or takes over one that an earlier agent left running. State has
	// the error as well. Nothing is started once the context has ended.
	Start(ctx context.Context) error
	// Stop ends it in order, or at once when the context ends, and returns when it has ended.
	Stop(ctx context.Context)
	// Release leaves it running, and reports whether the next agent finds it.
	Release() bool
	// StopReleased ends what runs since Release, as Stop does, even if another agent has restarted it.
	StopReleased(ctx context.Context) error
	// Kill ends it at once, as a failure of its own would.
	Kill()
	State() workload.State
	// Changed signals that it ended by itself.
	Changed() <-chan struct{}
}

// Hook runs what a machine has to do before it is left (DRAIN-1).
type Hook interface {
	// Want says which drain is wanted, nil if none is, and may be told the same again. A hook of
	// another drain is killed.
	Want(drain *workload.Drain)
	// Ended is the token of the last drain whose hook has ended, "" if there was none.
	Ended() string
	// Changed signals that Ended is new.
	Changed() <-chan struct{}
	// Close kills a hook that runs, or leaves it to the next agent, and waits. It reports whether all
	// of it has ended.
	Close(keep bool) bool
}

// Notices is where the word comes from that the machine will be taken away.
type Notices interface {
	// Run watches until the context ends.
	Run(ctx context.Context)
	// Watch says where to look from now on, and may be told the same again.
	Watch(spec notice.Spec)
	// Latest is the notice that holds now, at once; nil if there is none.
	Latest() *notice.Notice
	// Changed signals that Latest is new.
	Changed() <-chan struct{}
}

// Certificate is the machine's identity and the authorities it trusts. Only Join blocks.
type Certificate interface {
	// Run keeps what is new until the context ends.
	Run(ctx context.Context)
	// Join gets the first certificate from a replica, if there is none yet. An error that is
	// certificate.ErrNotJoined is in the log.
	Join(ctx context.Context, ask func(context.Context, *protocol.JoinRequest) (*protocol.Certificate, error)) error
	// Credentials secure new connections; bare ones show no certificate. A connection of an older
	// generation is not to be used any more.
	Credentials(bare bool) (c credentials.TransportCredentials, generation uint64)
	Status() certificate.Status
	// Changed signals that Status is new.
	Changed() <-chan struct{}
	// Renewal returns a request for another certificate when it is time, and says when to look
	// again; zero if only a change matters.
	Renewal(now time.Time) (request []byte, look time.Time)
	Accept(answer *protocol.Certificate)
	SetTrust(trust *protocol.Trust)
	// Tell takes over a coordinator's time.
	Tell(now *timestamppb.Timestamp)
}

// Deps are what the agent works with.
type Deps struct {
	Certificate Certificate
	Logger      *slog.Logger
	Host        Host
	Workload    Workload
	Hook        Hook
	Notices     Notices // from the source that the group names
	Evacuation  Notices // from the machine's operator; its source is fixed
	Fence       Fence
	// Secrets are those that the workload, the hook and the checks take theirs from; nil: there are
	// none.
	Secrets *secrets.Holder
	// Uptime is a clock that goes on beside the agent; nil is the kernel's.
	Uptime func() time.Duration
	Checks Checks
	// Files keeps the files of the group; nil: none can be kept.
	Files *files.Manager
	// Upgrade takes offers of other versions; nil: it takes none.
	Upgrade *upgrade.Manager
	// Dial reaches a replica; nil is TCP from Config.Source.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Crash ends the agent at once, without a goodbye; nil: it cannot be.
	Crash func()
	// Rand gives numbers in [0,1) for jitter; nil is a good source.
	Rand func() float64
}
