package suite

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// attempts is how often a call is tried whose error may pass.
const attempts = 3

// patient is a provider whose caller acts as a coordinator: it waits when it is throttled, and
// repeats calls after errors that may pass. Neither violates the contract: every call is safe to
// repeat.
type patient struct{ provider.Provider }

func (p patient) Create(ctx context.Context, req provider.CreateRequest) (m provider.Machine, err error) {
	err = patiently(ctx, func() error { m, err = p.Provider.Create(ctx, req); return err })
	return m, err
}

func (p patient) Stop(ctx context.Context, shard, instance string, timeout time.Duration) error {
	return patiently(ctx, func() error { return p.Provider.Stop(ctx, shard, instance, timeout) })
}

func (p patient) Delete(ctx context.Context, shard, instance string) error {
	return patiently(ctx, func() error { return p.Provider.Delete(ctx, shard, instance) })
}

func (p patient) Restart(ctx context.Context, shard, instance, boot string) error {
	return patiently(ctx, func() error { return p.Provider.Restart(ctx, shard, instance, boot) })
}

func (p patient) List(ctx context.Context, shard string) (machines []provider.Machine, err error) {
	err = patiently(ctx, func() error { machines, err = p.Provider.List(ctx, shard); return err })
	return machines, err
}

func patiently(ctx context.Context, call func() error) error {
	for failed := 0; ; {
		err := call()
		after, throttled := provider.RetryAfter(err)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case throttled:
		case provider.KindOf(err) != provider.Temporary:
			return err
		default:
			if failed++; failed == attempts {
				return err
			}
			after = 200 * time.Millisecond
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(after):
		}
	}
}
