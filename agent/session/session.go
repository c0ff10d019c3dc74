package session

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
)

// Stream names one stream of this run of the agent; it grows.
type Stream uint64

// Memory is what must outlive the agent.
type Memory struct {
	Epoch    uint64   // of the last stream that was opened
	Lease    int64    // the last lease known, 0 if none
	Replicas []string // the last list of replicas that a replica gave
	// Condemned is what the agent was told of the record that ended its instance; zero: nothing of
	// the kind. Only a welcome takes it back.
	Condemned Condemnation
}

// Condemnation is the evidence on which an agent stops its workload: a record that a replica read
// in etcd (SAFE-14).
type Condemnation struct {
	Revision int64  // of the record
	Phase    string // protocol.PhaseDeleting, or protocol.PhaseGone
}

// Holds reports whether it is evidence. A replica of an earlier release names no record: what it
// calls retired may only be absent.
func (c Condemnation) Holds() bool {
	return c.Revision > 0 && (c.Phase == protocol.PhaseDeleting || c.Phase == protocol.PhaseGone)
}

// Config is where an agent begins.
type Config struct {
	Bootstrap      []string // replicas known when the machine was made; the last resort
	Memory         Memory   // of the run before
	ReportInterval time.Duration
	ReconnectMin   time.Duration
	ReconnectMax   time.Duration
	AnswerTimeout  time.Duration  // how long a replica may take from dial to welcome; 0: protocol.AnswerTimeout
	Renewed        time.Time      // from when the lease of the run before counts, if that is known
	LeaseTTL       time.Duration  // of that lease
	Rand           func() float64 // in [0,1): jitter, and the order of replicas
}

// thawGrace is how long a stream may take to answer once a frozen agent runs again: the answers to
// what it sent before may still wait in its socket, so it is not judged by the time that it slept.
const thawGrace = time.Second

// line is one stream, as far as deciding goes.
type line struct {
	stream  Stream
	address string
	opened  time.Time
	due     time.Time // until when a welcome must have come
	waiting bool      // the replica has told us to wait for our turn
	moving  bool      // the replica asked us to go
	proved  bool      // it acknowledged at least one report

	sequence uint64
	unacked  []sent    // oldest first
	overdue  time.Time // when the oldest answer is overdue, zero if none is awaited
	heard    time.Time // when it last said anything
}

// booking is when a replica that has no room for us now has told us to come again; the soonest, if
// several have.
type booking struct {
	address string
	at      time.Time // zero: there is none
}

type sent struct {
	sequence uint64
	at       time.Time
}

// unackedMost bounds what is remembered of a silent stream. What is dropped are the newer ones, so
// an acknowledgement is counted from earlier than it need be, never from later.
const unackedMost = 64

// Session is the state. It is not safe for concurrent use.
type Session struct {
	cfg      Config
	memory   Memory
	replicas rotation
	streams  Stream // the last one named

	serving  *line
	trying   *line
	restless bool // the serving stream renews nothing: look for a better one

	booking booking

	unknown  int  // how often in a row a replica said that there is no record, since the last welcome
	failures int  // in a row, since the last acknowledgement
	stale    bool // the last refusal was for a stale epoch: a second one in a row is a failure
	tryAt    time.Time
	reportAt time.Time

	renewed time.Time // the lease runs from here
	ttl     time.Duration

	wake time.Time
	left bool
}

// New begins with no stream and the first attempt due at once.
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

// Event is something that happened. A nil Event means that time passed.
type Event interface{ event() }

// Heard is a message from a replica.
type Heard struct {
	Stream  Stream
	Message *protocol.GatewayMessage
}

// Ended reports that a stream is gone or could not be opened.
type Ended struct {
	Stream Stream
	Err    error
	Told   bool // the log has it already
}

// Changed reports that there is something to send before the interval is over (DET-1).
type Changed struct{}

func (Heard) event()   {}
func (Ended) event()   {}
func (Changed) event() {}

// Order is something to do.
type Order interface{ order() }

// Remember asks for Memory to be written where it outlives the agent. Failing to is no reason to
// stop: a replica tells the epoch that it knows.
type Remember struct{ Memory Memory }

// Open asks for a stream, with a Hello of this epoch and lease.
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

// Close asks for a stream to be ended, after the goodbye if there is one. Nothing is heard of it
// any more.
type Close struct {
	Stream  Stream
	Goodbye protocol.Goodbye_Kind // unspecified: none, cut it
	Why     string
	// its connection, in the place of the one that is warm: the replica takes us soon, and a
	// handshake is what it has no time for
	Keep bool
}

// Warm asks for a connection to this replica to be kept ready beside the one in use, so that moving
// over costs no handshake (SAFE-11). It replaces the one asked for before; an empty address asks
// for none.
type Warm struct {
	Address string
	// After is when to make it, at random: all agents hear of a new replica at once, and it has no
	// time for the handshakes of all of them.
	After time.Duration
}

// Workload orders that the workload may run, or must not.
type Workload struct {
	Run bool
	Why string
}

// Wanted hands on what a replica wants of the agent.
type Wanted struct{ Wanted *protocol.Wanted }

// Note is a change of state that is worth a line in the log.
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

// Wake returns when to call Step with nil, if nothing happens before; zero if time alone changes
// nothing.
func (c *Session) Wake() time.Time { return c.wake }

// Renewed returns from when the lease counts, by the agent's own clock, and how long it lasts from
// then at the least; zero while none is known (SAFE-9).
func (c *Session) Renewed() (from time.Time, ttl time.Duration) {
	if c.renewed.IsZero() {
		return time.Time{}, 0
	}
	return c.renewed, c.ttl
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
