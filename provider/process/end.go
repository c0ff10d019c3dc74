package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// Stop asks the agent to end, waits for it up to the timeout, and kills what is left of the
// machine. The lock is not held while waiting, so that Delete can cut the wait short.
func (p *Provider) Stop(ctx context.Context, shard, instance string, timeout time.Duration) error {
	if err := checkNames(shard, instance); err != nil {
		return err
	}
	if err := p.stop(ctx, shard, instance, timeout); err != nil {
		return fmt.Errorf("stop machine %s: %w", instance, err)
	}
	return nil
}

func (p *Provider) stop(ctx context.Context, shard, instance string, timeout time.Duration) error {
	var asked record
	var known kin
	err := p.locked(ctx, instance, func() (err error) {
		if asked, err = p.find(shard, instance); err != nil {
			return err
		}
		asked, known, err = p.askToEnd(ctx, asked)
		return err
	})
	if errors.Is(err, errAbsent) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := p.awaitEnd(ctx, asked, timeout); err != nil {
		return err
	}
	return p.locked(ctx, instance, func() error {
		r, err := p.find(shard, instance)
		if errors.Is(err, errAbsent) || err == nil && r.BootID != asked.BootID {
			return nil // deleted, or started again by a later call: the boot that was to stop has
		}
		if err != nil {
			return err
		}
		_, err = p.finish(ctx, r, known)
		return err
	})
}

// askToEnd records that the machine is to stop and sends the agent SIGTERM. A machine that has
// ended by itself keeps the record of how.
func (p *Provider) askToEnd(ctx context.Context, r record) (record, kin, error) {
	r, err := p.adopt(ctx, r)
	if err != nil {
		return r, nil, err
	}
	runs, err := p.agentRuns(r)
	if err != nil {
		return r, nil, err
	}
	if (runs || r.State == stepStarting) && r.State != stepStopping {
		r.State = stepStopping
		if err := p.write(r); err != nil {
			return r, nil, err
		}
	}
	known, err := p.relatives(ctx, r)
	if err != nil || !runs {
		return r, known, err
	}
	id, _ := p.agent(r)
	return r, known, id.signal(syscall.SIGTERM)
}

// awaitEnd returns when the agent has ended or the timeout has passed; an error when ctx ended or
// the process could not be looked at.
func (p *Provider) awaitEnd(ctx context.Context, r record, timeout time.Duration) error {
	limit, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for wait := time.Millisecond; ; {
		runs, err := p.agentRuns(r)
		if err != nil || !runs {
			return err
		}
		if pause(limit, &wait, 100*time.Millisecond) != nil {
			return ctx.Err()
		}
	}
}

// finish kills what is left of a machine and records that nothing runs, and how the agent ended.
func (p *Provider) finish(ctx context.Context, r record, known kin) (record, error) {
	if err := p.sweep(ctx, r.marker(), known); err != nil {
		return r, err
	}
	before := r
	if id, ok := p.agent(r); ok && r.Exit == nil {
		r.Exit = id.reap()
	}
	for id := range known {
		id.reap() // orphans are our children where we are the host's first process
	}
	if r.State == stepStopping {
		r.State = stepStopped
	}
	if r == before {
		return r, nil
	}
	p.log.Info("machine stopped", "group", r.Group, "instance", r.Instance, "why", r.Exit.String())
	return r, p.write(r)
}

// end stops a machine. The caller holds its lock.
func (p *Provider) end(ctx context.Context, r record, timeout time.Duration) (record, error) {
	r, known, err := p.askToEnd(ctx, r)
	if err != nil {
		return r, err
	}
	if err := p.awaitEnd(ctx, r, timeout); err != nil {
		return r, err
	}
	return p.finish(ctx, r, known)
}

// Restart ends the machine, in order if it does so within its stop timeout and half a call, and
// boots it again. Where another boot than the one named was begun already, nothing is left to do,
// unless its agent never came to run.
func (p *Provider) Restart(ctx context.Context, shard, instance, boot string) error {
	if err := checkNames(shard, instance); err != nil {
		return err
	}
	err := p.locked(ctx, instance, func() error {
		r, err := p.find(shard, instance)
		if err != nil {
			return err
		}
		if boot != "" && r.BootID != boot {
			if r, err = p.adopt(ctx, r); err != nil || r.State != stepStarting && r.State != stepFailed {
				return err
			}
		}
		if r, err = p.end(ctx, r, min(p.stopTimeout(instance), orderlyEnd)); err != nil {
			return err
		}
		_, err = p.boot(r)
		return err
	})
	if errors.Is(err, errAbsent) {
		err = provider.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("restart machine %s: %w", instance, err)
	}
	return nil
}

// stopTimeout is how long the machine's workload may take to end, by its bootstrap document.
func (p *Provider) stopTimeout(instance string) time.Duration {
	data, err := os.ReadFile(filepath.Join(p.machineDir(instance), bootstrapFile))
	if err != nil {
		return orderlyEnd
	}
	b, err := provider.ReadBootstrap(data)
	if err != nil {
		return orderlyEnd
	}
	d, err := time.ParseDuration(b.StopTimeout)
	if err != nil {
		return orderlyEnd
	}
	return d
}

// Delete kills every process of the machine, removes its directory, and remembers for a day that
// the ID is used up. The tombstone comes first: a Delete that is interrupted has at least made sure
// of that.
func (p *Provider) Delete(ctx context.Context, shard, instance string) error {
	if err := checkNames(shard, instance); err != nil {
		return err
	}
	if err := p.locked(ctx, instance, func() error { return p.delete(ctx, shard, instance) }); err != nil {
		return fmt.Errorf("delete machine %s: %w", instance, err)
	}
	return nil
}

func (p *Provider) delete(ctx context.Context, shard, instance string) error {
	r, err := p.find(shard, instance)
	absent := errors.Is(err, errAbsent)
	if err != nil && !absent {
		return err
	}
	if err := p.bury(shard, instance); err != nil {
		return err
	}
	r.Shard, r.Instance = shard, instance
	known := kin{}
	if !absent { // else the directory may be another shard's
		if known, err = p.recorded(r); err != nil {
			return err
		}
	}
	// Even where the directory is gone there may be processes: an operator may have removed it by
	// hand.
	if err := p.sweep(ctx, r.marker(), known); err != nil {
		return err
	}
	for id := range known {
		id.reap()
	}
	if !absent {
		if err := p.discard(instance); err != nil {
			return err
		}
		p.log.Info("machine deleted", "group", r.Group, "instance", instance)
	}
	p.prune()
	// A call that waits for this lock finds the file gone and takes a new one.
	if err := os.Remove(filepath.Join(p.dir, locksDir, instance)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
