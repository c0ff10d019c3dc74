package rivals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/rpc"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/parts"
)

// Config describes a contender made of etcd clients.
type Config struct {
	Habit    Habit
	Agents   int
	Shared   int // connections that all agents share; 0: each has its own
	Interval time.Duration
	TTL      time.Duration
	Size     int     // size of a report in bytes
	Rate     float64 // how many agents begin per second

	// Program and Env are what parts are started with: see parts.Spec.
	Program string
	Env     []string
}

// Rival is a contender made of etcd clients.
type Rival struct {
	cfg      Config
	dir      string
	etcd     *parts.Part
	detector *remote
	agents   *remote
}

var _ Contender = (*Rival)(nil)

// patientFor is for how many intervals the waiting detector waits.
const patientFor = 2

// Begin starts an etcd and a detector. End must be called, also after an error.
func Begin(ctx context.Context, cfg Config) (*Rival, error) {
	r := &Rival{cfg: cfg}
	var err error
	if r.dir, err = os.MkdirTemp("", "leasehold-bench-"); err != nil {
		return r, err
	}
	if r.etcd, err = r.startPart(ctx, "etcd", "etcd", "--dir", r.dir); err != nil {
		return r, err
	}
	r.detector, err = r.start(ctx, "detector", Role{Detector: r.etcd.Address, Patience: patientFor * cfg.Interval})
	return r, err
}

// startLimit is how long a process may take until it serves.
const startLimit = time.Minute

// startPart starts a process.
func (r *Rival) startPart(ctx context.Context, name string, args ...string) (*parts.Part, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return parts.Start(ctx, parts.Spec{
		Name: name, Dir: r.dir, Args: append([]string{"part"}, args...),
		Program: r.cfg.Program, Env: r.cfg.Env,
	})
}

// start starts a process that can be asked for its figures.
func (r *Rival) start(ctx context.Context, name string, as Role) (*remote, error) {
	as.Socket = filepath.Join(r.dir, name+".sock")
	role, err := json.Marshal(as)
	if err != nil {
		return nil, err
	}
	p, err := r.startPart(ctx, name, "rival", "--as", string(role))
	if err != nil {
		return nil, err
	}
	calls, err := rpc.Dial("unix", as.Socket)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", name, err), p.Kill())
	}
	return &remote{Part: p, calls: calls}, nil
}

// LetIn starts the agents.
func (r *Rival) LetIn(ctx context.Context, tell Tell) (err error) {
	r.agents, err = r.start(ctx, "agents", Role{Agents: &AgentsConfig{
		Endpoint: r.etcd.Address, Habit: r.cfg.Habit, Count: r.cfg.Agents, Shared: r.cfg.Shared,
		Interval: r.cfg.Interval, TTL: r.cfg.TTL, Size: r.cfg.Size, Rate: r.cfg.Rate,
	}})
	if err != nil {
		return err
	}
	_, err = r.wellFor(ctx, 0, tell)
	return err
}

// Settle waits until all agents have been healthy for a lease. In that time everything pending has
// ended.
func (r *Rival) Settle(ctx context.Context, tell Tell) (since time.Time, err error) {
	return r.wellFor(ctx, r.cfg.TTL, tell)
}

// wellFor waits until all agents have been healthy for the given time.
func (r *Rival) wellFor(ctx context.Context, length time.Duration, tell Tell) (since time.Time, err error) {
	err = look(ctx, func(ctx context.Context) (bool, error) {
		far, well, err := r.allWell(ctx)
		switch {
		case err != nil:
			return false, err
		case !well:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		}
		if well {
			far = fmt.Sprintf("all healthy; this must last %s", length)
		}
		tell("", far)
		return well && time.Since(since) >= length, nil
	})
	return since, err
}

// allWell asks whether all agents report and are known to be alive.
func (r *Rival) allWell(ctx context.Context) (far string, well bool, err error) {
	var a AgentsStats
	if err := r.agents.ask(ctx, &a); err != nil {
		return "", false, err
	}
	var d DetectorStats
	if err := r.detector.ask(ctx, &d); err != nil {
		return "", false, err
	}
	n := r.cfg.Agents
	far = fmt.Sprintf("%d of %d report, %d known alive", a.Registered, n, d.Alive)
	if a.Registered < n && a.Trouble != "" {
		far += "; " + a.Trouble
	}
	return far, a.Registered == n && d.Alive == n, nil
}

// Etcd returns its etcd.
func (r *Rival) Etcd() *parts.Part { return r.etcd }

// Judges returns the detector.
func (r *Rival) Judges() []*parts.Part { return []*parts.Part{r.detector.Part} }

// Judge returns the detector.
func (r *Rival) Judge(context.Context) (*parts.Part, error) { return r.detector.Part, nil }

// Agents returns the agents' process.
func (r *Rival) Agents() []*parts.Part { return []*parts.Part{r.agents.Part} }

// Declared asks the detector.
func (r *Rival) Declared(ctx context.Context) (Declared, error) {
	var d DetectorStats
	err := r.detector.ask(ctx, &d)
	return d.Declared, err
}

// Dir returns the directory of the logs.
func (r *Rival) Dir() string { return r.dir }

// End stops everything. It keeps the logs after a failure.
func (r *Rival) End(well bool) error {
	var errs []error
	for _, p := range []*remote{r.agents, r.detector} {
		if p != nil {
			_ = p.calls.Close() // it is killed in any case
			errs = append(errs, p.Kill())
		}
	}
	if r.etcd != nil {
		errs = append(errs, r.etcd.Kill())
	}
	switch {
	case r.dir == "":
	case well:
		errs = append(errs, os.RemoveAll(r.dir))
	default:
		errs = append(errs, os.RemoveAll(filepath.Join(r.dir, "etcd"))) // its data is not needed
	}
	return errors.Join(errs...)
}
