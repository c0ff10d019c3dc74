package libvirt

import (
	"context"
	"fmt"
	"time"

	api "github.com/digitalocean/go-libvirt"

	"github.com/leasehold/leasehold/provider"
)

const (
	lookAgain = 100 * time.Millisecond // whether a guest has ended
	pushAgain = 5 * time.Second        // the power button: a guest that boots does not see it
)

// Stop notes that the domain is to stop, pushes its power button, and destroys it when the timeout
// is over. No other call waits meanwhile: Delete cuts the wait short.
func (p *Provider) Stop(ctx context.Context, shard, instance string, timeout time.Duration) error {
	k := key{shard, instance}
	var h *hypervisor
	var d *domain
	err := p.locks.With(ctx, k, func() (err error) {
		if h, d, err = p.everywhere(ctx, k); err != nil || d == nil || d.down() {
			d = nil
			return err
		}
		return h.use(ctx, func(l *link) error {
			if !d.Stopped {
				_, err = change(l, d, func(r *record) { r.Stopped = true })
			}
			return err
		})
	})
	if err == nil && d != nil {
		err = end(ctx, h, d, timeout)
	}
	if h != nil {
		err = h.meaning(err, "")
	}
	if err != nil && !gone(err) {
		return fmt.Errorf("stop machine %s: %w", instance, err)
	}
	return nil
}

// end stops a domain: its guest is asked to shut down, and the domain is destroyed if it still runs
// after the timeout. It returns when that boot has ended; a domain that is gone is no error.
func end(ctx context.Context, h *hypervisor, d *domain, timeout time.Duration) error {
	over := time.Now().Add(timeout)
	var pushed time.Time
	for failed := false; ; {
		down := false
		err := h.use(ctx, func(l *link) error {
			now, err := l.DomainLookupByUUID(d.UUID)
			if gone(err) || err == nil && now.ID != d.ID {
				down = true
				return nil
			}
			if err != nil {
				return err
			}
			state, _, err := l.DomainGetState(now, 0)
			if gone(err) || err == nil && isDown(api.DomainState(state)) {
				down = true
				return nil
			}
			switch {
			case err != nil:
				return err
			case time.Until(over) <= 0:
				if err = l.DomainDestroyFlags(now, 0); fromLibvirt(err) && !failed {
					failed, err = true, nil // it may have ended meanwhile
				}
			case time.Since(pushed) > pushAgain:
				pushed = time.Now()
				if err = l.DomainShutdownFlags(now, api.DomainShutdownDefault); fromLibvirt(err) {
					err = nil // it cannot be asked now: it is destroyed when its time is over
				}
			}
			return err
		})
		if err != nil || down {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookAgain):
		}
	}
}

// Delete destroys the domain, deletes its volumes and undefines it, in that order: as long as there
// is something of it, it is listed.
func (p *Provider) Delete(ctx context.Context, shard, instance string) error {
	k := key{shard, instance}
	var removed []place
	err := p.locks.With(ctx, k, func() error {
		for {
			h, d, err := p.everywhere(ctx, k)
			if err != nil || d == nil {
				return err
			}
			if err := p.remove(ctx, h, d); err != nil {
				return h.meaning(err, "")
			}
			removed = append(removed, place{h, d})
		}
	})
	for _, at := range removed {
		p.sweep(ctx, at.h, at.d.Pool, shard)
	}
	if err != nil {
		return fmt.Errorf("delete machine %s: %w", instance, err)
	}
	p.mu.Lock()
	delete(p.seen, k)
	delete(p.addresses, k)
	p.mu.Unlock()
	return nil
}

func (p *Provider) remove(ctx context.Context, h *hypervisor, d *domain) error {
	return h.use(ctx, func(l *link) error {
		if !d.down() {
			if err := l.DomainDestroyFlags(d.Domain, 0); err != nil && !gone(err) && !is(err, api.ErrOperationInvalid) {
				return err
			}
		}
		if err := clear(ctx, l, d.Pool, d.Name); err != nil {
			return err
		}
		p.noteUndefined(h, d) // also if the answer is lost
		return undefine(l, d)
	})
}

func undefine(l *link, d *domain) error {
	err := l.DomainUndefineFlags(d.Domain, api.DomainUndefineManagedSave|api.DomainUndefineSnapshotsMetadata|
		api.DomainUndefineCheckpointsMetadata|api.DomainUndefineNvram)
	if gone(err) || is(err, api.ErrOperationInvalid) && says(err, "transient domain") {
		return nil
	}
	return err
}

// Restart ends the domain, in order if its guest does so within its stop timeout and half a call,
// and starts it on the same hypervisor, unless another one may run it (see startable).
func (p *Provider) Restart(ctx context.Context, shard, instance, _ string) error {
	k := key{shard, instance}
	err := p.locks.With(ctx, k, func() error {
		h, d, err := p.startable(ctx, k)
		if err != nil {
			return err
		}
		if d == nil {
			return provider.ErrNotFound
		}
		return p.restart(ctx, h, d)
	})
	if err != nil {
		return fmt.Errorf("restart machine %s: %w", instance, err)
	}
	return nil
}

func (p *Provider) restart(ctx context.Context, h *hypervisor, d *domain) error {
	err := h.use(ctx, func(l *link) error {
		_, err := change(l, d, func(r *record) {
			r.note(stepRestarting)
			r.Stopped = false
		})
		return err
	})
	if err == nil && !d.down() {
		err = end(ctx, h, d, d.patience(p.timeout/2))
	}
	if err == nil {
		err = h.use(ctx, func(l *link) error {
			now, err := read(l, d.Domain)
			if err == nil && now.moved() { // while it was to end
				err = errMoved
			}
			if err == nil {
				_, err = start(l, now)
			}
			return err
		})
	}
	if gone(err) {
		return provider.ErrNotFound
	}
	return h.meaning(err, "")
}

// patience is how long a domain may take to end in order, and no longer than most.
func (d *domain) patience(most time.Duration) time.Duration {
	patience, err := time.ParseDuration(d.Patience)
	if err != nil || patience > most {
		return most
	}
	return patience
}

// Console returns the end of what the machine has written to its first serial port, over all boots.
func (p *Provider) Console(ctx context.Context, shard, instance string) ([]byte, error) {
	k := key{shard, instance}
	h, d, err := p.everywhere(ctx, k)
	if err == nil && d == nil {
		err = provider.ErrNotFound
	}
	var written tail
	if err == nil {
		err = h.use(ctx, func(l *link) error { return readConsole(ctx, l, d, &written) })
		err = h.meaning(err, "")
	}
	if err != nil {
		return nil, fmt.Errorf("read console of machine %s: %w", instance, err)
	}
	return written, nil
}

// tail keeps the end of what is written to it. It never fails: go-libvirt would wait forever for a
// writer that has returned an error.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	if more := len(*t) - provider.ConsoleTail; more > 0 {
		*t = append(tail(nil), (*t)[more:]...)
	}
	return len(p), nil
}

func readConsole(ctx context.Context, l *link, d *domain, into *tail) error {
	pool, err := l.StoragePoolLookupByName(d.Pool)
	if err != nil {
		return err
	}
	v, err := l.StorageVolLookupByName(pool, d.Name+consoleSuffix)
	if is(err, api.ErrNoStorageVol) {
		if err = refresh(ctx, l, pool); err == nil {
			v, err = l.StorageVolLookupByName(pool, d.Name+consoleSuffix)
		}
	}
	if is(err, api.ErrNoStorageVol) {
		return nil // it never started
	}
	var length uint64
	if err == nil {
		_, length, _, err = l.StorageVolGetInfo(v)
	}
	if err != nil || length == 0 {
		return err
	}
	var offset uint64
	if length > provider.ConsoleTail {
		offset = length - provider.ConsoleTail
	}
	return l.StorageVolDownload(v, into, offset, length-offset, 0)
}
