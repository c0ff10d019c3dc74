package rivals

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/parts"
)

// Contender is a system that knows which agents are alive.
type Contender interface {
	// LetIn starts all agents, and returns once each is known to be alive.
	LetIn(ctx context.Context, tell Tell) error
	// Settle returns once nothing is pending that could declare an agent dead. It returns since
	// when all have been known to be alive.
	Settle(ctx context.Context, tell Tell) (since time.Time, err error)
	// Etcd returns its etcd.
	Etcd() *parts.Part
	// Judges are the processes that detect dead agents: a detector, or replicas. Agents are those
	// in which the agents live.
	Judges() []*parts.Part
	Agents() []*parts.Part
	// Judge is the one among the judges that decides at present.
	Judge(ctx context.Context) (*parts.Part, error)
	// Declared returns how many agents were declared dead so far. One that came back and was
	// declared dead again counts twice.
	Declared(ctx context.Context) (Declared, error)
}

// Tell reports progress, about as often as a condition is polled.
type Tell func(doing, far string)

// Plan is what every contender is put through.
type Plan struct {
	Steady time.Duration // how long normal operation is measured
	Stall  time.Duration // how long etcd, and then the detecting process, are paused: longer than a lease
	// Begin and Settle bound how long it may take until all agents have begun, and until all is as
	// before.
	Begin, Settle time.Duration
	Tell          Tell
}

// Figures are the results. What was not measured is nil.
type Figures struct {
	RampUp     float64   `json:"ramp_up_seconds"`
	Everyday   *Everyday `json:"everyday"`
	EtcdStall  *Stall    `json:"etcd_stalled"`
	JudgeStall *Stall    `json:"judge_stalled"`
}

// Stall is what happened because a process was paused.
type Stall struct {
	Seconds  float64  `json:"seconds"`
	Declared Declared `json:"declared_dead"` // wrongly: all agents were alive
	// Back is the time after the pause until every agent was known to be alive for good; nil: not
	// in time.
	Back *float64 `json:"known_alive_after_seconds"`
}

// Contest puts a contender through the plan. After an error it returns the figures measured so far.
func Contest(ctx context.Context, c Contender, p Plan) (f Figures, err error) {
	begun := time.Now()
	if err := p.step(ctx, "agents begin", p.Begin, c.LetIn); err != nil {
		return f, err
	}
	f.RampUp = time.Since(begun).Seconds()
	if f.Everyday, err = everyday(ctx, c, p); err != nil {
		return f, err
	}
	if _, err := p.settle(ctx, c, "waiting until nothing is pending"); err != nil {
		return f, err
	}
	if f.EtcdStall, err = p.stall(ctx, c, "etcd", c.Etcd()); err != nil {
		return f, err
	}
	judge, err := c.Judge(ctx)
	if err != nil {
		return f, err
	}
	f.JudgeStall, err = p.stall(ctx, c, "the detector", judge)
	return f, err
}

// step runs a function with a time limit. The error says how far it came.
func (p Plan) step(ctx context.Context, what string, limit time.Duration, do func(context.Context, Tell) error) error {
	p.Tell(what, "")
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	last := ""
	err := do(limited, func(doing, far string) {
		last = strings.TrimSpace(doing + " " + far)
		p.Tell(what, last)
	})
	if err == nil || limited.Err() == nil || ctx.Err() != nil {
		return err
	}
	if last == "" {
		last = err.Error()
	}
	return fmt.Errorf("%s: not finished within %s: %s", what, limit, last)
}

func (p Plan) settle(ctx context.Context, c Contender, what string) (since time.Time, err error) {
	err = p.step(ctx, what, p.Settle, func(ctx context.Context, tell Tell) (err error) {
		since, err = c.Settle(ctx, tell)
		return err
	})
	return since, err
}

// stall pauses a process, and counts the agents that are declared dead until all has settled again.
func (p Plan) stall(ctx context.Context, c Contender, name string, who *parts.Part) (*Stall, error) {
	before, err := c.Declared(ctx)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := who.Pause(); err != nil {
		return nil, err
	}
	err = p.pass(ctx, name+" is paused", p.Stall)
	again := time.Now()
	if resumed := who.Resume(); resumed != nil && err == nil {
		err = resumed
	}
	if err != nil {
		return nil, err
	}
	s := &Stall{Seconds: again.Sub(begun).Seconds()}
	since, late := p.settle(ctx, c, name+" resumes")
	if late == nil {
		back := max(0, since.Sub(again).Seconds())
		s.Back = &back
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	after, err := c.Declared(ctx)
	if err != nil {
		return nil, err
	}
	s.Declared = Declared{AtOnce: after.AtOnce - before.AtOnce, Waiting: after.Waiting - before.Waiting}
	return s, late
}

// pass waits for a duration and reports how much of it is left.
func (p Plan) pass(ctx context.Context, what string, length time.Duration) error {
	end := time.Now().Add(length)
	return look(ctx, func(context.Context) (bool, error) {
		left := time.Until(end)
		p.Tell(what, left.Round(time.Second).String()+" left")
		return left <= 0, nil
	})
}

// lookEvery is how often a condition is polled.
const lookEvery = 200 * time.Millisecond

// look polls a condition until it holds.
func look(ctx context.Context, so func(context.Context) (bool, error)) error {
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		done, err := so(ctx)
		if done || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
