package trial

import (
	"context"
	"errors"
	"hash/fnv"
	"path/filepath"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/crowd"
	"github.com/leasehold/leasehold/cmd/bench/parts"
)

// crowds are the agents, distributed over processes by their names.
type crowds struct{ all []*crowdPart }

type crowdPart struct {
	part   *parts.Part
	remote *remote
}

func (t *Trial) startCrowdPart(ctx context.Context, number int, coordinators []string, rate float64) (*crowdPart,
	error,
) {
	name := "agents-" + strconv.Itoa(number+1)
	p, err := t.start(ctx, name, nil, "crowd", "--socket", filepath.Join(t.dir, name+".sock"))
	if err != nil {
		return nil, err
	}
	c := &crowdPart{part: p}
	c.remote, err = dialCrowd(p.Address, crowd.Config{
		ShardID: t.shard.ID, Coordinators: coordinators, Interval: t.cfg.Interval, Shared: t.cfg.Shared,
		Authority: filepath.Join(t.dir, "pki"),
		Warm:      t.cfg.Shared == 0 && t.cfg.Replicas > 1, Rate: rate, Version: t.deps.Version,
	})
	return c, err
}

func (c *crowdPart) close() {
	if c.remote != nil {
		_ = c.remote.Close() // its process ends with the trial
	}
}

// split returns the agents of each process.
func (c *crowds) split(instances []string) [][]string {
	out := make([][]string, len(c.all))
	for _, id := range instances {
		h := fnv.New32a()
		_, _ = h.Write([]byte(id))
		at := h.Sum32() % uint32(len(c.all))
		out[at] = append(out[at], id)
	}
	return out
}

func (c *crowds) each(instances []string, do func(*remote, []string) error) error {
	var errs []error
	for i, ids := range c.split(instances) {
		if len(ids) > 0 {
			errs = append(errs, do(c.all[i].remote, ids))
		}
	}
	return errors.Join(errs...)
}

func (c *crowds) add(ids []string) error {
	return c.each(ids, func(r *remote, ids []string) error { return r.Add(ids) })
}

func (c *crowds) silence(ids []string, how crowd.How) error {
	return c.each(ids, func(r *remote, ids []string) error { return r.Silence(ids, how) })
}

func (c *crowds) bringBack(ids []string) error {
	return c.each(ids, func(r *remote, ids []string) error { return r.Return(ids) })
}

func (c *crowds) remove(ids []string) error {
	return c.each(ids, func(r *remote, ids []string) error { return r.Remove(ids) })
}

// stats returns the sums over all crowds.
func (c *crowds) stats() (crowd.Stats, error) {
	var all crowd.Stats
	for _, p := range c.all {
		s, err := p.remote.Stats()
		if err != nil {
			return all, err
		}
		all.Add(s)
	}
	return all, nil
}

// statsEvery is how often the agents are asked while the bench waits.
const statsEvery = 250 * time.Millisecond

// awaitCrowd waits until the agents' own counts meet a condition.
func (t *Trial) awaitCrowd(ctx context.Context, doing string, so func(crowd.Stats) (far string, done bool)) error {
	var next time.Time
	var far string
	var done bool
	err := t.await(ctx, doing, func() (string, bool) {
		if now := time.Now(); now.After(next) {
			s, err := t.crowds.stats()
			if err != nil {
				t.note(err)
				return far, false
			}
			far, done = so(s)
			next = now.Add(statsEvery)
		}
		return far, done
	})
	return err
}
