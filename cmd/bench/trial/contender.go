package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/crowd"
	"github.com/leasehold/leasehold/cmd/bench/parts"
	"github.com/leasehold/leasehold/cmd/bench/rivals"
)

// contender puts a shard with several replicas through the comparison. The leader is the judge.
// Pausing it pauses the agents' replica, too.
type contender struct {
	t        *Trial
	declared int
}

var _ rivals.Contender = (*contender)(nil)

// Contender returns the trial as a contender of the comparison. It must have an etcd of its own.
func (t *Trial) Contender() rivals.Contender { return &contender{t: t} }

// LetIn starts the other replicas and all agents, and waits until the leader has found all of them
// healthy.
func (c *contender) LetIn(ctx context.Context, tell rivals.Tell) error {
	c.t.deps.Tell = tell
	for _, r := range c.t.replicas[1:] {
		if err := c.t.startReplica(ctx, r); err != nil {
			return err
		}
	}
	var rampUp, settled float64
	return c.t.letIn(ctx, &rampUp, &settled)
}

// Settle waits until all agents have been served and healthy for a lease and no grace period runs.
func (c *contender) Settle(ctx context.Context, tell rivals.Tell) (since time.Time, err error) {
	c.t.deps.Tell = tell
	for {
		if since, err = c.wellFor(ctx, since, c.t.shard.LeaseTTL); err != nil {
			return since, err
		}
		if err := c.t.calm(ctx); err != nil { // may take long
			return since, err
		}
		before := since
		if since, err = c.wellFor(ctx, since, 0); err != nil || since.Equal(before) {
			return since, err
		}
	}
}

// wellFor waits until all agents have been served and healthy for the given time. If they still
// are, that time counts from since.
func (c *contender) wellFor(ctx context.Context, from time.Time, length time.Duration) (since time.Time, err error) {
	n := c.t.cfg.Agents
	since = from
	err = c.t.awaitCrowd(ctx, "", func(s crowd.Stats) (string, bool) {
		running, leased := c.t.seen.well()
		if s.Registered < n || running < n || leased < n {
			since = time.Time{}
			return fmt.Sprintf("%d of %d served, %d with a lease, %d healthy", s.Registered, n, leased, running),
				false
		}
		if since.IsZero() {
			since = time.Now()
		}
		return fmt.Sprintf("all healthy; this must last %s", length), time.Since(since) >= length
	})
	return since, err
}

// Etcd returns the trial's own etcd.
func (c *contender) Etcd() *parts.Part { return c.t.etcd }

// Judges returns the replicas.
func (c *contender) Judges() []*parts.Part {
	var all []*parts.Part
	for _, r := range c.t.replicas {
		all = append(all, r.Part)
	}
	return all
}

// Agents returns the processes of the crowd.
func (c *contender) Agents() []*parts.Part {
	var all []*parts.Part
	for _, p := range c.t.crowds.all {
		all = append(all, p.part)
	}
	return all
}

// Judge returns the replica that leads.
func (c *contender) Judge(ctx context.Context) (*parts.Part, error) {
	for _, r := range c.t.replicas {
		n, err := scrape(ctx, r)
		if err != nil {
			return nil, err
		}
		if n.Sum("leasehold_leader") > 0 {
			return r.Part, nil
		}
	}
	return nil, errors.New("no replica leads, though one did a moment ago")
}

// Declared counts the instances that the leader judged failed or gave up. Its waits are included.
func (c *contender) Declared(context.Context) (rivals.Declared, error) {
	c.declared += len(c.t.seen.wrongly(nil))
	c.t.seen.forget()
	return rivals.Declared{AtOnce: c.declared, Waiting: c.declared}, nil
}
