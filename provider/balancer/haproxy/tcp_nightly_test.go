//go:build nightly

package haproxy_test

import (
	"testing"

	"github.com/leasehold/leasehold/provider/balancer/balancertest"
	"github.com/leasehold/leasehold/provider/balancer/haproxy"
	"github.com/leasehold/leasehold/provider/balancer/haproxy/haproxytest"
)

// The suite, with a HAProxy that forwards connections without reading them.
//
// proves LB-1, LB-3
func TestConnectionsOfTCPKeepTheContract(t *testing.T) {
	t.Parallel()
	p := haproxytest.Start(t, 0)
	p.Mode = "tcp"
	p.Configure("")
	p.Reload()
	h := behindRelay(t, p, haproxy.Config{Server: quickChecks})
	h.Forget = func() error { p.Reload(); return nil }
	balancertest.Run(t, h)
}
