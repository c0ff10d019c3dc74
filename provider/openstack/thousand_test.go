package openstack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/faultproxy"
	"github.com/leasehold/leasehold/provider/openstack/openstacktest"
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
	var requests atomic.Int64
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
	proxy, behind := behindFaults(t, c,
		func(h http.Handler) http.Handler { late.Handler = h; return late },
		func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { requests.Add(1); h.ServeHTTP(w, r) })
		},
		faultproxy.Fault{Kind: faultproxy.Swallow, When: post, Chance: .15},
		faultproxy.Fault{Kind: faultproxy.Swallow, Chance: .03},
		faultproxy.Fault{Kind: faultproxy.Lose, Chance: .03},
		faultproxy.Fault{Kind: faultproxy.Cut, Chance: .03},
		refusal(http.StatusInternalServerError, .03), refusal(http.StatusServiceUnavailable, .02),
		refusal(http.StatusUnauthorized, .01), throttled, quota,
		faultproxy.Fault{Kind: faultproxy.Stale, When: lists, Chance: .2, Age: age},
	)
	limited := func(config *Config) { behind(config); config.Rate = rate / 2 }
	leaders := []*Provider{on(t, c, limited), on(t, c, limited)}
	// persist repeats a call as coordinators do, each time by the other one.
	persist := func(what string, call func(ctx context.Context, p *Provider, attempt int) error) {
		var err error
		for attempt := range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err = call(ctx, leaders[attempt%2], attempt)
			cancel()
			if err == nil {
				return
			}
			switch provider.KindOf(err) {
			case provider.Temporary, provider.Throttled, provider.Credentials, provider.Quota:
			default:
				t.Errorf("%s: an error that would end it: %v", what, err)
				return
			}
		}
		t.Errorf("%s: 200 attempts: %v", what, err)
	}
	all := func(do func(id string)) {
		ids := make(chan string)
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for id := range ids {
					do(id)
				}
			})
		}
		for i := range n {
			ids <- fmt.Sprintf("web-%d", i)
		}
		close(ids)
		wg.Wait()
	}
	// list is what is there once no answer can be from before.
	list := func() (machines []provider.Machine) {
		<-time.After(age)
		persist("list", func(ctx context.Context, p *Provider, _ int) (err error) {
			machines, err = p.List(ctx, shard)
			return err
		})
		return machines
	}

	begun := time.Now()
	var mu sync.Mutex
	registered := map[string]string{} // the machine that its Create returned, whose agent registers, by instance
	all(func(id string) {
		persist("create "+id, func(ctx context.Context, p *Provider, attempt int) error {
			req := request(id)
			req.Call = fmt.Sprintf("%s-%d", id, attempt) // each call has another token
			m, err := p.Create(ctx, req)
			if err == nil {
				mu.Lock()
				registered[id] = m.Ref
				mu.Unlock()
			}
			return err
		})
	})
	late.running.Wait()
	made, took := len(c.Servers()), time.Since(begun)
	// As a leader does: where several are listed for an instance, the servers of calls whose
	// machine never registered go.
	for _, m := range list() {
		if registered[m.Instance] != m.Ref {
			persist("remove a copy", func(ctx context.Context, p *Provider, _ int) error {
				return p.RemoveCopy(ctx, shard, m.Instance, m.Ref, m.Call)
			})
		}
	}
	of := map[string]string{}
	for _, m := range list() {
		if of[m.Instance] != "" || registered[m.Instance] != m.Ref {
			t.Errorf("%s is listed as %s and %s; %s registered", m.Instance, m.Ref, of[m.Instance], registered[m.Instance])
		}
		of[m.Instance] = m.Ref
	}
	if len(of) != n || len(c.Servers()) != n {
		t.Errorf("%d instances are listed, and there are %d servers, want %d", len(of), len(c.Servers()), n)
	}
	all(func(id string) {
		persist("delete "+id, func(ctx context.Context, p *Provider, _ int) error { return p.Delete(ctx, shard, id) })
	})
	// As a leader does: what is listed still is removed again.
	for range 10 {
		left := list()
		for _, m := range left {
			persist("delete again "+m.Instance, func(ctx context.Context, p *Provider, _ int) error {
				return p.Delete(ctx, shard, m.Instance)
			})
		}
		if len(left) == 0 {
			break
		}
	}
	if left := c.Servers(); len(left) > 0 {
		t.Errorf("%d servers are left: %+v", len(left), left[0])
	}
	hits := proxy.Hits()
	if made == n || len(hits) < 4 {
		t.Errorf("faults %v made no copy", hits)
	}
	// Each may send a second's worth at once, and then as many as its rate says.
	if sent, allowed := requests.Load(), rate*(1+time.Since(begun).Seconds()); float64(sent) > allowed {
		t.Errorf("%d requests were sent, and %.0f are allowed", sent, allowed)
	}
	t.Logf("%d machines: %d servers were made in %s, all removed after %s; %d requests, faults %v", n, made,
		took.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond), requests.Load(), hits)
}
