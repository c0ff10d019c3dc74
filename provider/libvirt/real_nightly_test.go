//go:build nightly

package libvirt

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/providertest"
	"github.com/leasehold/leasehold/provider/suite"
)

// The contract with real guests, on two hypervisors: each promise is played in both zones.
//
// proves PROV-1
func TestTheContractWithGuestsInTwoZones(t *testing.T) {
	near, far := startReal(t), startReal(t)
	p := onReal(t, near, func(c *Config) {
		c.Zones["b"], c.Image, c.Networks, c.UserNetwork = Zone{URI: far.URI()}, "", nil, true
	})
	for _, zone := range []string{"a", "b"} {
		h := harnessOf(p, booting(), near, far)
		h.Template.Zones = []string{zone}
		for _, promise := range suite.Promises() {
			t.Run(zone+"/"+promise, func(t *testing.T) {
				t.Parallel()
				providertest.Play(t, "libvirt (guests, two hosts)", h, promise, unnamed...)
			})
		}
	}
}

// libvirtd is killed at some moment of each call, and comes again. The call is repeated until it
// succeeds, as a leader does; then all is as if nothing had happened.
//
// proves SAFE-8
func TestLibvirtdIsKilledAmidCalls(t *testing.T) {
	l := startReal(t)
	p := onReal(t, l, nil)
	const shard = "sh-killed"
	// insist repeats a call that fails for a reason which may pass.
	insist := func(t *testing.T, call func(ctx context.Context) error) {
		t.Helper()
		for over := time.Now().Add(2 * time.Minute); ; <-time.After(50 * time.Millisecond) {
			ctx, cancel := context.WithTimeout(t.Context(), p.timeout)
			err := call(ctx)
			cancel()
			if err == nil {
				return
			}
			if provider.KindOf(err) != provider.Temporary || time.Now().After(over) {
				t.Fatal(err)
			}
		}
	}
	amid := func(t *testing.T, after time.Duration, call func(ctx context.Context) error) {
		t.Helper()
		done := make(chan error, 1)
		go func() {
			<-time.After(after)
			done <- l.Down()
		}()
		err := call(t.Context())
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := l.Up(); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			insist(t, call)
		}
	}
	list := func(t *testing.T) (all []provider.Machine) {
		t.Helper()
		insist(t, func(ctx context.Context) (err error) {
			all, err = p.List(ctx, shard)
			return err
		})
		return all
	}
	settings := small()
	settings["data_disk"] = "1GiB"
	for i := range 20 {
		after := time.Duration(i) * 40 * time.Millisecond
		t.Run(after.String(), func(t *testing.T) {
			instance := fmt.Sprintf("web-%d", i)
			req := request(shard, instance, "a", settings)
			req.Bootstrap.StopTimeout = "10ms"
			amid(t, after, func(ctx context.Context) error { _, err := p.Create(ctx, req); return err })
			// A start that libvirtd was killed in may have ended the machine: that shows, and there is one.
			if all := list(t); len(all) != 1 || all[0].State != provider.StateRunning && !all[0].State.Down() {
				t.Errorf("created: %+v", all)
			}
			amid(t, after, func(ctx context.Context) error { return p.Restart(ctx, shard, instance, "") })
			if all := list(t); len(all) != 1 || all[0].State != provider.StateRunning {
				t.Errorf("restarted: %+v", all)
			}
			amid(t, after, func(ctx context.Context) error { return p.Stop(ctx, shard, instance, 100*time.Millisecond) })
			if all := list(t); len(all) != 1 || all[0].State != provider.StateStopped {
				t.Errorf("stopped: %+v", all)
			}
			amid(t, after, func(ctx context.Context) error { return p.Delete(ctx, shard, instance) })
			if all := list(t); len(all) != 0 {
				t.Errorf("deleted: %+v", all)
			}
			if left, err := remains(l, key{shard, instance}.nameOf()); err != nil || left != "" {
				t.Errorf("%s is left; %v", left, err)
			}
		})
	}
}
