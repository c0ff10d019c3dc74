package lxd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// Stop notes that the container is to stop, has LXD signal its init, and kills its processes when
// the timeout is over. No other call waits meanwhile: Delete cuts the wait short.
func (p *Provider) Stop(ctx context.Context, shard, instance string, timeout time.Duration) error {
	var c *container
	err := p.locks.With(ctx, nameOf(instance), func() (err error) {
		for {
			var ok bool
			if c, ok, err = p.find(ctx, shard, instance); err != nil || !ok || c.down() {
				c = nil
				return err
			}
			if c.stopped() {
				return nil
			}
			now, err := p.note(ctx, c, map[string]string{keyStopped: c.start()})
			if err == nil {
				c = now
				return nil
			}
			if !hasMeaning(err, changed) {
				return err
			}
		}
	})
	if err == nil && c != nil {
		err = p.end(ctx, c, timeout)
	}
	if err = gone(err); err != nil {
		return fmt.Errorf("stop machine %s: %w", instance, p.kindOf(err, ""))
	}
	return nil
}

// stopAgain is the wait after LXD could not pass on a request to stop.
const stopAgain = 200 * time.Millisecond

// gone returns nil for the error of a container that does not exist any more.
func gone(err error) error {
	//nolint:errorlint // errVanished is never wrapped
	if hasMeaning(err, absent) || err == errVanished {
		return nil
	}
	return err
}

// end stops a container: its init is signalled, and its processes are killed if it still runs after
// the timeout. It returns when the container is down; one that is gone is no error.
func (p *Provider) end(ctx context.Context, c *container, timeout time.Duration) error {
	was, over := c.start(), time.Now().Add(timeout)
	for {
		now, ok, err := p.look(ctx, c.Name)
		if err != nil || !ok || !now.isOf(c.Config[tagShard], c.Config[tagInstance]) {
			return err
		}
		if now.down() || now.start() != was {
			return nil // the boot that was to end has
		}
		err = p.setState(ctx, c.Name, "stop", timeout)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var f *failure
		if err != nil && (!errors.As(err, &f) || timeout <= 0 && !hasMeaning(err, stopped)) {
			return err
		}
		// A request that failed before its time was not refused by the machine: it comes again.
		timeout = time.Until(over)
		if err != nil {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(stopAgain):
			}
		}
	}
}

// Delete kills the container's processes and removes it.
func (p *Provider) Delete(ctx context.Context, shard, instance string) error {
	name := nameOf(instance)
	err := p.locks.With(ctx, name, func() error {
		for {
			c, ok, err := p.find(ctx, shard, instance)
			if err != nil || !ok {
				return err
			}
			if !c.down() {
				if err := p.end(ctx, c, 0); err != nil {
					return err
				}
			}
			if err = p.remove(ctx, name); !hasMeaning(err, running) {
				return err
			}
		}
	})
	if err = gone(err); err != nil {
		return fmt.Errorf("delete machine %s: %w", instance, p.kindOf(err, ""))
	}
	p.mu.Lock()
	if k, is := p.known[name]; is && k.shard == shard {
		delete(p.known, name)
		delete(p.consoles, name)
	}
	p.mu.Unlock()
	return nil
}

// remove deletes a container that is down.
func (p *Provider) remove(ctx context.Context, name string) error {
	return retry(ctx, func() error {
		_, err := p.client.call(ctx, request{method: http.MethodDelete, path: path(name)}, nil)
		return err
	})
}

// Restart ends the container, in order if it does so within its stop timeout and half a call, and
// starts it. Where another boot than the one named has begun, nothing is left to do, unless that
// was never completed.
func (p *Provider) Restart(ctx context.Context, shard, instance, boot string) error {
	err := p.locks.With(ctx, nameOf(instance), func() error {
		c, ok, err := p.find(ctx, shard, instance)
		if err != nil {
			return err
		}
		if !ok {
			return provider.ErrNotFound
		}
		for {
			if other, err := p.bootedAnew(ctx, c, boot); err != nil || other {
				return err
			}
			now, err := p.note(ctx, c, map[string]string{keyStep: noteOf(stepStarting, time.Now()), keyWhy: ""})
			if err == nil {
				c = now
				break
			}
			if !hasMeaning(err, changed) {
				return err
			}
			if c, err = p.again(ctx, c); err != nil {
				return err
			}
		}
		if !c.down() {
			if err := p.end(ctx, c, c.patience(p.timeout/2)); err != nil {
				return err
			}
		}
		_, err = p.startUp(ctx, c)
		return err
	})
	if notFound(err) || err == errVanished { //nolint:errorlint // it is never wrapped
		err = provider.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("restart machine %s: %w", instance, p.kindOf(err, ""))
	}
	return nil
}

// bootedAnew reports whether the container has another boot than the one that is to end.
func (p *Provider) bootedAnew(ctx context.Context, c *container, boot string) (bool, error) {
	if boot == "" {
		return false, nil
	}
	present := p.bootOf(c)
	if present == "" && c.up() {
		if present = p.readBoot(ctx, c); present == "" {
			return false, fmt.Errorf("the container's present boot is unknown, so it may be another one than %s", boot)
		}
	}
	if present == boot {
		return false, nil
	}
	// Another start was begun. If it never came about, this call completes it. One that ended
	// before anyone could read its boot is not the one that List named.
	what, _ := c.step()
	return c.up() || what != stepStarting && what != stepFailed, nil
}

// patience is how long a container may take to end in order, and no longer than most.
func (c *container) patience(most time.Duration) time.Duration {
	d, err := time.ParseDuration(c.Config[keyPatience])
	if err != nil || d > most {
		return most
	}
	return d
}
