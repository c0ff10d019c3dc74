package ec2

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/amazon"
	"github.com/leasehold/leasehold/provider/faultproxy"
	"github.com/leasehold/leasehold/provider/suite"
)

// persist repeats a call as a coordinator does, until it is done or an error is final.
func persist(t *testing.T, call func(ctx context.Context, attempt int) error) {
	for attempt := 0; ; attempt++ {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		err := call(ctx, attempt)
		cancel()
		pause := 2 * time.Second
		switch provider.KindOf(err) {
		case provider.Throttled:
			pause, _ = provider.RetryAfter(err)
		case provider.Quota, provider.Credentials, provider.Capacity:
			pause = 20 * time.Second
		case provider.Invalid:
			t.Errorf("an error that would end it: %v", err)
			return
		default:
		}
		if err == nil {
			return
		}
		if attempt == 200 {
			t.Errorf("200 attempts: %v", err)
			return
		}
		sleep(pause)
	}
}

// Machines are made and removed while everything goes wrong that can, by two coordinators one of
// which takes over the other's calls. No instance ever has two machines, nothing is left, and EC2
// gets no more requests in any minute than the two are allowed.
//
// proves SAFE-8, PROV-4, PROV-5
func TestMachinesWithFaults(t *testing.T) { withFaults(t, 100) }

func withFaults(t *testing.T, n int) {
	synctest.Test(t, func(t *testing.T) {
		const workers, perMinute = 64, 600
		c := account()
		c.Lag, c.TagLag, c.BootTime, c.StopTime = 10*time.Second, 20*time.Second, 15*time.Second, 40*time.Second
		c.PerSecond, c.Burst, c.PageSize = 8, 60, 300
		describe := action("DescribeInstances")
		w := imagine(t, c,
			faultproxy.Fault{
				Kind: faultproxy.Refuse, From: 2 * time.Minute, Until: 4 * time.Minute,
				Answer: refusal(403, "ExpiredToken"),
			},
			faultproxy.Fault{
				Kind: faultproxy.Refuse, From: 5 * time.Minute, Until: 6 * time.Minute, When: action("RunInstances"),
				Answer: refusal(400, "VcpuLimitExceeded"),
			},
			faultproxy.Fault{Kind: faultproxy.Swallow, When: action("RunInstances"), Chance: .2},
			faultproxy.Fault{Kind: faultproxy.Refuse, Chance: .05, Answer: refusal(500, "InternalError")},
			faultproxy.Fault{Kind: faultproxy.Refuse, Chance: .02, Answer: refusal(503, "RequestLimitExceeded")},
			faultproxy.Fault{Kind: faultproxy.Lose, Chance: .03},
			faultproxy.Fault{Kind: faultproxy.Swallow, Chance: .05},
			faultproxy.Fault{Kind: faultproxy.Cut, Chance: .05},
			faultproxy.Fault{Kind: faultproxy.Stale, When: describe, Chance: .2, Age: 20 * time.Second},
		)
		half := func(c *Config) { c.CallsPerMinute = perMinute / 2 }
		leaders := []*Provider{w.provider(half), w.provider(half)}
		all := func(do func(name string)) {
			names := make(chan string)
			var wg sync.WaitGroup
			for range workers {
				wg.Go(func() {
					for name := range names {
						do(name)
					}
				})
			}
			for i := range n {
				names <- fmt.Sprintf("web-%d", i)
			}
			close(names)
			wg.Wait()
		}
		list := func() (machines []provider.Machine) {
			persist(t, func(ctx context.Context, attempt int) (err error) {
				machines, err = leaders[attempt%2].List(ctx, "sh1")
				return err
			})
			return machines
		}

		begun := time.Now()
		all(func(name string) {
			persist(t, func(ctx context.Context, attempt int) error {
				_, err := leaders[attempt%2].Create(ctx, suite.Request("sh1", name, "a", plain))
				return err
			})
		})
		took := time.Since(begun)
		sleep(2 * time.Minute)
		refs := map[string]string{}
		for _, m := range list() {
			if refs[m.Instance] != "" || m.State != provider.StateRunning {
				t.Errorf("listed as %+v, and as %s", m, refs[m.Instance])
			}
			refs[m.Instance] = m.Ref
		}
		if live := w.server.Live(); len(refs) != n || len(live) != n {
			t.Errorf("%d machines are listed, and there are %d; want %d", len(refs), len(live), n)
		}
		begun = time.Now()
		all(func(name string) {
			persist(t, func(ctx context.Context, attempt int) error { return leaders[attempt%2].Delete(ctx, "sh1", name) })
		})
		// As a coordinator does: a machine that is listed still, after the time of consistency, is
		// removed again.
		for range 10 {
			sleep(2 * time.Minute)
			left := list()
			if len(left) == 0 {
				break
			}
			for _, m := range left {
				persist(t, func(ctx context.Context, attempt int) error {
					return leaders[attempt%2].Delete(ctx, "sh1", m.Instance)
				})
			}
		}
		if live := w.server.Live(); len(live) > 0 {
			t.Errorf("%d machines are left: %v", len(live), live)
		}
		for _, ref := range refs {
			if left := w.server.Remains(ref); left != "" {
				t.Errorf("of machine %s is left %s", ref, left)
			}
		}
		if doubles := w.server.Doubles(); len(doubles) > 0 {
			t.Errorf("instances that had two machines: %v", doubles)
		}
		if most := w.server.Busiest(time.Minute); most > perMinute+2*amazon.AtOnce {
			t.Errorf("%d requests in a minute, and %d are allowed", most, perMinute+2*amazon.AtOnce)
		}
		t.Logf("made in %s, removed in %s; requests %v, at most %d a minute; faults %v", took, time.Since(begun),
			w.server.Requests(), w.server.Busiest(time.Minute), w.proxy.Hits())
	})
}
