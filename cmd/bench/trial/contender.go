package trial

import (
	"context"

	"github.com/leasehold/leasehold/cmd/bench/crowd"
	"github.com/leasehold/leasehold/cmd/bench/parts"
	"github.com/leasehold/leasehold/cmd/bench/rivals"
)

// contender has a shard with two replicas go through what rivals go through. The one that leads is the one that stalls, with the agents that it serves.
type contender struct {
	t        *Trial
	served   int // by the first replica, when all was well last
	declared int
}

var _ rivals.Contender = (*contender)(nil)

// Contender is the trial as one of those that are compared. It must have an etcd of its own.
func (t *Trial) Contender() rivals.Contender { return &contender{t: t} }

// LetIn starts the other replicas and all agents, and waits until the leader has found all of them well.
func (c *contender) LetIn(ctx context.Context) error {
	for _, r := range c.t.replicas[1:] {
		if err := c.t.startReplica(ctx, r); err != nil {
			return err
		}
	}
	var rampUp, settled float64
	return c.t.letIn(ctx, &rampUp, &settled)
}

// Settle waits until all agents are served and found well and no grace runs, and have been for a lease.
func (c *contender) Settle(ctx context.Context) error {
	if err := c.allWell(ctx); err != nil {
		return err
	}
	if err := c.t.pass(ctx, "seeing whether it stays so", c.t.shard.LeaseTTL); err != nil {
		return err
	}
	return c.allWell(ctx)
}

func (c *contender) allWell(ctx context.Context) error {
	n := c.t.cfg.Agents
	err := c.t.awaitCrowd(ctx, "all agents being served", func(s crowd.Stats) (string, bool) {
		c.served = s.Served[c.t.replicas[0].id]
		return of(s.Registered, n, "agents"), s.Registered == n
	})
	if err != nil {
		return err
	}
	err = c.t.await(ctx, "the leader finding them well", func() (string, bool) {
		running := c.t.seen.running()
		return of(running, n, "instances"), running >= n
	})
	if err != nil {
		return err
	}
	return c.t.calm(ctx)
}

// Etcd is the trial's own.
func (c *contender) Etcd() *parts.Part { return c.t.etcd }

// Judges are the replicas.
func (c *contender) Judges() []*parts.Part {
	var all []*parts.Part
	for _, r := range c.t.replicas {
		all = append(all, r.Part)
	}
	return all
}

// Agents are the processes of the crowd.
func (c *contender) Agents() []*parts.Part {
	var all []*parts.Part
	for _, p := range c.t.crowds.all {
		all = append(all, p.part)
	}
	return all
}

// Middle is the first replica.
func (c *contender) Middle() (*parts.Part, int) { return c.t.replicas[0].Part, c.served }

// Declared counts whom the leader judged to have failed, or gave up.
func (c *contender) Declared(context.Context) (int, error) {
	c.declared += len(c.t.seen.wrongly(nil))
	c.t.seen.forget()
	return c.declared, nil
}
