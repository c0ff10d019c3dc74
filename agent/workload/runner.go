package workload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/agent/secrets"
	"github.com/leasehold/leasehold/provider"
)

// Config says what to run and where.
type Config struct {
	Run         []string // empty: no workload
	Vars, Facts map[string]string
	Dir         string // the workload's working directory
	StateDir    string // directory of its output and its record
	Boot        string // ID of the machine's present boot
	Instance    string
	Group       string
	Shard       string
	// Secrets go into the environment of the workload, the drain hook and commands that run once;
	// nil: none.
	Secrets *secrets.Holder
	// Waits returns what else the workload waits for before it starts, "" if nothing; nil: nothing
	// ever.
	Waits       func() string
	StopTimeout time.Duration // time to end in order
	OutputLimit int64         // size of each of the two output files; 0: 8 MiB
}

// Deps are a Runner's dependencies.
type Deps struct {
	Logger *slog.Logger
}

// Exit describes how a workload ended by itself.
type Exit struct {
	Code   int       `json:"code"` // -1: ended by a signal, or unknown
	Signal string    `json:"signal,omitempty"`
	At     time.Time `json:"at"`
	Why    string    `json:"why"` // for people
	Output []byte    `json:"output,omitempty"`
	// Withheld is set if the last output may contain secrets that have not arrived yet.
	Withheld bool `json:"withheld,omitempty"`
}

// State is the present state of the workload.
type State struct {
	Wanted  bool // there is a workload to run
	Running bool
	PID     int
	Since   time.Time // of Running or Exit
	Exit    *Exit     // it ended by itself or could not be started
	Waits   string    // why it is not started yet; the next Start tries again
	// Unread means that an earlier agent's workload may be running, because its record cannot be
	// read; the next Start or Stop tries again.
	Unread bool
}

// ErrWaits means that the workload is not started while secrets or files are missing, or the disk
// hangs or fails.
var ErrWaits = errors.New("workload waits for its")

// Runner runs the workload. Start, Stop and Release are called one at a time; the others at any
// time.
type Runner struct {
	cfg     Config
	log     *slog.Logger
	out     output
	changed chan struct{}

	mu     sync.Mutex
	state  State
	asked  bool     // closed to request the end
	newest *process // the last watched process
	argv   []string // the command of the next start, with vars
	vars   map[string]string

	revealed *Exit         // the exit whose output is or was being read
	readers  int           // readers of output
	unread   chan struct{} // closed when there are no readers any longer; nil: there were none

	records *recorder[record]

	run *process // the watched process

	// left is what another Runner has released; nil: unknown. It is used if the disk does not
	// answer.
	left *record
}

// process is a process that this agent or an earlier one started.
type process struct {
	record
	cmd    *exec.Cmd // nil if it was adopted
	cancel context.CancelFunc
	done   chan struct{} // closed when the leader was reaped, or the process was released
	tasks  sync.WaitGroup
}

// New returns a Runner and starts nothing.
func New(cfg Config, deps Deps) (*Runner, error) {
	if deps.Logger == nil {
		return nil, errors.New("new workload runner: no logger")
	}
	if cfg.StateDir == "" || cfg.Boot == "" {
		return nil, errors.New("new workload runner: a state directory and a boot ID are needed")
	}
	if cfg.OutputLimit <= 0 {
		cfg.OutputLimit = defaultOutputLimit
	}
	r := &Runner{
		cfg:     cfg,
		log:     deps.Logger,
		out:     output{path: filepath.Join(cfg.StateDir, "workload.log"), limit: cfg.OutputLimit},
		changed: make(chan struct{}, 1),
		state:   State{Wanted: len(cfg.Run) > 0},
		argv:    cfg.Run, vars: cfg.Vars,
	}
	r.records = newRecorder(filepath.Join(cfg.StateDir, provider.WorkloadFile), r.unrecorded)
	return r, nil
}

// unrecorded logs what could not be written.
func (r *Runner) unrecorded(rec *record, err error) {
	switch {
	case rec == nil:
		r.log.Warn("workload record was not removed", "error", err)
	case rec.Exit != nil:
		r.log.Warn("end of the workload is not recorded", "error", err)
	default:
		r.log.Warn("workload is not recorded: a restarted agent would start a second one", "error", err)
	}
}

// Configure sets the command of the next start. A running workload is not affected.
func (r *Runner) Configure(run []string, vars map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.argv, r.vars = run, vars
}

func (r *Runner) configured() (run []string, vars map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.argv, r.vars
}

// State returns the present state of the workload from memory. Withheld output is read once the
// secrets are known; Changed then signals.
func (r *Runner) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.state.Exit; e != nil && e.Withheld && r.revealed != e && !r.cfg.Secrets.Blind() {
		r.revealed = e
		if r.readers == 0 {
			r.unread = make(chan struct{})
		}
		r.readers++
		go r.reveal(e)
	}
	return r.state
}

// reveal adds the last output to an exit that lacks it. The disk may hang.
func (r *Runner) reveal(withheld *Exit) {
	exit := *withheld
	exit.Output, exit.Withheld = r.out.said(r.cfg.Secrets), false
	r.mu.Lock()
	if r.state.Exit == withheld {
		r.state.Exit = &exit
	}
	r.signalChange()
	if r.readers--; r.readers == 0 {
		close(r.unread)
	}
	r.mu.Unlock()
}

// reading returns a channel that is closed when no output is being read any longer; nil: none was.
func (r *Runner) reading() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unread
}

// Changed signals that the workload ended by itself, or that its last output was read. One signal
// may stand for several changes.
func (r *Runner) Changed() <-chan struct{} { return r.changed }

// Start starts the workload, or adopts what an earlier agent left: the process if it still runs,
// its exit if it has ended. It does nothing after a Start that was not followed by Stop, so a
// workload that ended by itself stays ended. State reports a failure as an exit. Missing secrets
// and an unreadable record (see State.Unread) are not failures but ErrWaits. The disk may hang:
// once ctx has ended, Start starts nothing and returns ErrWaits.
func (r *Runner) Start(ctx context.Context) error {
	if r.run != nil {
		return nil
	}
	old, known, err := r.records.read()
	if err != nil {
		r.setUnread(err)
		return fmt.Errorf("%w record: %w", ErrWaits, err) // a second one might run beside the first
	}
	if known && r.takeUp(old) {
		return nil
	}
	argv, vars := r.configured()
	r.mu.Lock()
	r.state = State{Wanted: len(argv) > 0}
	r.mu.Unlock()
	if len(argv) == 0 {
		return nil
	}
	if why := r.waits(); why != "" {
		r.mu.Lock()
		r.state.Waits = why
		r.mu.Unlock()
		return fmt.Errorf("%w %s", ErrWaits, why)
	}
	err = r.launch(ctx, argv, vars)
	if err != nil && !errors.Is(err, ErrWaits) {
		r.end(&Exit{
			Code: 127, At: time.Now(), Why: "could not be started: " + err.Error(),
			Output: []byte(err.Error() + "\n"),
		})
	}
	return err
}

// setUnread records that it is unknown whether a workload runs.
func (r *Runner) setUnread(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.state.Unread {
		r.log.Warn("workload of an earlier agent is not known, and may run", "error", err)
	}
	r.state = State{Wanted: len(r.argv) > 0, Waits: "record: " + err.Error(), Unread: true}
}

// waits returns what the workload waits for, "" if it can be started.
func (r *Runner) waits() string {
	if why := r.cfg.Secrets.Missing(); why != "" {
		return "secrets: " + why
	}
	if r.cfg.Waits != nil {
		if why := r.cfg.Waits(); why != "" {
			return "files: " + why
		}
	}
	return ""
}

// Reload sends SIGHUP to the workload because its files have changed. A workload that does not run
// finds them when it starts.
func (r *Runner) Reload() error {
	s := r.State()
	if !s.Running {
		return nil
	}
	if err := syscall.Kill(s.PID, syscall.SIGHUP); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal the workload: %w", err)
	}
	return nil
}

// takeUp reports whether the record makes a start unnecessary.
func (r *Runner) takeUp(old record) bool {
	runs := old.runs()
	if old.Boot != r.cfg.Boot {
		if runs {
			// It is left over from the machine's former boot; a new one would run beside it.
			if err := signalGroup(old.PID, syscall.SIGKILL); err != nil {
				r.log.Warn("workload of the former boot was left", "error", err, "pid", old.PID)
			}
		}
		return false
	}
	switch {
	case old.Exit != nil:
		r.end(old.Exit)
	case runs:
		r.log.Info("workload of an earlier agent adopted", "pid", old.PID)
		r.watch(&process{record: old})
	default:
		old.Exit = r.lastWords(&Exit{Code: -1, At: time.Now(), Why: "ended while no agent was there to see how"})
		r.records.put(&old)
		r.end(old.Exit)
	}
	return true
}

func (r *Runner) launch(ctx context.Context, run []string, vars map[string]string) error {
	argv, err := Expand("run", run, vars, r.cfg.Facts)
	if err != nil {
		return err
	}
	out, err := r.out.open(false)
	if err != nil {
		return err
	}
	defer out.Close()
	if ctx.Err() != nil {
		return fmt.Errorf("%w output: the disk answered too late", ErrWaits)
	}
	h, err := r.cfg.hold(ctx, argv, vars, out)
	if err != nil {
		return fmt.Errorf("start workload: %w", err)
	}
	r.records.put(&h.rec)
	if !r.awaitRecord(ctx) {
		h.drop()
		r.records.put(nil)
		return fmt.Errorf("%w record: the disk answered too late", ErrWaits)
	}
	if err := h.letGo(ctx); err != nil {
		r.records.put(nil)
		return fmt.Errorf("start workload: %w", err)
	}
	r.log.Info("workload started", "pid", h.rec.PID)
	r.watch(&process{cmd: h.cmd, record: h.rec})
	return nil
}

// watch begins to watch a running process.
func (r *Runner) watch(p *process) {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.done = cancel, make(chan struct{})
	r.mu.Lock()
	r.run, r.newest, r.asked = p, p, false
	r.state = State{Wanted: true, Running: true, PID: p.PID, Since: time.Now()}
	r.mu.Unlock()
	p.tasks.Go(func() { r.out.bound(ctx, r.log) })
	p.tasks.Go(func() {
		if exit := r.await(ctx, p); exit != nil {
			r.ended(p, r.lastWords(exit))
		}
	})
}

// await returns how the process ended by itself; nil if its end was requested, or it was released.
func (r *Runner) await(ctx context.Context, p *process) *Exit {
	defer close(p.done)
	defer p.cancel()
	if awaitEnd(ctx, p.PID, p.Start) != nil {
		return nil // released
	}
	exit := p.result()
	exit.At = time.Now()
	r.mu.Lock()
	asked := r.asked
	r.mu.Unlock()
	if asked {
		return nil
	}
	if err := signalGroup(p.PID, syscall.SIGKILL); err != nil {
		r.log.Warn("processes of the workload were left", "error", err, "pid", p.PID)
	}
	return exit
}

// lastWords adds the last output if all its secrets are known.
func (r *Runner) lastWords(exit *Exit) *Exit {
	if exit.Withheld = r.cfg.Secrets.Blind(); !exit.Withheld {
		exit.Output = r.out.saidSoon(r.cfg.Secrets)
	}
	return exit
}

// result returns how a process that has ended did so, and reaps it. An adopted one is a child of
// this process if the agent that started it has become this one by exec, as for an upgrade.
func (p *process) result() *Exit {
	if p.cmd != nil {
		_ = p.cmd.Wait() // ProcessState has the result
		return exitOf(p.cmd.ProcessState)
	}
	if s, err := readStat(p.PID); err == nil && s.start == p.Start { // else it could be another child
		var status syscall.WaitStatus
		if pid, err := syscall.Wait4(p.PID, &status, syscall.WNOHANG, nil); err == nil && pid == p.PID {
			return exitOfStatus(status)
		}
	}
	return &Exit{Code: -1, Why: "ended; how cannot be known, since an earlier agent had started it"}
}

func exitOf(s *os.ProcessState) *Exit {
	if w, ok := s.Sys().(syscall.WaitStatus); ok {
		return exitOfStatus(w)
	}
	return &Exit{Code: s.ExitCode(), Why: fmt.Sprintf("ended with exit code %d", s.ExitCode())}
}

func exitOfStatus(w syscall.WaitStatus) *Exit {
	if w.Signaled() {
		return &Exit{Code: -1, Signal: w.Signal().String(), Why: "ended by signal " + w.Signal().String()}
	}
	return &Exit{Code: w.ExitStatus(), Why: fmt.Sprintf("ended with exit code %d", w.ExitStatus())}
}

// ended records an exit that was not requested, so that no later agent of this boot starts the
// workload again. If the workload was stopped while its last words were read, the exit is void.
func (r *Runner) ended(p *process, exit *Exit) {
	rec := p.record
	rec.Exit = exit
	r.mu.Lock()
	void := r.newest != p || r.asked
	if !void {
		r.records.put(&rec)
		r.state = exit.state()
	}
	r.mu.Unlock()
	if !void {
		r.tell(exit)
	}
}

func (r *Runner) end(exit *Exit) {
	r.mu.Lock()
	r.state = exit.state()
	r.mu.Unlock()
	r.tell(exit)
}

func (e *Exit) state() State { return State{Wanted: true, Since: e.At, Exit: e} }

func (r *Runner) tell(exit *Exit) {
	r.log.Warn("workload ended", "why", exit.Why, "code", exit.Code, "signal", exit.Signal)
	r.signalChange()
}

func (r *Runner) signalChange() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}
