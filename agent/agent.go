package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"github.com/leasehold/leasehold/agent/checks"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/session"
	"github.com/leasehold/leasehold/agent/upgrade"
	"github.com/leasehold/leasehold/provider"
)

// Farewell is the agent's goodbye message when it is asked to end (DET-8).
type Farewell string

// The farewells.
const (
	FarewellShutdown Farewell = "shutdown" // the machine shuts down
	FarewellRestart  Farewell = "restart"  // the agent will be back, for example after an upgrade
)

// settleWait is how long the first hello waits for the workload to start. Most start in
// milliseconds.
const settleWait = time.Second

// leaveWait is how long the parts of the agent may take to end.
const leaveWait = 5 * time.Second

// Config identifies the agent and says how it runs.
type Config struct {
	Bootstrap     provider.Bootstrap
	BootID        string // ID of the machine's present boot
	StateDir      string // state that outlives the agent
	Version       string
	Farewell      Farewell      // empty: FarewellShutdown
	KeepWorkload  bool          // with FarewellRestart: leave the workload running
	Source        netip.Addr    // local address for streams; none: the kernel's choice
	AnswerTimeout time.Duration // time for a replica to welcome; 0: protocol.AnswerTimeout
	// GoesDown reports whether the instance does not come back: its machine goes down, or becomes
	// another instance. It is asked when an agent with FarewellRestart is terminated, which then
	// says goodbye and ends its workload as with FarewellShutdown. nil: not known.
	GoesDown func() bool
	// Acknowledged is called at the first acknowledged report of an agent on trial, after which Run
	// returns ErrTrialOver; nil: the agent is not on trial.
	Acknowledged func() error
}

// Agent is one run of the agent.
type Agent struct {
	cfg       Config
	deps      Deps
	log       *slog.Logger
	statePath string
	first     session.Config // without Memory

	stopTimeout time.Duration // time for the workload to end

	session     *session.Session
	memory      session.Memory // what the session last ordered to be remembered
	assignment  assignment
	mayRun      bool                      // the workload; see stopped too
	fenced      bool                      // on_lease_lost was carried out, and the lease was not renewed since
	offBy       time.Time                 // when on_lease_lost poweroff stops waiting for what runs
	stopped     bool                      // the workload must not run without a lease
	kept        map[string]checks.Verdict // checks that wait for the lease too
	stamped     time.Time                 // the renewal that the state file has
	leaving     *protocol.Drain
	heard       bool          // the state that a replica wants
	restart     string        // token of the wanted restart
	drilled     string        // token of the last drill
	beats       chan struct{} // the loop receives from it, as a sign of life
	news        chan struct{} // something only the loop knows has to be reported
	started     time.Time
	startedAt   time.Duration // the uptime then
	asleep      time.Duration // how long the machine has slept since
	events      chan session.Event
	over        chan struct{} // closed when the loop no longer reads events
	streams     map[session.Stream]*stream
	connections connections
	running     sync.WaitGroup // streams, which end by themselves after a goodbye
	tasks       sync.WaitGroup // goroutines that end with the background context
	keeper      *keeper
	files       *protocol.Files // as last received from a replica
	// filesFrom is the stream on which they were received.
	filesFrom session.Stream
	whole     bool // every file has been delivered once

	secretNumber int // version of the secrets when checks were last set
	stateWriter  *stateWriter

	confirmedHash string // hash of the configuration that was last fully applied and checked
}

// New returns an agent and starts nothing.
func New(cfg Config, deps Deps) (*Agent, error) {
	switch {
	case cfg.Bootstrap.Instance == "" || cfg.Bootstrap.Shard == "":
		return nil, errors.New("new agent: the bootstrap document names no instance or no shard")
	case len(cfg.Bootstrap.Coordinators) == 0:
		return nil, errors.New("new agent: the bootstrap document names no coordinator")
	case cfg.BootID == "":
		return nil, errors.New("new agent: no boot ID: set " + provider.EnvBootID)
	case cfg.StateDir == "":
		return nil, errors.New("new agent: no state directory")
	case deps.Certificate == nil || deps.Logger == nil || deps.Host == nil || deps.Workload == nil || deps.Hook == nil ||
		deps.Checks == nil || deps.Notices == nil || deps.Evacuation == nil || deps.Fence == nil:
		return nil,
			errors.New("new agent: certificate, logger, host, workload, drain hook, checks, " +
				"the sources of notices and a fence are all needed")
	}
	switch cfg.Farewell {
	case "":
		cfg.Farewell = FarewellShutdown
	case FarewellShutdown, FarewellRestart:
	default:
		return nil, fmt.Errorf("new agent: farewell: %q: shutdown or restart", cfg.Farewell)
	}
	if cfg.KeepWorkload && cfg.Farewell != FarewellRestart {
		return nil,
			errors.New("new agent: the workload can be kept only if the agent says it restarts: set farewell to restart")
	}
	if deps.Dial == nil {
		var dialer net.Dialer
		if cfg.Source.IsValid() {
			dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(cfg.Source, 0))
		}
		deps.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}
	}
	if deps.Uptime == nil {
		deps.Uptime = kernelUptime
	}
	if deps.Rand == nil {
		deps.Rand = rand.Float64
	}
	a := &Agent{
		cfg: cfg, deps: deps,
		log:       deps.Logger.With("instance", cfg.Bootstrap.Instance),
		statePath: filepath.Join(cfg.StateDir, "agent.json"),
		events:    make(chan session.Event, 16),
		news:      make(chan struct{}, 1),
		beats:     make(chan struct{}),
		over:      make(chan struct{}),
		streams:   map[session.Stream]*stream{},
	}
	a.connections = connections{certificate: deps.Certificate, dial: deps.Dial}
	a.keeper = newKeeper(deps.Workload, a.log)
	a.stateWriter = newStateWriter(func(p stateFile) error {
		return writeMemory(a.statePath, cfg.Bootstrap.Instance, p.memory, p.assignment)
	}, a.log)
	a.first = session.Config{Bootstrap: cfg.Bootstrap.Coordinators, AnswerTimeout: cfg.AnswerTimeout, Rand: deps.Rand}
	for _, d := range []struct {
		name, value string
		to          *time.Duration
	}{
		{"report_interval", cfg.Bootstrap.ReportInterval, &a.first.ReportInterval},
		{"reconnect_min", cfg.Bootstrap.ReconnectMin, &a.first.ReconnectMin},
		{"reconnect_max", cfg.Bootstrap.ReconnectMax, &a.first.ReconnectMax},
		{"stop_timeout", cfg.Bootstrap.StopTimeout, &a.stopTimeout},
	} {
		if d.value == "" {
			continue
		}
		var err error
		if *d.to, err = time.ParseDuration(d.value); err != nil {
			return nil, fmt.Errorf("new agent: bootstrap document: %s: %w", d.name, err)
		}
	}
	return a, nil
}

// Working reports whether the agent's loop answers before ctx ends.
func (a *Agent) Working(ctx context.Context) bool {
	select {
	case a.beats <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Run runs the agent until ctx ends. Call it once. A lost session is no error, unless the group
// then powers the machine off: Run returns ErrPoweredOff. It returns an *upgrade.Trial when another
// version is to be tried, and leaves the workload running. An agent on trial returns ErrTrialOver
// when its first report is acknowledged.
func (a *Agent) Run(ctx context.Context) error {
	a.started = time.Now()
	a.startedAt = a.deps.Uptime()
	memory, assignment, err := readMemory(a.statePath, a.cfg.Bootstrap.Instance)
	if err != nil {
		// This is not fatal: a replica sends the epoch, and the bootstrap document has addresses.
		a.log.Warn("state of the former run is not known", "error", err)
	}
	first := a.first
	first.Memory = memory
	first.Renewed, first.LeaseTTL = a.lease(assignment)
	a.session, a.memory = session.New(first), memory
	a.resume(assignment)

	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	a.tasks.Go(func() { a.deps.Certificate.Run(background) })
	a.tasks.Go(func() { a.deps.Host.Run(background) })
	a.tasks.Go(func() { a.deps.Notices.Run(background) })
	a.tasks.Go(func() { a.deps.Evacuation.Run(background) })
	a.tasks.Go(func() { a.keeper.run(background) })
	a.tasks.Go(func() { a.deps.Files.Run(background) })
	a.tasks.Go(func() { a.deps.Upgrade.Run(background) })
	go a.stateWriter.run() // ends with leave, or when the disk answers
	if condemned := memory.Condemned; condemned.Holds() {
		a.log.Warn("instance was retired: its workload is not started unless a replica welcomes it again", "revision",
			condemned.Revision, "phase", condemned.Phase)
	}
	a.mayRun = !memory.Condemned.Holds()
	if a.guard(background, a.started); !a.stopped {
		a.setTarget(time.Time{})
	}
	a.wantChecks(false, a.knownVerdicts())
	a.settle(ctx)
	a.log.Info("agent started", "version", a.cfg.Version, "boot", a.cfg.BootID)

	err = a.loop(ctx, background)

	a.staysBehind(err)
	if err == nil && a.cfg.Farewell == FarewellRestart && a.cfg.GoesDown != nil && a.cfg.GoesDown() {
		a.cfg.Farewell, a.cfg.KeepWorkload = FarewellShutdown, false
	}
	whole := a.leave(stop)
	var t *upgrade.Trial
	if errors.As(err, &t) {
		t.Unfinished = !whole
	}
	return err
}

// settle gives the workload a moment to start, so that the first report need not say that it has
// not.
func (a *Agent) settle(ctx context.Context) {
	late := time.NewTimer(settleWait)
	defer late.Stop()
	select {
	case <-a.keeper.done:
	case <-late.C:
	case <-ctx.Done():
	}
}

func (a *Agent) loop(ctx, background context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var ev session.Event
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case ev = <-a.events:
			a.handle(ev)
		case <-a.deps.Certificate.Changed():
			a.connections.renew()
			ev = session.Changed{}
		case <-a.deps.Workload.Changed():
			ev = session.Changed{}
		case <-a.keeper.done:
			a.noteDone()
			ev = session.Changed{}
		case <-a.deps.Hook.Changed():
			a.noteDone()
			ev = session.Changed{}
		case <-a.deps.Notices.Changed():
			ev = session.Changed{}
		case <-a.deps.Evacuation.Changed():
			ev = session.Changed{}
		case <-a.beats:
			continue
		case ask := <-a.deps.Files.Asks():
			a.ask(ask)
			continue
		case <-a.deps.Files.Changed():
			a.filesChanged()
			ev = session.Changed{}
		case <-a.deps.Upgrade.Changed():
			ev = session.Changed{}
		case <-a.deps.Checks.Changed():
			a.remember(false)
			ev = session.Changed{}
		case <-a.news:
			ev = session.Changed{}
		}
		if a.powerOff(background) {
			return ErrPoweredOff
		}
		a.noteSleep()
		now := time.Now()
		orders := a.session.Step(now, ev)
		look := a.guard(background, now)
		a.perform(background, orders)
		if over, ok := ev.(session.Ended); ok {
			delete(a.streams, over.Stream)
		}
		if err := errors.Join(a.judged(ev), a.upgrading()); err != nil {
			return err
		}
		wake := a.session.Wake()
		for _, t := range []time.Time{look, a.renew(now), a.connections.tend(now)} {
			if wake.IsZero() || !t.IsZero() && t.Before(wake) {
				wake = t
			}
		}
		if wake.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(max(0, wake.Sub(now)))
		}
	}
}

// perform carries out orders. No order blocks for longer than writing a small file takes, or than
// diskWait if the disk is slow.
func (a *Agent) perform(background context.Context, orders []session.Order) {
	for _, order := range orders {
		switch o := order.(type) {
		case session.Remember:
			a.memory = o.Memory
			a.remember(false)
		case session.Open:
			a.open(background, o)
		case session.Report:
			if s := a.streams[o.Stream]; s != nil {
				s.sayBeat(a.report(o.Sequence))
			}
		case session.Close:
			if s := a.streams[o.Stream]; s != nil {
				delete(a.streams, o.Stream)
				if o.Keep {
					a.connections.keep(s)
				} else {
					s.end(o.Goodbye, o.Why)
				}
			}
		case session.Warm:
			a.connections.warm(o.Address, time.Now().Add(o.After))
		case session.Workload:
			if o.Run {
				a.log.Info("workload may run", "why", o.Why)
			} else {
				a.log.Info("workload must not run", "why", o.Why)
			}
			a.mayRun = o.Run
			a.setTarget(time.Time{})
			if !o.Run {
				a.deps.Hook.Want(nil)
			}
			a.checkAfresh()
		case session.Wanted:
			a.applyWanted(o.Wanted)
		case session.Note:
			level := slog.LevelInfo
			if o.Warn {
				level = slog.LevelWarn
			}
			attrs := []slog.Attr{slog.String("news", o.Text)}
			if o.Replica != "" {
				attrs = append(attrs, slog.String("replica", o.Replica))
			}
			if o.Why != "" {
				attrs = append(attrs, slog.String("why", o.Why))
			}
			a.log.LogAttrs(background, level, "session with the coordinator", attrs...)
		}
	}
}

// goodbye returns the agent's last message (DET-8).
func (a *Agent) goodbye() (kind protocol.Goodbye_Kind, why string) {
	evacuation := a.deps.Evacuation.Latest()
	switch {
	case a.cfg.Farewell == FarewellRestart:
		return protocol.Goodbye_RESTART, "the agent was asked to end"
	case evacuation != nil:
		return protocol.Goodbye_EVACUATING, evacuation.Why
	default:
		return protocol.Goodbye_SHUTDOWN, "the agent was asked to end"
	}
}

// leave says goodbye, ends the workload if it must end, and waits for everything, but only for a
// bounded time for what hangs on a disk. It reports whether everything has ended and the next agent
// finds the state that it needs.
func (a *Agent) leave(stop context.CancelFunc) bool {
	kind, why := a.goodbye()
	a.log.Info("agent ends", "farewell", kind.String(), "keep_workload", a.cfg.KeepWorkload)
	a.perform(context.Background(), a.session.Leave(kind, why))
	close(a.over)
	a.deps.Checks.Close()
	closed := a.deps.Hook.Close(a.cfg.KeepWorkload)
	concluded := a.keeper.conclude(context.Background(), a.cfg.KeepWorkload)
	a.noteDone() // what they have done since the loop ended
	written := a.stateWriter.close()
	a.running.Wait()
	stop()
	ended := a.end()
	a.connections.close()
	return closed && concluded && written && ended
}

// end waits for the agent's parts to end, but not for one that hangs, for example on a disk: the
// next agent cannot start until this one has ended. It reports whether all parts have ended.
func (a *Agent) end() bool {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.tasks.Wait()
	}()
	late := time.NewTimer(leaveWait)
	defer late.Stop()
	select {
	case <-ended:
		return true
	case <-late.C:
		a.log.Warn("the agent ends before all of its parts have ended: the disk is slow")
		return false
	}
}
