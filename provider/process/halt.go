package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/leasehold/leasehold/provider"
)

// haltAtOnce bounds how many machines are stopped or started at the same time.
const haltAtOnce = 16

// Halt stops all machines of the directory in order, each within its own stop timeout, and keeps
// them. Those that ran are marked, so that Resume starts them again. It is no part of the
// provider's contract: it is for a program that is coordinator and host in one, and takes its
// machines down with it.
func (p *Provider) Halt(ctx context.Context) error {
	return p.each(ctx, func(name string) error {
		r, err := p.read(name)
		if errors.Is(err, errAbsent) {
			return nil
		}
		if err != nil {
			return err
		}
		if r, err = p.adopt(ctx, r); err != nil {
			return err
		}
		runs, err := p.agentRuns(r)
		if err != nil {
			return err
		}
		if runs && r.State == stepStarted {
			r.Halted = true // written together with stepStopping, before the agent hears of it
		}
		if _, err := p.end(ctx, r, p.stopTimeout(name)); err != nil {
			return fmt.Errorf("halt machine %s: %w", name, err)
		}
		return nil
	})
}

// Resume starts the machines that Halt stopped, and only those. It returns how many it has started.
func (p *Provider) Resume(ctx context.Context) (int, error) {
	var mu sync.Mutex
	started := 0
	err := p.each(ctx, func(name string) error {
		r, err := p.read(name)
		if errors.Is(err, errAbsent) || err == nil && !r.Halted {
			return nil
		}
		if err != nil {
			return err
		}
		// A halt that was interrupted may have left anything; its agent got the order to end and
		// cannot be kept.
		if r, err = p.end(ctx, r, p.stopTimeout(name)); err == nil {
			_, err = p.boot(r)
		}
		if err != nil {
			return fmt.Errorf("resume machine %s: %w", name, err)
		}
		mu.Lock()
		started++
		mu.Unlock()
		return nil
	})
	return started, err
}

// GiveUp stops forever, with a reason, every machine whose bootstrap document is of no use any
// more: it is listed as stopped, and so replaced at once. It returns how many there are. Like Halt
// and Resume it is for a program that is coordinator and host in one.
func (p *Provider) GiveUp(ctx context.Context, why string, useless func(provider.Bootstrap) bool) (int, error) {
	var given atomic.Int64
	err := p.each(ctx, func(name string) error {
		r, err := p.read(name)
		if errors.Is(err, errAbsent) || err == nil && r.State == stepStopped && !r.Halted {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := os.ReadFile(filepath.Join(p.machineDir(name), bootstrapFile))
		if err != nil {
			return nil //nolint:nilerr // for example one that was never begun: the call that starts it reports what is wrong
		}
		if b, err := provider.ReadBootstrap(data); err != nil || !useless(b) {
			return nil //nolint:nilerr // as above
		}
		if r, err = p.end(ctx, r, p.stopTimeout(name)); err == nil {
			r.State, r.Halted, r.Exit, r.Why = stepStopped, false, nil, why
			err = p.write(r)
		}
		if err != nil {
			return fmt.Errorf("give up machine %s: %w", name, err)
		}
		given.Add(1)
		return nil
	})
	return int(given.Load()), err
}

// each runs f for every machine, several at a time, each under its lock, and waits for all. One
// that fails does not keep the others from their turn.
func (p *Provider) each(ctx context.Context, f func(name string) error) error {
	names, err := p.instances()
	if err != nil {
		return err
	}
	errs := make([]error, len(names))
	limit := make(chan struct{}, haltAtOnce)
	var wg sync.WaitGroup
	for i, name := range names {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			errs[i] = p.locked(ctx, name, func() error { return f(name) })
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
