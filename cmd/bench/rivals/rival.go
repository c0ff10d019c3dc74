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

// Config says what a rival is like.
type Config struct {
	Habit     Habit
	Agents    int
	Processes int // in which the agents live
	Shared    int // connections of each process; 0: each agent has its own
	Interval  time.Duration
	TTL       time.Duration
	Size      int     // bytes of a report
	Rate      float64 // how many agents begin in a second

	// Program and Env are what parts are started with: see parts.Spec.
	Program string
	Env     []string
}

// Rival is a contender that is made of clients of etcd.
type Rival struct {
	cfg      Config
	dir      string
	etcd     *parts.Part
	detector *remote
	agents   []*remote
	served   int // by the first process
}

var _ Contender = (*Rival)(nil)

// Begin starts an etcd and a detector. End must be called, also after an error.
func Begin(ctx context.Context, cfg Config) (*Rival, error) {
	r := &Rival{cfg: cfg}
	var err error
	if r.dir, err = os.MkdirTemp("", "leasehold-bench-"); err != nil {
		return r, err
	}
	r.etcd, err = parts.Start(ctx, parts.Spec{
		Name: "etcd", Dir: r.dir, Args: []string{"bench", "part", "etcd", "--dir", r.dir}, Program: cfg.Program, Env: cfg.Env,
	})
	if err != nil {
		return r, err
	}
	r.detector, err = r.start(ctx, "detector", Role{Detector: r.etcd.Address})
	return r, err
}

// start starts a process and connects to it.
func (r *Rival) start(ctx context.Context, name string, as Role) (*remote, error) {
	as.Socket = filepath.Join(r.dir, name+".sock")
	role, err := json.Marshal(as)
	if err != nil {
		return nil, err
	}
	p, err := parts.Start(ctx, parts.Spec{
		Name: name, Dir: r.dir, Args: []string{"bench", "part", "rival", "--as", string(role)}, Program: r.cfg.Program, Env: r.cfg.Env,
	})
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
func (r *Rival) LetIn(ctx context.Context) error {
	n := r.cfg.Processes
	for i := range n {
		first, next := r.cfg.Agents*i/n, r.cfg.Agents*(i+1)/n
		if i == 0 {
			r.served = next
		}
		a, err := r.start(ctx, fmt.Sprintf("agents-%d", i), Role{Agents: &AgentsConfig{
			Endpoint: r.etcd.Address, Habit: r.cfg.Habit, First: first, Count: next - first, Shared: r.cfg.Shared,
			Interval: r.cfg.Interval, TTL: r.cfg.TTL, Size: r.cfg.Size, Rate: r.cfg.Rate / float64(n),
		}})
		if err != nil {
			return err
		}
		r.agents = append(r.agents, a)
	}
	return r.allWell(ctx)
}

// Settle waits until all agents are well and have been for a lease, in which whatever was pending has ended.
func (r *Rival) Settle(ctx context.Context) error {
	if err := r.allWell(ctx); err != nil {
		return err
	}
	if err := pass(ctx, r.cfg.TTL); err != nil {
		return err
	}
	return r.allWell(ctx)
}

func (r *Rival) allWell(ctx context.Context) error {
	return await(ctx, func(ctx context.Context) (far string, done bool, err error) {
		registered, trouble := 0, "no trouble"
		for _, a := range r.agents {
			var s AgentsStats
			if err := a.ask(ctx, &s); err != nil {
				return far, false, err
			}
			registered += s.Registered
			if s.Registered < s.Count && s.Trouble != "" {
				trouble = s.Trouble
			}
		}
		var d DetectorStats
		err = r.detector.ask(ctx, &d)
		far = fmt.Sprintf("%d of %d agents report, %d are known to be alive; last of agents: %s", registered, r.cfg.Agents, d.Alive, trouble)
		return far, registered == r.cfg.Agents && d.Alive == r.cfg.Agents, err
	})
}

// Etcd is its etcd.
func (r *Rival) Etcd() *parts.Part { return r.etcd }

// Judges is the detector.
func (r *Rival) Judges() []*parts.Part { return []*parts.Part{r.detector.Part} }

// Agents are the processes of the agents.
func (r *Rival) Agents() []*parts.Part {
	var all []*parts.Part
	for _, a := range r.agents {
		all = append(all, a.Part)
	}
	return all
}

// Middle is the first process of agents: it stands for one that keeps the leases of many machines.
func (r *Rival) Middle() (*parts.Part, int) { return r.agents[0].Part, r.served }

// Declared asks the detector.
func (r *Rival) Declared(ctx context.Context) (int, error) {
	var d DetectorStats
	err := r.detector.ask(ctx, &d)
	return d.Declared, err
}

// Dir is where its parts log.
func (r *Rival) Dir() string { return r.dir }

// End ends everything. Logs are kept if it did not go well.
func (r *Rival) End(well bool) error {
	var errs []error
	for _, p := range append(r.agents, r.detector) {
		if p != nil {
			_ = p.calls.Close() // it is killed anyhow
			errs = append(errs, p.Kill())
		}
	}
	if r.etcd != nil {
		errs = append(errs, r.etcd.Kill())
	}
	if r.dir != "" && well {
		errs = append(errs, os.RemoveAll(r.dir))
	}
	return errors.Join(errs...)
}
