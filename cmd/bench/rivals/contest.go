package rivals

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
	"github.com/leasehold/leasehold/cmd/bench/parts"
)

// Contender is a way to know which agents are alive.
type Contender interface {
	// LetIn has all agents begin, and returns once each is known to be alive.
	LetIn(ctx context.Context) error
	// Settle returns once each is known to be alive, and nothing is pending by which one could be declared dead.
	Settle(ctx context.Context) error
	// Etcd is its etcd.
	Etcd() *parts.Part
	// Judges are the processes that know who is alive: a detector, or replicas. Agents are those in which the agents live.
	Judges() []*parts.Part
	Agents() []*parts.Part
	// Middle is a process between agents and etcd that can stall while the machines of its agents are well, and how many agents it serves.
	Middle() (*parts.Part, int)
	// Declared is how many were declared dead up to now. One that came back and was declared again counts twice.
	Declared(ctx context.Context) (int, error)
}

// Plan is what all contenders go through.
type Plan struct {
	Steady time.Duration // how long everyday is measured
	Stall  time.Duration // how long etcd and then a process in the middle stand still: longer than a lease
	// Tell is told what goes on.
	Tell func(what string)
}

// Figures are what came of it. Rates are of everyday.
type Figures struct {
	RampUp      float64 `json:"ramp_up_seconds"`
	EtcdCores   float64 `json:"etcd_cores"`
	JudgeCores  float64 `json:"judge_cores"`
	AgentCores  float64 `json:"agent_cores"`
	EtcdMemory  float64 `json:"etcd_memory_bytes"`
	JudgeMemory float64 `json:"judge_memory_bytes"`
	AgentMemory float64 `json:"agent_memory_bytes"`
	Requests    float64 `json:"etcd_requests_per_second"` // messages received, also on streams
	Streams     float64 `json:"etcd_calls_per_second"`    // calls and streams begun
	Proposals   float64 `json:"etcd_proposals_per_second"`
	Fsyncs      float64 `json:"etcd_fsyncs_per_second"`
	Growth      float64 `json:"etcd_growth_bytes_per_second"` // of the database

	EtcdStall   Stall `json:"etcd_stalled"`
	MiddleStall Stall `json:"middle_stalled"`
}

// Stall is what became of a time in which something stood still.
type Stall struct {
	Seconds  float64 `json:"seconds"`
	Agents   int     `json:"agents"`        // whom it concerned, all of them alive
	Declared int     `json:"declared_dead"` // of them
	Settled  float64 `json:"settled_seconds"`
}

// Contest has a contender go through the plan.
func Contest(ctx context.Context, c Contender, agents int, p Plan) (f Figures, err error) {
	begun := time.Now()
	p.Tell("agents begin")
	if err := c.LetIn(ctx); err != nil {
		return f, err
	}
	f.RampUp = time.Since(begun).Seconds()
	p.Tell("waiting until all is quiet")
	if err := c.Settle(ctx); err != nil {
		return f, err
	}
	p.Tell("measuring everyday for " + p.Steady.String())
	if err := everyday(ctx, c, p.Steady, &f); err != nil {
		return f, err
	}
	p.Tell("etcd stands still for " + p.Stall.String())
	if f.EtcdStall, err = stall(ctx, c, c.Etcd(), agents, p); err != nil {
		return f, err
	}
	middle, served := c.Middle()
	p.Tell("a process between agents and etcd stands still for " + p.Stall.String())
	f.MiddleStall, err = stall(ctx, c, middle, served, p)
	return f, err
}

// stall has a process stand still, and counts who is declared dead for it until all has settled again.
func stall(ctx context.Context, c Contender, who *parts.Part, agents int, p Plan) (Stall, error) {
	s := Stall{Agents: agents}
	before, err := c.Declared(ctx)
	if err != nil {
		return s, err
	}
	begun := time.Now()
	if err := who.Pause(); err != nil {
		return s, err
	}
	err = pass(ctx, p.Stall)
	s.Seconds = time.Since(begun).Seconds()
	if resumed := who.Resume(); resumed != nil && err == nil {
		err = resumed
	}
	if err != nil {
		return s, err
	}
	again := time.Now()
	p.Tell("waiting until all is as before")
	if err := c.Settle(ctx); err != nil {
		return s, err
	}
	s.Settled = time.Since(again).Seconds()
	after, err := c.Declared(ctx)
	s.Declared = after - before
	return s, err
}

func pass(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reading is what is read before and after everyday.
type reading struct {
	at    time.Time
	etcd  measure.Metrics
	usage [3]measure.Usage // etcd, judges, agents
}

func read(ctx context.Context, c Contender) (r reading, err error) {
	r.at = time.Now()
	if r.etcd, err = measure.MetricsOf(ctx, "http://"+c.Etcd().Address+"/metrics"); err != nil {
		return r, err
	}
	for i, all := range [][]*parts.Part{{c.Etcd()}, c.Judges(), c.Agents()} {
		for _, p := range all {
			u, err := measure.Read(p.PID())
			if err != nil {
				return r, err
			}
			r.usage[i].At = u.At
			r.usage[i].CPU += u.CPU
			r.usage[i].Memory += u.Memory
		}
	}
	return r, nil
}

// everyday measures what it costs that all are well.
func everyday(ctx context.Context, c Contender, length time.Duration, f *Figures) error {
	before, err := read(ctx, c)
	if err != nil {
		return err
	}
	if err := pass(ctx, length); err != nil {
		return err
	}
	after, err := read(ctx, c)
	if err != nil {
		return err
	}
	for i, to := range [][2]*float64{{&f.EtcdCores, &f.EtcdMemory}, {&f.JudgeCores, &f.JudgeMemory}, {&f.AgentCores, &f.AgentMemory}} {
		*to[0], *to[1] = measure.Cores(before.usage[i], after.usage[i]), float64(after.usage[i].Memory)
	}
	took := after.at.Sub(before.at).Seconds()
	for name, to := range map[string]*float64{
		"grpc_server_msg_received_total":             &f.Requests,
		"grpc_server_started_total":                  &f.Streams,
		"etcd_server_proposals_applied_total":        &f.Proposals,
		"etcd_disk_wal_fsync_duration_seconds_count": &f.Fsyncs,
		"etcd_mvcc_db_total_size_in_bytes":           &f.Growth,
	} {
		*to = (after.etcd.Sum(name) - before.etcd.Sum(name)) / took
	}
	return nil
}

// settleLimit is how long it may take until all is as before: after a stall of etcd thousands of leases are granted anew, and a leader waits out its grace.
const settleLimit = 3 * time.Minute

// await looks again and again until it is so. What does not become so ends with how far it came.
func await(ctx context.Context, so func(context.Context) (far string, done bool, err error)) error {
	limit := time.NewTimer(settleLimit)
	defer limit.Stop()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		far, done, err := so(ctx)
		if done || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-limit.C:
			return fmt.Errorf("not all is well after %s: %s", settleLimit, far)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
