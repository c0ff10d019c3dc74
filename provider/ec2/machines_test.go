package ec2

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/amazon"
	"github.com/leasehold/leasehold/provider/faultproxy"
	"github.com/leasehold/leasehold/provider/providertest"
	"github.com/leasehold/leasehold/provider/suite"
)

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
		crowd := providertest.Crowd{
			Leaders: []provider.Provider{w.provider(half), w.provider(half)}, Shard: "sh1", Machines: n, AtOnce: workers,
			Timeout: 5 * time.Minute, Settle: 2 * time.Minute, Meter: &w.meter,
			Pauses: map[provider.Kind]time.Duration{
				provider.Temporary: 2 * time.Second, provider.Throttled: 0, provider.Capacity: 20 * time.Second,
				provider.Quota: 20 * time.Second, provider.Credentials: 20 * time.Second,
			},
			Request: func(id string, _ int) provider.CreateRequest { return suite.Request("sh1", id, "a", plain) },
			There:   func() int { return len(w.server.Live()) }, Doubles: w.server.Doubles,
			Remains: func(m provider.Machine) string { return w.server.Remains(m.Ref) },
		}
		figures := crowd.Run(t)
		if figures.Busiest > perMinute+2*amazon.AtOnce {
			t.Errorf("%d requests in a minute, and %d are allowed", figures.Busiest, perMinute+2*amazon.AtOnce)
		}
		t.Logf("%s; faults %v", figures, w.proxy.Hits())
	})
}
