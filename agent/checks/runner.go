package checks

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/workload"
)

// Config is where checks are done.
type Config struct {
	// Place is the workload's: its facts, and for commands its directory and environment.
	Place workload.Config
}

// Deps are what a Runner works with.
type Deps struct {
	Logger *slog.Logger
	// Rand gives numbers in [0,1) for jitter; nil is a good source.
	Rand func() float64
}

// Wanted are the checks to do.
type Wanted struct {
	Specs []*protocol.CheckSpec
	Vars  map[string]string
	// Assume is the verdict with which a check begins that is new, or changed.
	Assume bool
	// Known are the verdicts that an earlier run of the agent came to, by the check's name; pending
	// ones are to be found out at once.
	Known map[string]Verdict
}

// State is how a check stands.
type State struct {
	Name, Kind string
	Optional   bool
	Verdict
	Threshold int           // so many results against the verdict change it
	Took      time.Duration // the last run
}

// Runner does checks. Its methods can be called at any time; only Close waits, and not for ever.
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
	number int // of the secrets
	checks []*check
	dying  []*check // called off, and a run of it may not have ended
}

// check is one check under way. What is below the line is guarded by the runner's mutex.
type check struct {
	spec   *protocol.CheckSpec // expanded
	cancel context.CancelFunc
	over   chan struct{} // closed when nothing of it runs any more

	verdict Verdict
	took    time.Duration
}

// New starts nothing.
func New(cfg Config, deps Deps) (*Runner, error) {
	if deps.Logger == nil {
		return nil, errors.New("new checks: no logger")
	}
	if deps.Rand == nil {
		deps.Rand = rand.Float64
	}
	return &Runner{cfg: cfg, log: deps.Logger, rand: deps.Rand, changed: make(chan struct{}, 1), prepare: prepare}, nil
}

// Want says which checks to do from now on. One that is as before goes on as it is; one of which
// only what its command sees has changed keeps its verdict.
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
		old  *check // the same check as it was before; nil: there was none
		goes bool   // on, as it is
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
			if !known.Pending { // else there is something to find out
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

// share returns some part of the interval, so that checks which begin together do not go on
// together.
func (r *Runner) share(spec *protocol.CheckSpec) time.Duration {
	return time.Duration(r.rand() * float64(spec.GetInterval().AsDuration()))
}

// endWait is how long a run that was called off may take to end. One that is stuck in the kernel
// never does.
const endWait = 5 * time.Second

// begin starts a check. One whose predecessor of the same name still runs begins when that has
// ended, or does not end. The caller has the lock.
func (r *Runner) begin(c *check, wrong error, wait time.Duration) {
	// its command would miss what its environment has to have
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
				r.log.Warn("a run of this check that was called off does not end", "check", c.spec.GetName())
				r.follow(ctx, c, run, wait)
				return
			}
		}
		r.follow(ctx, c, run, wait)
	})
}

// sameName lists what was called off, or is about to be, and has the name of the check; what has
// ended is forgotten.
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

// leastPause keeps a wrong interval from taking the machine's time.
const leastPause = 10 * time.Millisecond

// follow does one check until it is called off. A run that was begun is waited for.
func (r *Runner) follow(ctx context.Context, c *check, run probe, wait time.Duration) {
	interval, timeout := max(c.spec.GetInterval().AsDuration(), leastPause), c.spec.GetTimeout().AsDuration()
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
	// Nearly all end a moment later; one that has just passed has not passed in time.
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

// tell takes a result over, unless the check was called off.
func (r *Runner) tell(ctx context.Context, c *check, result Result, took time.Duration) {
	r.mu.Lock()
	if ctx.Err() != nil {
		r.mu.Unlock()
		return
	}
	if result != "" && r.cfg.Place.Secrets.Blind() {
		result = "it fails; why is told once the secrets are known that it may speak of"
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

// mostWhy bounds why a check fails.
const mostWhy = 500

// bounded returns the result as it can be told: valid text, not too long.
func (r Result) bounded() Result {
	if len(r) > mostWhy {
		r = r[:mostWhy] + "..."
	}
	return Result(strings.ToValidUTF8(string(r), "?"))
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

// Changed signals that a check has come to a verdict; several may be told once.
func (r *Runner) Changed() <-chan struct{} { return r.changed }

// Close calls everything off and waits for what ends. Want does nothing afterwards.
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
