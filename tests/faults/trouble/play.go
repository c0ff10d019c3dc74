package trouble

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/tests/faults/cluster"
)

// Play causes the faults of a plan, and returns when all of them are over. A fault that cannot be
// caused is skipped, which is recorded; one that cannot be undone is an error, because the rest of
// the run would mean nothing.
func Play(ctx context.Context, c *cluster.Cluster, p Plan) error {
	parts := &parts{taken: map[Part]bool{}, freed: make(chan struct{})}
	began := time.Now()
	failures := make([]error, len(p.Steps))
	var all sync.WaitGroup
	for i, step := range p.Steps {
		all.Go(func() {
			if !wait(ctx, time.Until(began.Add(step.After))) || !parts.take(ctx, step.Kind.Takes) {
				return
			}
			defer parts.free(step.Kind.Takes)
			failures[i] = happen(ctx, c, step)
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

func happen(ctx context.Context, c *cluster.Cluster, step Step) error {
	site := &Site{Cluster: c, Rand: rand.New(rand.NewPCG(step.Seed, step.Seed)), Lasts: step.Lasts}
	over := c.Trouble(step.Kind.Name, step.Kind.ManyCut)
	what, end, err := step.Kind.Do(ctx, site)
	var none errNoTarget
	switch {
	case errors.As(err, &none):
		what = "passed over: " + err.Error()
	case err != nil:
		what += fmt.Sprintf(" (failed: %v)", err)
	}
	c.Say("%s: %s", step.Kind.Name, what)
	if end != nil {
		wait(ctx, step.Lasts)
		err = end()
	}
	over(what)
	if end != nil && err != nil {
		return fmt.Errorf("%s: %s: undo it: %w", step.Kind.Name, what, err)
	}
	return nil
}

// wait reports whether the time passed before the context ended.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// parts are the parts of the cluster that faults have reserved.
type parts struct {
	mu    sync.Mutex
	taken map[Part]bool
	freed chan struct{} // closed when some are free again
}

// take waits until all parts are free, and reserves them.
func (p *parts) take(ctx context.Context, wanted []Part) bool {
	for {
		p.mu.Lock()
		free := !slices.ContainsFunc(wanted, func(w Part) bool { return p.taken[w] })
		if free {
			for _, w := range wanted {
				p.taken[w] = true
			}
		}
		freed := p.freed
		p.mu.Unlock()
		if free {
			return true
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

func (p *parts) free(had []Part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.taken, func(w Part, _ bool) bool { return slices.Contains(had, w) })
	close(p.freed)
	p.freed = make(chan struct{})
}
