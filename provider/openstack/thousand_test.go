package openstack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/faultproxy"
	"github.com/leasehold/leasehold/provider/openstack/openstacktest"
	"github.com/leasehold/leasehold/provider/providertest"
	"github.com/leasehold/leasehold/tests/tier"
)

// lateServers has some requests for a server be carried out only after their caller was told that
// they took too long: by then the next call has looked, and has found nothing.
type lateServers struct {
	http.Handler
	late time.Duration

	mu      sync.Mutex
	asked   int
	running sync.WaitGroup
}

func (l *lateServers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/servers") {
		l.Handler.ServeHTTP(w, r)
		return
	}
	l.mu.Lock()
	l.asked++
	hit := l.asked%10 == 0
	l.mu.Unlock()
	if !hit {
		l.Handler.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	http.Error(w, "upstream timed out", http.StatusGatewayTimeout)
	if err != nil {
		return
	}
	again := r.Clone(context.WithoutCancel(r.Context()))
	again.Body = io.NopCloser(bytes.NewReader(body))
	l.running.Go(func() {
		<-time.After(l.late)
		l.Handler.ServeHTTP(discarded{http.Header{}}, again)
	})
}

// discarded is an answer that is not read.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d discarded) WriteHeader(int)             {}

// Machines are made and removed by two coordinators in turns, while Nova takes too long and does
// all the same, breaks down, throttles, forgets tokens, has no quota left for a while, and answers
// with lists that are out of date. In the end there is one server for each instance, whatever
// copies the calls made, and after the removal none. Nova gets no more requests than the two may
// send in that time.
//
// proves SAFE-8, PROV-4, PROV-5
func TestManyMachinesWithFaults(t *testing.T) {
	const workers, rate = 48, 400
	n := tier.Pick(150, 1000)
	c := newCloud(t)
	c.Set(func(c *openstacktest.Cloud) { c.Page = 200 })
	late := &lateServers{late: 100 * time.Millisecond}
	post := func(r *http.Request, _ []byte) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/servers")
	}
	refusal := func(status int, chance float64) faultproxy.Fault {
		return faultproxy.Fault{Kind: faultproxy.Refuse, Chance: chance, Answer: faultproxy.Answer{Status: status}}
	}
	lists := func(r *http.Request, _ []byte) bool { return strings.HasSuffix(r.URL.Path, "/servers/detail") }
	quota := refusal(http.StatusForbidden, .03)
	quota.When, quota.Answer.Body = post, `{"forbidden": {"code": 403, "message": "Quota exceeded for instances"}}`
	const age = 300 * time.Millisecond // of the oldest answer
	throttled := refusal(http.StatusTooManyRequests, .03)
	throttled.Answer.Header = http.Header{"Retry-After": {"0.01"}}
	crowd := providertest.Crowd{
		Shard: shard, Machines: n, AtOnce: workers, Timeout: time.Minute, Settle: age,
		Meter: new(providertest.Meter),
		Pauses: map[provider.Kind]time.Duration{
			provider.Temporary: 0, provider.Throttled: 0, provider.Credentials: 0, provider.Quota: 0,
		},
		Request: func(id string, attempt int) provider.CreateRequest {
			req := request(id)
			req.Call = fmt.Sprintf("%s-%d", id, attempt) // each call has another token
			return req
		},
		Created: late.running.Wait, There: func() int { return len(c.Servers()) },
	}
	proxy, behind := behindFaults(t, c,
		func(h http.Handler) http.Handler { late.Handler = h; return late }, crowd.Meter.Before,
		faultproxy.Fault{Kind: faultproxy.Swallow, When: post, Chance: .15},
		faultproxy.Fault{Kind: faultproxy.Swallow, Chance: .03},
		faultproxy.Fault{Kind: faultproxy.Lose, Chance: .03},
		faultproxy.Fault{Kind: faultproxy.Cut, Chance: .03},
		refusal(http.StatusInternalServerError, .03), refusal(http.StatusServiceUnavailable, .02),
		refusal(http.StatusUnauthorized, .01), throttled, quota,
		faultproxy.Fault{Kind: faultproxy.Stale, When: lists, Chance: .2, Age: age},
	)
	limited := func(config *Config) { behind(config); config.Rate = rate / 2 }
	crowd.Leaders = []provider.Provider{on(t, c, limited), on(t, c, limited)}
	figures := crowd.Run(t)
	hits := proxy.Hits()
	if figures.Copies == 0 || len(hits) < 4 {
		t.Errorf("faults %v made no copy", hits)
	}
	// Each may send a second's worth at once, and then as many as its rate says.
	if allowed := rate * (1 + figures.Whole.Seconds()); float64(figures.Requests) > allowed {
		t.Errorf("%d requests were sent, and %.0f are allowed", figures.Requests, allowed)
	}
	t.Logf("%s; faults %v", figures, hits)
}
