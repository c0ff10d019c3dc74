package checks

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/workload"
	"github.com/leasehold/leasehold/provider/clip"
)

// Config is the environment in which checks run.
type Config struct {
	// Place is the workload's: its facts and, for commands, its directory and environment.
	Place workload.Config
}

// Deps are a Runner's dependencies.
type Deps struct {
	Logger *slog.Logger
	// Rand returns numbers in [0,1) for jitter; nil: math/rand/v2.
	Rand func() float64
}

// Wanted are the checks to run.
type Wanted struct {
	Specs []*protocol.CheckSpec
	Vars  map[string]string
	// Assume is the verdict with which a new or changed check begins.
	Assume bool
	// Known are the verdicts that an earlier run of the agent reached, by the check's name. A
	// pending one is decided by the next result.
	Known map[string]Verdict
}

// State is the current state of a check.
type State struct {
	Name, Kind string
	Optional   bool
	Verdict
	Threshold int           // this many contrary results change the verdict
	Took      time.Duration // the last run
}

// Runner runs checks. Its methods can be called at any time; only Close waits, for a limited time.
type Runner struct {
	cfg     Config
	log     *slog.Logger
	rand    func() float64
	changed chan struct{}
	prepare func(*protocol.CheckSpec, workload.Config, map[string]string) (probe, error)
	tasks   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	vars   map[string]string
	number int // version of the secrets
	checks []*check
	dying  []*check // canceled checks, a run of which may not have ended
}

// check is a check under way. The runner's mutex guards the fields below the line.
type check struct {
	spec   *protocol.CheckSpec // with expanded texts
	cancel context.CancelFunc
	over   chan struct{} // closed when nothing of it runs any longer

	verdict Verdict
	took    time.Duration
}

// New returns a Runner and starts nothing.
func New(cfg Config, deps Deps) (*Runner, error) {
	if deps.Logger == nil {
		return nil, errors.New("new checks: no logger")
	}
	if deps.Rand == nil {
		deps.Rand = rand.Float64
	}
	return &Runner{cfg: cfg, log: deps.Logger, rand: deps.Rand, changed: make(chan struct{}, 1), prepare: prepare}, nil
}

// Want sets the checks to run from now on. An unchanged check continues. If only the environment of
// its command has changed, it keeps its verdict.
func (r *Runner) Want(w Wanted) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	number := r.cfg.Place.Secrets.Number()
	sameVars := maps.Equal(w.Vars, r.vars) && number == r.number
	r.vars, r.number = maps.Clone(w.Vars), number
	type order struct {
		spec *protocol.CheckSpec
		err  error
		old  *check // the same check as before; nil: there was none
		goes bool   // continues unchanged
	}
	orders := make([]order, len(w.Specs))
	before := map[string]*check{}
	for _, c := range r.checks {
		before[c.spec.GetName()] = c
	}
	for i, spec := range w.Specs {
		o := &orders[i]
		o.spec, o.err = expand(spec, w.Vars, r.cfg.Place.Facts)
		if old := before[o.spec.GetName()]; old != nil && proto.Equal(old.spec, o.spec) {
			o.old, o.goes = old, sameVars || o.spec.GetExec() == nil
			if o.goes {
				delete(before, o.spec.GetName())
			}
		}
	}
	for _, c := range before {
		c.cancel()
		r.dying = append(r.dying, c)
	}
	r.checks = nil
	now := time.Now()
	for _, o := range orders {
		if o.goes {
			r.checks = append(r.checks, o.old)
			continue
		}
		c := &check{spec: o.spec, verdict: Assume(w.Assume, now), over: make(chan struct{})}
		wait := time.Duration(0)
		if known, isKnown := w.Known[o.spec.GetName()]; isKnown {
			c.verdict = known.Kept()
			if !known.Pending { // else something must be decided first
				wait = r.share(o.spec)
			}
		}
		if o.old != nil {
			c.verdict, wait = o.old.verdict.Kept(), r.share(o.spec)
		}
		r.checks = append(r.checks, c)
		r.begin(c, o.err, wait)
	}
}

// share returns a random part of the interval, so that checks that begin together do not stay in
// step.
func (r *Runner) share(spec *protocol.CheckSpec) time.Duration {
	return time.Duration(r.rand() * float64(spec.GetInterval().AsDuration()))
}

// endWait is how long a canceled run may take to end. A run that is stuck in the kernel never ends.
const endWait = 5 * time.Second

// begin starts a check. If a predecessor of the same name still runs, the check begins when that
// has ended or endWait is over. r.mu must be held.
func (r *Runner) begin(c *check, wrong error, wait time.Duration) {
	// its command would lack a part of its environment
	if c.spec.GetExec() != nil && r.cfg.Place.Secrets.Blind() {
		c.cancel = func() {}
		close(c.over)
		return
	}
	run, err := probe(nil), wrong
	if err == nil {
		run, err = r.prepare(c.spec, r.cfg.Place, r.vars)
	}
	if err != nil {
		r.log.Warn("check cannot pass", "check", c.spec.GetName(), "error", err)
		why := Result(err.Error())
		run = func(context.Context) Result { return why }
	}
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(context.Background())
	earlier := r.sameName(c)
	r.tasks.Go(func() {
		defer close(c.over)
		defer c.cancel()
		late := time.NewTimer(endWait)
		defer late.Stop()
		for _, e := range earlier {
			select {
			case <-e.over:
			case <-ctx.Done():
				return
			case <-late.C:
				r.log.Warn("a canceled run of this check does not end", "check", c.spec.GetName())
				r.follow(ctx, c, run, wait)
				return
			}
		}
		r.follow(ctx, c, run, wait)
	})
}

// sameName lists the checks of the same name that were canceled or are about to be. It forgets
// those that have ended.
func (r *Runner) sameName(c *check) []*check {
	var same, left []*check
	for _, d := range r.dying {
		select {
		case <-d.over:
			continue
		default:
		}
		left = append(left, d)
		if d.spec.GetName() == c.spec.GetName() {
			same = append(same, d)
		}
	}
	r.dying = left
	return same
}

// minPause keeps a wrong interval from using up the machine's time.
const minPause = 10 * time.Millisecond

// follow runs a check until it is canceled, and waits for a run that has begun.
func (r *Runner) follow(ctx context.Context, c *check, run probe, wait time.Duration) {
	interval, timeout := max(c.spec.GetInterval().AsDuration(), minPause), c.spec.GetTimeout().AsDuration()
	first := wait == 0
	next := time.NewTimer(wait)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		pause := interval
		if first {
			first = false
			pause = interval/2 + time.Duration(r.rand()*float64(interval/2)) // see share
		}
		next.Reset(pause)
		if !r.runOnce(ctx, c, run, timeout, interval) {
			return
		}
	}
}

// runOnce runs a check once and records the result. A run that exceeds its timeout counts as a
// failure then, and again each interval until it has ended. runOnce reports whether to continue.
func (r *Runner) runOnce(ctx context.Context, c *check, run probe, timeout, interval time.Duration) bool {
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ended := make(chan Result, 1)
	r.tasks.Go(func() { ended <- run(bounded) })
	select {
	case result := <-ended:
		r.tell(ctx, c, result, time.Since(began))
		return ctx.Err() == nil
	case <-bounded.Done():
	}
	// Nearly all runs end a moment later. One that passes now has not passed in time.
	again := time.NewTicker(interval)
	defer again.Stop()
	for {
		r.tell(ctx, c, timedOut, time.Since(began))
		select {
		case <-ended:
			return ctx.Err() == nil
		case <-ctx.Done():
			<-ended
			return false
		case <-again.C:
		}
	}
}

// tell records a result, unless the check was canceled.
func (r *Runner) tell(ctx context.Context, c *check, result Result, took time.Duration) {
	r.mu.Lock()
	if ctx.Err() != nil {
		r.mu.Unlock()
		return
	}
	if result != "" && r.cfg.Place.Secrets.Blind() {
		result = "it fails; the reason is shown once the secrets have arrived that it may contain"
	}
	result = Result(r.cfg.Place.Secrets.Veil(string(result)))
	was := c.verdict
	next, decided := was.After(result.bounded(), rulesOf(c.spec), time.Now())
	c.verdict, c.took = next, took
	r.mu.Unlock()
	if !decided {
		return
	}
	r.log.Info("check has a verdict", "check", c.spec.GetName(), "healthy", next.Healthy, "why", next.Why)
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// maxWhy bounds the length of a check's reason.
const maxWhy = 500

// bounded returns the result as valid text of limited length.
func (r Result) bounded() Result {
	return Result(clip.Marked(string(r), maxWhy))
}

func rulesOf(spec *protocol.CheckSpec) Rules {
	return Rules{Unhealthy: int(spec.GetUnhealthyThreshold()), Healthy: int(spec.GetHealthyThreshold())}
}

// States returns the state of every check, in the order of the configuration.
func (r *Runner) States() []State {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]State, len(r.checks))
	for i, c := range r.checks {
		rules := rulesOf(c.spec)
		out[i] = State{
			Name: c.spec.GetName(), Kind: Kind(c.spec), Optional: c.spec.GetOptional(), Verdict: c.verdict,
			Threshold: rules.Healthy, Took: c.took,
		}
		if c.verdict.Healthy {
			out[i].Threshold = rules.Unhealthy
		}
	}
	return out
}

// Changed signals a new verdict. One signal may stand for several changes.
func (r *Runner) Changed() <-chan struct{} { return r.changed }

// Close cancels all checks and waits for those that end. Want does nothing afterwards.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	for _, c := range r.checks {
		c.cancel()
	}
	r.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		r.tasks.Wait()
		close(ended)
	}()
	late := time.NewTimer(endWait)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		r.log.Warn("a run of a check does not end")
	}
}
