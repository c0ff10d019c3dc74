package memprovider

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// Call names a method of the contract.
type Call string

// The calls that can fail.
const (
	CallCreate  Call = "create"
	CallStop    Call = "stop"
	CallDelete  Call = "delete"
	CallRestart Call = "restart"
	CallList    Call = "list"
	CallConsole Call = "console"
)

// Fault is something that goes wrong with a call. The first that matches is taken.
type Fault struct {
	Call     Call    // "": any
	Instance string  // "": any; a List matches "" only
	Times    int     // after so many calls it is used up; 0: it lasts
	Chance   float64 // of the calls that match, so many are hit, by Config.Seed; 0: all

	Delay  time.Duration // the call takes so much longer, before anything happens
	Hang   bool          // no answer until the caller's context ends
	Err    error         // the answer; nil: the call's own, if it does not hang
	Effect Effect        // whether a call that hangs or answers Err does something all the same
	Late   time.Duration // for EffectLate: so long after the call has ended

	Answer func([]provider.Machine) []provider.Machine // changes what List answers: truncated, empty, stale
}

// Effect is what a call that fails does.
type Effect int

// What a call that fails may do.
const (
	EffectNone Effect = iota // nothing
	EffectDone               // all of it: only the answer is lost
	EffectLate               // all of it, when the caller has long given up
)

// Inject lets calls go wrong from now on, until remove is called or the fault is used up.
func (p *Provider) Inject(f Fault) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fault := &f
	p.faults = append(p.faults, fault)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.drop(fault)
	}
}

type hitKey struct{}

// TellHit is a context with which a call tells, before anything else, which fault it is hit by.
func TellHit(ctx context.Context, hit func(Fault)) context.Context {
	return context.WithValue(ctx, hitKey{}, hit)
}

// Heal removes all faults. Effects that are late still come.
func (p *Provider) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

func (p *Provider) drop(fault *Fault) {
	for i, f := range p.faults {
		if f == fault {
			p.faults = append(p.faults[:i:i], p.faults[i+1:]...)
			return
		}
	}
}

// take finds the fault of a call and counts it.
func (p *Provider) take(c Call, instance string) *Fault {
	for _, f := range p.faults {
		if f.Call != "" && f.Call != c || f.Instance != "" && f.Instance != instance {
			continue
		}
		if f.Chance > 0 && p.chance.Float64() >= f.Chance {
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				p.drop(f)
			}
		}
		return f
	}
	return nil
}

func (p *Provider) call(ctx context.Context, c Call, shard, instance string, effect func() error) error {
	_, err := p.observed(ctx, c, shard, instance, effect)
	return err
}

// observed makes a call: it takes its time, goes wrong as injected, and is entered in the ledger.
// effect runs with the lock held.
func (p *Provider) observed(ctx context.Context, c Call, shard, instance string, effect func() error) (*Fault, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	fault := p.take(c, instance)
	p.enter(c, shard, instance)
	p.mu.Unlock()
	if hit, told := ctx.Value(hitKey{}).(func(Fault)); told && fault != nil {
		hit(*fault)
	}
	defer func() {
		p.mu.Lock()
		p.leave(shard, instance)
		p.mu.Unlock()
	}()

	took := p.config.CallTime
	if fault != nil {
		took += fault.Delay
	}
	if err := sleep(ctx, took); err != nil {
		return fault, err
	}
	if fault == nil || !fault.Hang && fault.Err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		return fault, effect()
	}
	if fault.Effect == EffectDone {
		p.mu.Lock()
		err := effect()
		p.mu.Unlock()
		if err != nil && !fault.Hang {
			return fault, err
		}
	}
	err := fault.Err
	if fault.Hang {
		<-ctx.Done()
		err = ctx.Err()
	}
	if fault.Effect == EffectLate {
		p.later(fault.Late, effect)
	}
	return fault, err
}

// later lets the effect of a call come after its end. Whether it succeeds is not
// reported.
func (p *Provider) later(after time.Duration, effect func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.running.Add(1)
	var t *time.Timer
	t = time.AfterFunc(after, func() {
		defer p.running.Done()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.late, t)
		_ = effect()
	})
	p.late[t] = true
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
