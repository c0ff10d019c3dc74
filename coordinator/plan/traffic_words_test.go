package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/store"
)

// proves LB-2
func TestWhyABalancerHasNotOpenedAnInstance(t *testing.T) {
	seen := func(why string) *Balancer {
		return &Balancer{Begun: time.Unix(1, 0), Targets: balancer.Listing{Targets: []balancer.Target{{
			Members: []balancer.Status{{Health: balancer.Down, Why: why}},
		}}}}
	}
	for _, c := range []struct {
		name, want string
		e          entry
	}{
		{"not configured", "the leading coordinator is not configured with it", entry{}},
		{"silent", "it does not answer: no such file", entry{seen: &Balancer{
			SilentSince: time.Unix(1, 0), Problem: "no such file",
		}}},
		{"not listed yet", "it is being added", entry{seen: seen("")}},
		{"down", "it is down there", entry{seen: seen(""), fresh: true, has: balancer.Membership{Down: 1, Weight: true}}},
		{"down, and it says why", "it is down there: L4CON", entry{
			seen: seen("L4CON"), fresh: true, has: balancer.Membership{Down: 1, Weight: true},
		}},
		{"checking", "its checks there have not passed yet", entry{
			seen: seen(""), fresh: true, has: balancer.Membership{Checking: 1, Weight: true},
		}},
	} {
		c.e.State = store.TrafficJoining
		why := new(draft).traffic.notOpen(&c.e)
		b := store.Blocked{Kind: store.BlockedByBalancer, Of: why.of("front")}
		if got := strings.TrimPrefix(reason.Why(&b), "load balancer front has to do its part first: "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
