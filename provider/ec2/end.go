package ec2

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/amazon"
)

// Stop has EC2 shut the machine down, forces it after the timeout, and waits until it is down. A
// Spot machine is terminated: EC2 stops no one-time one.
func (p *Provider) Stop(ctx context.Context, shard, instance string, timeout time.Duration) error {
	// It holds no lock, so that a Delete need not wait for it.
	if err := p.stop(ctx, key{shard, instance}, timeout); err != nil {
		return fmt.Errorf("stop machine %s: %w", instance, err)
	}
	return nil
}

func (p *Provider) stop(ctx context.Context, k key, timeout time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	deadline := time.Now().Add(timeout)
	asked, forced := map[string]bool{}, map[string]bool{}
	for {
		s, err := p.see(ctx, k, true)
		if err != nil {
			return err
		}
		up := false
		late := !time.Now().Before(deadline)
		for _, i := range s.live {
			if i.state() == types.InstanceStateNameStopped {
				continue
			}
			up = true
			switch id := i.id(); {
			case i.state() == types.InstanceStateNamePending, i.state() == types.InstanceStateNameShuttingDown:
				continue // EC2 stops none that is still being started
			case i.spot() && !asked[id]:
				err = p.terminate(ctx, i, false)
			case !i.spot() && late && !forced[id]:
				forced[id] = true
				err = p.halt(ctx, i, true)
			case !asked[id] && i.state() == types.InstanceStateNameRunning:
				err = p.halt(ctx, i, false)
			}
			asked[i.id()] = true
			if err != nil && !passing(err) {
				return err
			}
		}
		if !up {
			return nil
		}
		pause := p.poll
		if left := time.Until(deadline); left > 0 {
			pause = min(pause, left)
		}
		if err := amazon.Wait(ctx, pause); err != nil {
			return err
		}
	}
}

// passing is an error of a machine that has another state, or is gone, by now: the next look tells.
func passing(err error) bool {
	code := amazon.CodeOf(err)
	return code == codeWrongState || code == codeNotFound
}

func (p *Provider) halt(ctx context.Context, i instance, force bool) error {
	return p.call(ctx, i.id(), func(ctx context.Context) error {
		in := &ec2.StopInstancesInput{InstanceIds: []string{i.id()}}
		if force {
			in.Force = aws.Bool(true)
		}
		_, err := p.api.StopInstances(ctx, in)
		return err
	})
}

func (p *Provider) terminate(ctx context.Context, i instance, hard bool) error {
	return p.call(ctx, i.id(), func(ctx context.Context) error {
		in := &ec2.TerminateInstancesInput{InstanceIds: []string{i.id()}}
		if hard {
			in.SkipOsShutdown = aws.Bool(true)
		}
		_, err := p.api.TerminateInstances(ctx, in)
		return err
	})
}

// Delete terminates the machine without an orderly shutdown, and waits until EC2 says terminated.
// Its volumes go with it.
func (p *Provider) Delete(ctx context.Context, shard, instance string) error {
	k := key{shard, instance}
	if err := p.locks.With(ctx, k, func() error { return p.remove(ctx, k) }); err != nil {
		return fmt.Errorf("delete machine %s: %w", instance, err)
	}
	return nil
}

func (p *Provider) remove(ctx context.Context, k key) error {
	asked := map[string]time.Time{}
	for {
		s, err := p.see(ctx, k, true)
		if err != nil {
			return err
		}
		if len(s.live) == 0 {
			p.deleted(k, s.dead)
			return nil
		}
		for _, i := range s.live {
			// What was asked for and does not show is asked for again, but not at every look.
			if at, is := asked[i.id()]; i.ending() || is && time.Since(at) < p.consistency {
				continue
			}
			asked[i.id()] = time.Now()
			if err := p.terminate(ctx, i, true); err != nil && !passing(err) {
				return err
			}
		}
		if err := amazon.Wait(ctx, p.poll); err != nil {
			return err
		}
	}
}

// Restart reboots a machine that runs, and starts one that has stopped. EC2 names no boots, so the
// name is not looked at. It does not stop and start a machine instead: that would take minutes,
// lose the public address and the disks of the host, and is not possible with Spot.
func (p *Provider) Restart(ctx context.Context, shard, instance, _ string) error {
	k := key{shard, instance}
	if err := p.locks.With(ctx, k, func() error { return p.restart(ctx, k) }); err != nil {
		return fmt.Errorf("restart machine %s: %w", instance, err)
	}
	return nil
}

func (p *Provider) restart(ctx context.Context, k key) error {
	for {
		s, err := p.see(ctx, k, true)
		if err != nil {
			return err
		}
		if len(s.live) == 0 || s.live[0].ending() {
			return provider.ErrNotFound
		}
		i := s.live[0]
		ids := []string{i.id()}
		switch i.state() {
		case types.InstanceStateNamePending:
			return nil // it boots
		case types.InstanceStateNameRunning:
			err = p.call(ctx, i.id(), func(ctx context.Context) error {
				_, err := p.api.RebootInstances(ctx, &ec2.RebootInstancesInput{InstanceIds: ids})
				return err
			})
		case types.InstanceStateNameStopped:
			err = p.call(ctx, i.id(), func(ctx context.Context) error {
				_, err := p.api.StartInstances(ctx, &ec2.StartInstancesInput{InstanceIds: ids})
				return err
			})
		default:
			err = errStopping
		}
		if !errors.Is(err, errStopping) && !passing(err) {
			return err
		}
		if err := amazon.Wait(ctx, p.poll); err != nil {
			return err
		}
	}
}

var errStopping = errors.New("the machine is on its way down")
