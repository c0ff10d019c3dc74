package session

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
)

// Stream numbers the streams of this run of the agent, in ascending order.
type Stream uint64

// Memory is the state that must outlive the agent.
type Memory struct {
	Epoch    uint64   // of the last stream that was opened
	Lease    int64    // the last lease known, 0 if none
	Replicas []string // the last list of replicas received from a replica
	// Condemned describes the record that ended this instance, as a replica reported it; zero:
	// none. Only a welcome clears it.
	Condemned Condemnation
}

// Condemnation is the evidence on which an agent stops its workload: a record that a replica read
// in etcd (SAFE-14).
type Condemnation struct {
	Revision int64  // of the record
	Phase    string // protocol.PhaseDeleting, or protocol.PhaseGone
}

// Holds reports whether this is evidence. A replica of an earlier release names no record: an
// instance that it calls retired may merely have none.
func (c Condemnation) Holds() bool {
	return c.Revision > 0 && (c.Phase == protocol.PhaseDeleting || c.Phase == protocol.PhaseGone)
}

// Config is an agent's initial state.
type Config struct {
	Bootstrap      []string // replicas known when the machine was created; the last resort
	Memory         Memory   // of the run before
	ReportInterval time.Duration
	ReconnectMin   time.Duration
	ReconnectMax   time.Duration
	AnswerTimeout  time.Duration  // time for a replica from dial to welcome; 0: protocol.AnswerTimeout
	Renewed        time.Time      // when the previous run's lease began, if known
	LeaseTTL       time.Duration  // duration of that lease
	Rand           func() float64 // in [0,1): jitter, and the order of replicas
}

// thawGrace is how long a stream may take to answer once a frozen agent runs again. Answers to
// earlier messages may still wait in its socket, so the time that the agent was frozen does not
// count against the stream.
const thawGrace = time.Second

// line is the session's view of one stream.
type line struct {
	stream  Stream
	address string
	opened  time.Time
	due     time.Time // deadline for the welcome
	waiting bool      // the replica has asked us to wait for our turn
	moving  bool      // the replica has asked us to leave
	proved  bool      // it acknowledged at least one report

	sequence uint64
	unacked  []sent    // oldest first
	overdue  time.Time // when the oldest answer is overdue; zero if none is awaited
	heard    time.Time // when the last message arrived
}

// booking is the time at which a replica without room has asked us to return; the soonest, if there
// are several.
type booking struct {
	address string
	at      time.Time // zero: there is none
}

type sent struct {
	sequence uint64
	at       time.Time
}

// maxUnacked bounds what is remembered of a silent stream. The newer reports are dropped, so an
// acknowledgement counts from an earlier time than necessary, never from a later one.
const maxUnacked = 64

// Session is the state of an agent's session. It is not safe for concurrent use.
type Session struct {
	cfg      Config
	memory   Memory
	replicas rotation
	streams  Stream // the highest stream number

	serving  *line
	trying   *line
	restless bool // the serving stream renews nothing: look for a better one

	booking booking

	unknown  int  // how often a replica said that there is no record, since the last welcome
	failures int  // in a row, since the last acknowledgement
	stale    bool // the last refusal was for a stale epoch; a second one in a row is a failure
	tryAt    time.Time
	reportAt time.Time

	renewed time.Time // the lease counts from here
	ttl     time.Duration

	wake time.Time
	left bool
}

// New returns a Session without a stream, whose first attempt is due at once.
func New(cfg Config) *Session {
	set := func(to *time.Duration, otherwise time.Duration) {
		if *to <= 0 {
			*to = otherwise
		}
	}
	set(&cfg.ReportInterval, 5*time.Second)
	set(&cfg.ReconnectMin, time.Second)
	set(&cfg.ReconnectMax, 30*time.Second)
	set(&cfg.AnswerTimeout, protocol.AnswerTimeout)
	c := &Session{cfg: cfg, memory: cfg.Memory}
	if cfg.LeaseTTL > 0 {
		c.renewed, c.ttl = cfg.Renewed, cfg.LeaseTTL
	}
	c.memory.Replicas = slices.Clone(cfg.Memory.Replicas)
	c.replicas = newRotation(c.memory.Replicas, cfg.Bootstrap, cfg.Rand)
	return c
}

// Event is an input of Step. A nil Event means that time has passed.
type Event interface{ event() }

// Heard is a message from a replica.
type Heard struct {
	Stream  Stream
	Message *protocol.GatewayMessage
}

// Ended reports that a stream has ended or could not be opened.
type Ended struct {
	Stream Stream
	Err    error
	Logged bool // it is logged already
}

// Changed reports that there is something to send before the interval is over (DET-1).
type Changed struct{}

func (Heard) event()   {}
func (Ended) event()   {}
func (Changed) event() {}

// Order is an output of Step, for the shell to carry out.
type Order interface{ order() }

// Remember asks for Memory to be written where it outlives the agent. The agent continues if that
// fails: a replica sends the epoch that it knows.
type Remember struct{ Memory Memory }

// Open asks for a stream, with a Hello that has this epoch and lease.
type Open struct {
	Stream  Stream
	Address string
	Epoch   uint64
	Lease   int64
}

// Report asks for a report to be made and sent.
type Report struct {
	Stream   Stream
	Sequence uint64
}

// Close asks for a stream to be ended, after the goodbye if there is one. Nothing more is received
// from it.
type Close struct {
	Stream  Stream
	Goodbye protocol.Goodbye_Kind // unspecified: no goodbye
	Why     string
	// keeps its connection in the place of the warm one: the replica will take us soon, and has no
	// time for handshakes
	Keep bool
}

// Warm asks for a connection to this replica to be kept ready beside the one in use, so that moving
// costs no handshake (SAFE-11). It replaces the previous Warm; an empty address asks for none.
type Warm struct {
	Address string
	// After is when to make the connection, with jitter: all agents learn of a new replica at once,
	// and it has no time for handshakes with all of them.
	After time.Duration
}

// Workload says that the workload may run, or must not.
type Workload struct {
	Run bool
	Why string
}

// Wanted passes on the state that a replica wants.
type Wanted struct{ Wanted *protocol.Wanted }

// Note is a change of state for the log.
type Note struct {
	Warn    bool
	Text    string
	Replica string
	Why     string
}

func (Remember) order() {}
func (Open) order()     {}
func (Report) order()   {}
func (Close) order()    {}
func (Warm) order()     {}
func (Workload) order() {}
func (Wanted) order()   {}
func (Note) order()     {}

// Wake returns when to call Step with nil if nothing happens before; zero if time alone changes
// nothing.
func (c *Session) Wake() time.Time { return c.wake }

// Renewed returns when the lease began, by the agent's own clock, and its least duration; zero
// while no lease is known (SAFE-9).
func (c *Session) Renewed() (from time.Time, ttl time.Duration) {
	if c.renewed.IsZero() {
		return time.Time{}, 0
	}
	return c.renewed, c.ttl
}

// Slept says that the machine has slept. Meanwhile its monotonic clock stood still, and leases ran
// on: so the lease, and what may yet renew it, began that much earlier by that clock (SAFE-9).
func (c *Session) Slept(d time.Duration) {
	if !c.renewed.IsZero() {
		c.renewed = c.renewed.Add(-d)
	}
	for _, l := range []*line{c.serving, c.trying} {
		if l == nil {
			continue
		}
		l.opened = l.opened.Add(-d)
		for i := range l.unacked {
			l.unacked[i].at = l.unacked[i].at.Add(-d)
		}
	}
}

// Serving returns the stream that was welcomed and has not ended.
func (c *Session) Serving() (Stream, bool) {
	if c.serving == nil {
		return 0, false
	}
	return c.serving.stream, true
}

// Leave ends the session. Step does nothing afterwards.
func (c *Session) Leave(kind protocol.Goodbye_Kind, why string) []Order {
	var orders []Order
	if c.trying != nil {
		orders = append(orders, Close{Stream: c.trying.stream, Why: why})
	}
	if c.serving != nil {
		orders = append(orders, Close{Stream: c.serving.stream, Goodbye: kind, Why: why})
	}
	c.trying, c.serving, c.left, c.wake = nil, nil, true, time.Time{}
	return orders
}
