package openstack

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/faultproxy"
	"github.com/leasehold/leasehold/provider/openstack/openstacktest"
)

// behindFaults puts a proxy before a cloud, and returns how a provider is configured that reaches
// the cloud through it. What is between the proxy and the cloud, and before the proxy, may be nil.
func behindFaults(t *testing.T, c *openstacktest.Cloud, between, before func(http.Handler) http.Handler,
	faults ...faultproxy.Fault,
) (*faultproxy.Proxy, func(*Config)) {
	t.Helper()
	to, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	behind := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(behind.CloseIdleConnections)
	same := func(h http.Handler) http.Handler { return h }
	if between == nil {
		between, before = same, same
	}
	proxy := faultproxy.New(between(&httputil.ReverseProxy{
		Transport: behind, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
	}), 1, faults...)
	over := httptest.NewServer(before(proxy))
	t.Cleanup(over.Close)
	return proxy, func(config *Config) {
		config.AuthURL = over.URL + "/identity/v3"
		config.Endpoints = map[string]string{
			"compute": over.URL + "/compute/v2.1", "image": over.URL + "/image", "network": over.URL + "/network",
		}
	}
}

// Whatever happens to requests and answers, calls that are repeated end as they should, with one
// server for each instance, and a list is never a part.
//
// proves SAFE-8, PROV-5
func TestFaults(t *testing.T) {
	c := newCloud(t)
	tooFast := faultproxy.Answer{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"0.01"}}}
	faults := []faultproxy.Fault{
		{Kind: faultproxy.Lose},
		{Kind: faultproxy.Swallow},
		{Kind: faultproxy.Cut},
		{Kind: faultproxy.Refuse, Answer: faultproxy.Answer{Status: http.StatusInternalServerError}},
		{Kind: faultproxy.Refuse, Answer: faultproxy.Answer{Status: http.StatusBadGateway, Body: "<html>"}},
		{Kind: faultproxy.Refuse, Answer: faultproxy.Answer{Status: http.StatusUnauthorized}},
		{Kind: faultproxy.Refuse, Answer: tooFast},
	}
	for i := range faults {
		faults[i].Chance = 0.03
	}
	proxy, behind := behindFaults(t, c, nil, nil, faults...)
	p := on(t, c, behind)
	repeated := func(what string, call func(ctx context.Context) error) {
		var err error
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err = call(ctx)
			cancel()
			if err == nil {
				return
			}
			if kind := provider.KindOf(err); kind != provider.Temporary && kind != provider.Throttled &&
				kind != provider.Credentials {
				t.Errorf("%s: %s: %v", what, kind, err)
				return
			}
		}
		t.Errorf("%s did not succeed: %v", what, err)
	}
	const instances = 6
	var wg sync.WaitGroup
	for i := range instances {
		id := fmt.Sprintf("i-%d", i)
		wg.Go(func() {
			repeated("create", func(ctx context.Context) error { _, err := p.Create(ctx, request(id)); return err })
			repeated("stop", func(ctx context.Context) error { return p.Stop(ctx, shard, id, time.Second) })
			repeated("restart", func(ctx context.Context) error { return p.Restart(ctx, shard, id, "") })
			if i%2 == 1 {
				repeated("delete", func(ctx context.Context) error { return p.Delete(ctx, shard, id) })
			}
		})
	}
	var done sync.WaitGroup
	stop := make(chan struct{})
	done.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			_, _ = p.List(t.Context(), shard) // it may fail
		}
	})
	wg.Wait()
	close(stop)
	done.Wait()
	if hits := proxy.Hits(); len(hits) < 4 {
		t.Errorf("only these faults happened: %v", hits)
	}
	proxy.Clear()
	all := mustList(t, p)
	of := map[string]bool{}
	for _, m := range all {
		of[m.Instance] = true
		if m.State != provider.StateRunning {
			t.Errorf("%+v, want it running", m)
		}
	}
	if len(all) != instances/2 || len(of) != instances/2 || len(c.Servers()) != instances/2 {
		t.Errorf("listed %+v; there are %+v", all, c.Servers())
	}
}
