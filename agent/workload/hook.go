package workload

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Drain is an order to run the drain hook.
type Drain struct {
	Token   string   // identifies the drain
	Run     []string // the hook; empty: there is nothing to wait for
	Vars    map[string]string
	Timeout time.Duration
}

// Hook runs drain hooks, one at a time, beside the workload. Its methods can be called at any time,
// and only Close waits.
type Hook struct {
	cfg     Config
	log     *slog.Logger
	out     output
	records *recorder[hookRecord]
	changed chan struct{}

	mu     sync.Mutex
	closed bool
	ended  string // token of the last drain whose hook has ended
	last   *drain // the last one begun, wanted or not; nil: none
	tasks  sync.WaitGroup
}

// drain is a Drain under way. Without a token it is the search for what an earlier agent left.
type drain struct {
	Drain
	cancel context.CancelCauseFunc
	over   chan struct{} // closed when nothing of it runs any longer
}

// Why a hook is abandoned before it has ended.
var (
	errCalledOff = errors.New("the drain was called off")
	errLeft      = errors.New("the next agent takes it up")
)

// readAgain is the interval for retrying an unreadable record.
const readAgain = time.Second

// loggedOutput is how much of a hook's last output is logged; the file has more.
const loggedOutput = 2 << 10

// hookRecord is what a later agent must know of a hook. Without a process ID the hook was about to
// start.
type hookRecord struct {
	record
	Token string    `json:"token"`
	Begun time.Time `json:"begun"`
}

// NewHook returns a Hook and starts nothing. cfg is the workload's; its Run, Vars and StopTimeout
// are not used.
func NewHook(cfg Config, deps Deps) (*Hook, error) {
	if deps.Logger == nil {
		return nil, errors.New("new drain hook: no logger")
	}
	if cfg.StateDir == "" || cfg.Boot == "" {
		return nil, errors.New("new drain hook: a state directory and a boot ID are needed")
	}
	if cfg.OutputLimit <= 0 {
		cfg.OutputLimit = defaultOutputLimit
	}
	h := &Hook{
		cfg: cfg, log: deps.Logger,
		out:     output{path: filepath.Join(cfg.StateDir, "drain.log"), limit: cfg.OutputLimit},
		changed: make(chan struct{}, 1),
	}
	h.records = newRecorder(filepath.Join(cfg.StateDir, "drain.json"), h.unrecorded)
	return h, nil
}

// unrecorded logs what could not be written.
func (h *Hook) unrecorded(r *hookRecord, err error) {
	switch {
	case r == nil:
		h.log.Warn("record of the drain hook was not removed", "error", err)
	case r.Exit != nil:
		h.log.Warn("end of the drain hook is not recorded", "error", err)
	default:
		h.log.Warn("drain hook is not recorded: a restarted agent would run it again", "error", err)
	}
}

// Want sets the wanted drain; nil: none. It kills the hook of another drain, and never repeats a
// hook that has ended.
func (h *Hook) Want(order *Drain) {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := &drain{over: make(chan struct{})}
	if order != nil {
		next.Drain = *order
	}
	if h.closed || h.last != nil && h.last.Token == next.Token {
		return
	}
	var before <-chan struct{}
	if h.last != nil {
		before = h.last.over
		h.last.cancel(errCalledOff)
	}
	h.last = next
	var ctx context.Context
	ctx, next.cancel = context.WithCancelCause(context.Background())
	h.tasks.Go(func() {
		defer close(next.over)
		defer next.cancel(nil)
		if before != nil {
			<-before
		}
		if h.follow(ctx, next.Drain) {
			h.tell(next.Token)
		}
	})
}

// Ended returns the token of the last drain whose hook has ended, successfully or not; "" if there
// was none in this agent's time.
func (h *Hook) Ended() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// Changed signals that Ended has changed.
func (h *Hook) Changed() <-chan struct{} { return h.changed }

// Close kills what runs, or leaves it to the next agent, and waits unless the disk hangs. Want does
// nothing afterwards. Close reports whether no disk operation is left.
func (h *Hook) Close(keep bool) bool {
	h.records.stop()
	h.mu.Lock()
	h.closed = true
	if h.last != nil {
		why := errCalledOff
		if keep {
			why = errLeft
		}
		h.last.cancel(why)
	}
	h.mu.Unlock()
	tasks := func() <-chan struct{} { return endOf(&h.tasks) }
	if !inTime(killWait+diskWait, tasks, h.records.written) {
		h.log.Warn("drain hook's record or output is not written or read in time: the disk is slow")
		return false
	}
	return true
}

func (h *Hook) tell(token string) {
	h.mu.Lock()
	h.ended = token
	h.mu.Unlock()
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// follow carries out a drain, and reports whether its hook has ended. Without a token it only ends
// what an earlier agent left running.
func (h *Hook) follow(ctx context.Context, d Drain) (ended bool) {
	old, known, err := h.recall(ctx)
	if err != nil {
		return false
	}
	if known && (old.Token != d.Token || old.Boot != h.cfg.Boot) {
		h.discard(old)
		known = false
	}
	var p *process
	switch {
	case d.Token == "":
		return false
	case known && old.Exit != nil:
		return true // an earlier agent saw the end, and perhaps could not report it
	case known && old.runs():
		h.log.Info("drain hook of an earlier agent adopted", "token", d.Token, "pid", old.PID)
		p = &process{record: old.record}
	case known && old.PID == 0:
		h.log.Warn("drain hook may run: its agent ended as it started it", "token", d.Token)
		return past(ctx, d.left(old.Begun))
	case known:
		h.log.Warn("drain hook ended", "token", d.Token, "why", "it ended while no agent was there to see how")
		return true
	case len(d.Run) == 0:
		h.log.Info("drain has no hook", "token", d.Token)
		return true
	default:
		old = hookRecord{record: record{Boot: h.cfg.Boot}, Token: d.Token, Begun: time.Now()}
		if p, err = h.begin(ctx, d, old); err != nil {
			return ctx.Err() == nil // otherwise it was canceled
		}
		old.record = p.record
		h.put(old)
		h.log.Info("drain hook started", "token", d.Token, "pid", p.PID, "timeout", d.Timeout.String())
	}
	exit := h.await(ctx, p, d.left(old.Begun))
	if exit == nil {
		return false
	}
	h.conclude(old, exit)
	return true
}

// begin starts the hook once the disk has recorded that it does: if the agent is killed from here
// on, the next agent does not run the hook again.
func (h *Hook) begin(ctx context.Context, d Drain, first hookRecord) (*process, error) {
	h.put(first)
	if written := h.records.written(); written != nil {
		select {
		case <-written: // or the disk refuses to, which must not prevent the drain
		case <-ctx.Done():
		}
	}
	timed, cancel := context.WithTimeout(ctx, d.left(first.Begun))
	defer cancel()
	p, err := h.launch(timed, d)
	if err != nil {
		h.records.put(nil)
	}
	if err != nil && ctx.Err() == nil {
		h.log.Warn("drain hook ended", "token", d.Token, "why", "it could not be started: "+err.Error())
	}
	return p, err
}

func (h *Hook) put(r hookRecord) { h.records.put(&r) }

// left returns the time that is left for a drain.
func (d Drain) left(begun time.Time) time.Duration {
	return min(d.Timeout, d.Timeout-time.Since(begun))
}

// past waits for a time, and reports whether it has passed.
func past(ctx context.Context, left time.Duration) bool {
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// recall reads what an earlier agent or drain left. While the record cannot be read a hook may be
// running, so recall retries until ctx ends; that is the only error.
func (h *Hook) recall(ctx context.Context) (r hookRecord, known bool, err error) {
	for said := ""; ctx.Err() == nil; {
		if r, known, err = h.records.read(); err == nil {
			return r, known, ctx.Err() // the disk may have hung until the drain was canceled
		}
		if why := err.Error(); why != said {
			h.log.Warn("drain hook of an earlier agent is not known, and may run", "error", err)
			said = why
		}
		select {
		case <-ctx.Done():
		case <-time.After(readAgain):
		}
	}
	return r, false, ctx.Err()
}

// discard ends the recorded hook if it still runs.
func (h *Hook) discard(old hookRecord) {
	if old.runs() {
		h.log.Info("drain hook of an earlier agent is killed: its drain was called off", "token", old.Token, "pid",
			old.PID)
		h.kill(&process{record: old.record})
	}
	h.records.put(nil)
}

// launch starts the hook, unless its drain is canceled while the disk hangs.
func (h *Hook) launch(ctx context.Context, d Drain) (*process, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	argv, err := Expand("drain.hook", d.Run, d.Vars, h.cfg.Facts)
	if err != nil {
		return nil, err
	}
	out, err := h.out.open(true) // the file has the output of the last drain
	if err != nil {
		return nil, err
	}
	defer out.Close()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	cmd, rec, err := h.cfg.begin(ctx, argv, d.Vars, out)
	if err != nil {
		return nil, err
	}
	return &process{cmd: cmd, record: rec}, nil
}

// await returns how the hook ended, by itself or by its timeout; nil if it was canceled and killed,
// or left running.
func (h *Hook) await(ctx context.Context, p *process, left time.Duration) *Exit {
	timed, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	h.tasks.Go(func() { h.out.bound(timed, h.log) }) // it may hang, and must not delay the drain

	err := awaitEnd(timed, p.PID, p.Start)
	if err != nil && errors.Is(context.Cause(ctx), errLeft) {
		return nil
	}
	exit := h.kill(p) // ends what the hook left behind
	switch {
	case err == nil:
		return exit
	case ctx.Err() != nil:
		h.log.Info("drain hook killed: its drain was called off", "pid", p.PID)
		h.records.put(nil)
		return nil
	default:
		exit.Why = "killed when its time was over"
		return exit
	}
}

// kill ends the whole process group, and returns how its leader ended.
func (h *Hook) kill(p *process) *Exit {
	if err := signalGroup(p.PID, syscall.SIGKILL); err != nil {
		h.log.Warn("drain hook was not killed", "error", err, "pid", p.PID)
	}
	ctx, cancel := context.WithTimeout(context.Background(), killWait)
	defer cancel()
	exit := &Exit{Code: -1, Why: "it cannot be killed"}
	if awaitEnd(ctx, p.PID, p.Start) == nil {
		exit = p.result()
	}
	exit.At = time.Now()
	return exit
}

// conclude records the end, so that no later agent of this boot runs the hook again.
func (h *Hook) conclude(r hookRecord, exit *Exit) {
	if exit.Withheld = h.cfg.Secrets.Blind(); !exit.Withheld {
		exit.Output = h.out.saidSoon(h.cfg.Secrets)
	}
	r.Exit = exit
	h.put(r)
	level := slog.LevelInfo
	if exit.Code != 0 {
		level = slog.LevelWarn
	}
	said := exit.Output[max(0, len(exit.Output)-loggedOutput):]
	h.log.Log(context.Background(), level, "drain hook ended", "token", r.Token, "why", exit.Why, "code", exit.Code,
		"output", string(said))
}
