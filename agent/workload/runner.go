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

// Config is what to run and where.
type Config struct {
	Run         []string // empty: there is no workload
	Vars, Facts map[string]string
	Dir         string // the workload's working directory
	StateDir    string // its output and its record
	Boot        string // the machine's present boot
	Instance    string
	Group       string
	Shard       string
	// Secrets are in the environment of the workload, the drain hook and what runs once beside
	// them; nil: there are none.
	Secrets *secrets.Holder
	// Waits says what else the workload waits for before it is started, "" if nothing; nil: nothing
	// ever.
	Waits       func() string
	StopTimeout time.Duration // how long it may take to end in order
	OutputLimit int64         // of each of the two files of output; 0: 8 MiB
}

// Deps are what a Runner works with.
type Deps struct {
	Logger *slog.Logger
}

// Exit is how a workload ended by itself.
type Exit struct {
	Code   int       `json:"code"` // -1: ended by a signal, or unknown
	Signal string    `json:"signal,omitempty"`
	At     time.Time `json:"at"`
	Why    string    `json:"why"` // for people
	Output []byte    `json:"output,omitempty"`
	// Withheld is set if the last output may hold secrets that have not arrived yet.
	Withheld bool `json:"withheld,omitempty"`
}

// State is how the workload is now.
type State struct {
	Wanted  bool // there is one to run
	Running bool
	PID     int
	Since   time.Time // Running or Exit
	Exit    *Exit     // it ended by itself, or could not be started
	Waits   string    // why it was not started yet; the next Start tries again
	// Unread: one of an earlier agent may run, whose record cannot be read; the next Start or Stop
	// tries again.
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
	asked  bool     // to end
	newest *process // that was watched last
	argv   []string // what the next start runs, with vars
	vars   map[string]string

	revealed *Exit         // whose output is being read, or was
	readers  int           // of output
	unread   chan struct{} // closed when there are no readers any more; nil: there were none

	records *recorder[record]

	run *process // under watch

	// left is what another Runner has released; nil: it is not known. It counts if the disk has no
	// answer.
	left *record
}

// process is one that an agent started, this one or an earlier one.
type process struct {
	record
	cmd    *exec.Cmd // nil if it was taken up again
	cancel context.CancelFunc
	done   chan struct{} // closed when the leader was reaped, or the process let go
	tasks  sync.WaitGroup
}

// New starts nothing.
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

// unrecorded logs what the disk does not have.
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

// Configure sets what the next start runs. What runs goes on as it is.
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

// State returns the present state of the workload, from memory. Output that was withheld is read
// once the secrets are known; Changed signals when it is there.
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

// reveal adds what the workload said last to an exit that lacks it. The disk may hang.
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

// reading is closed when no output is read any more; nil: none was.
func (r *Runner) reading() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unread
}

// Changed signals that the workload ended by itself, or that its last output was read; several
// changes may be told once.
func (r *Runner) Changed() <-chan struct{} { return r.changed }

// Start starts the workload, or takes over what an earlier agent left: the process if it still
// runs, its exit if it ended. It does nothing after a Start that was not followed by Stop, so a
// workload that ended by itself stays ended. State has a failure as well, as an exit; missing
// secrets are not a failure, but ErrWaits, and neither is a record that cannot be read: see
// State.Unread. The disk may hang: once ctx has ended, nothing is started any more, and that is
// ErrWaits, too.
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

// setUnread notes that it is not known whether a workload runs.
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

// Reload tells the workload by SIGHUP that its files have changed. One that does not run finds them
// when it starts.
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
			// The machine's former boot left it behind; two would run beside each other.
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
		r.log.Info("workload taken up again", "pid", old.PID)
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

// watch begins to look after a process that runs.
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

// await returns how the process ended by itself; nil if its end was requested, or it was let go.
func (r *Runner) await(ctx context.Context, p *process) *Exit {
	defer close(p.done)
	defer p.cancel()
	if awaitEnd(ctx, p.PID, p.Start) != nil {
		return nil // let go
	}
	exit := &Exit{Code: -1, Why: "ended; how cannot be known, since an earlier agent had started it"}
	if p.cmd != nil {
		_ = p.cmd.Wait() // what it says is in ProcessState
		exit = exitOf(p.cmd.ProcessState)
	}
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

// lastWords adds what the workload said last, if it is known what of it is secret.
func (r *Runner) lastWords(exit *Exit) *Exit {
	if exit.Withheld = r.cfg.Secrets.Blind(); !exit.Withheld {
		exit.Output = r.out.saidSoon(r.cfg.Secrets)
	}
	return exit
}

func exitOf(s *os.ProcessState) *Exit {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return &Exit{Code: -1, Signal: w.Signal().String(), Why: "ended by signal " + w.Signal().String()}
	}
	return &Exit{Code: s.ExitCode(), Why: fmt.Sprintf("ended with exit code %d", s.ExitCode())}
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
