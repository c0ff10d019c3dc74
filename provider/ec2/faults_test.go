package ec2

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/ec2/ec2test"
	"github.com/leasehold/leasehold/provider/faultproxy"
	"github.com/leasehold/leasehold/provider/suite"
)

// action chooses requests of one action.
func action(names ...string) func(*http.Request, []byte) bool {
	return func(_ *http.Request, body []byte) bool {
		form, err := url.ParseQuery(string(body))
		for _, name := range names {
			if err == nil && form.Get("Action") == name {
				return true
			}
		}
		return false
	}
}

// refusal is EC2's answer with an error.
func refusal(status int, code string) faultproxy.Answer {
	return faultproxy.Answer{
		Status: status, Header: http.Header{"Content-Type": {"text/xml"}},
		Body: `<?xml version="1.0" encoding="UTF-8"?><Response><Errors><Error><Code>` + code +
			`</Code><Message>because of the test</Message></Error></Errors><RequestID>x</RequestID></Response>`,
	}
}

// imagined is a server behind a proxy, in virtual time.
type imagined struct {
	t      *testing.T
	server *ec2test.Server
	proxy  *faultproxy.Proxy
	pipes  *faultproxy.Pipes
}

func imagine(t *testing.T, c ec2test.Config, faults ...faultproxy.Fault) *imagined {
	t.Helper()
	w := &imagined{t: t, server: ec2test.New(c), pipes: faultproxy.NewPipes()}
	w.proxy = faultproxy.New(w.server, 1, faults...)
	stop := w.pipes.Serve(w.proxy)
	t.Cleanup(func() {
		stop()
		w.server.Close()
	})
	return w
}

// provider is one of a coordinator's own.
func (w *imagined) provider(change func(*Config)) *Provider {
	w.t.Helper()
	c := configuration("http://ec2.test")
	c.PollInterval, c.Consistency, c.CallTimeout, c.CallsPerMinute = "3s", "1m", "5m", defaultCalls
	client := w.pipes.Client(requestTimeout)
	w.t.Cleanup(client.CloseIdleConnections)
	c.Client = client
	if change != nil {
		change(&c)
	}
	return open(w.t, c)
}

// sleep lets virtual time pass.
func sleep(d time.Duration) { <-time.After(d) }

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

// A thousand machines are made and removed while everything goes wrong that can, by two coordinators
// one of which takes over the other's calls. No instance ever has two machines, nothing is left, and
// EC2 gets no more requests in any minute than the two are allowed.
//
// proves SAFE-8, PROV-4, PROV-5
func TestAThousandMachinesWithFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, workers, perMinute = 1000, 64, 600
		c := account()
		c.Lag, c.TagLag, c.BootTime, c.StopTime = 10*time.Second, 20*time.Second, 15*time.Second, 40*time.Second
		c.PerSecond, c.Burst, c.PageSize = 8, 60, 300
		describe := action("DescribeInstances")
		w := imagine(t, c,
			faultproxy.Fault{Kind: faultproxy.Refuse, From: 2 * time.Minute, Until: 4 * time.Minute, Answer: refusal(403, "ExpiredToken")},
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
		// As a coordinator does: a machine that is listed still, after the time of consistency, is removed again.
		for range 10 {
			sleep(2 * time.Minute)
			left := list()
			if len(left) == 0 {
				break
			}
			for _, m := range left {
				persist(t, func(ctx context.Context, attempt int) error { return leaders[attempt%2].Delete(ctx, "sh1", m.Instance) })
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
		if most := w.server.Busiest(time.Minute); most > perMinute+2*atOnce {
			t.Errorf("%d requests in a minute, and %d are allowed", most, perMinute+2*atOnce)
		}
		t.Logf("made in %s, removed in %s; requests %v, at most %d a minute; faults %v", took, time.Since(begun),
			w.server.Requests(), w.server.Busiest(time.Minute), w.proxy.Hits())
	})
}

// What EC2 answers becomes the kind of error that a coordinator acts upon, and is not repeated by the
// SDK.
//
// proves PROV-5
func TestErrorsHaveKinds(t *testing.T) {
	for code, want := range map[string]*provider.Error{
		"InsufficientInstanceCapacity":  {Kind: provider.Capacity, Scope: "zone b"},
		"Unsupported":                   {Kind: provider.Invalid, Scope: "zone b"},
		"InstanceLimitExceeded":         {Kind: provider.Quota, Scope: "account in test-1"},
		"VcpuLimitExceeded":             {Kind: provider.Quota, Scope: "account in test-1"},
		"MaxSpotInstanceCountExceeded":  {Kind: provider.Quota, Scope: "account in test-1"},
		"AddressLimitExceeded":          {Kind: provider.Quota, Scope: "account in test-1"},
		"AuthFailure":                   {Kind: provider.Credentials, Scope: "region test-1"},
		"UnauthorizedOperation":         {Kind: provider.Credentials, Scope: "region test-1"},
		"InvalidClientTokenId":          {Kind: provider.Credentials, Scope: "region test-1"},
		"ExpiredToken":                  {Kind: provider.Credentials, Scope: "region test-1"},
		"SignatureDoesNotMatch":         {Kind: provider.Credentials, Scope: "region test-1"},
		"RequestLimitExceeded":          {Kind: provider.Throttled, Scope: "m7g.large"},
		"Throttling":                    {Kind: provider.Throttled, Scope: "m7g.large"},
		"ThrottlingException":           {Kind: provider.Throttled, Scope: "m7g.large"},
		"InvalidParameterValue":         {Kind: provider.Invalid, Scope: "m7g.large"},
		"InvalidAMIID.NotFound":         {Kind: provider.Invalid, Scope: "m7g.large"},
		"InvalidGroup.NotFound":         {Kind: provider.Invalid, Scope: "m7g.large"},
		"InternalError":                 {Kind: provider.Temporary},
		"Unavailable":                   {Kind: provider.Temporary},
		"SomethingThatNobodyHasSeenYet": {Kind: provider.Temporary},
	} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := imagine(t, account(), faultproxy.Fault{Kind: faultproxy.Refuse, When: action("RunInstances"), Answer: refusal(400, code)})
				_, err := w.provider(nil).Create(t.Context(), suite.Request("sh1", "web-1", "b", plain))
				var got *provider.Error
				if provider.KindOf(err) != want.Kind || errors.As(err, &got) && got.Scope != want.Scope {
					t.Errorf("%s, scope %v: %v", provider.KindOf(err), got, err)
				}
				if !strings.Contains(err.Error(), code) || !strings.Contains(err.Error(), "because of the test") {
					t.Errorf("the error does not say what EC2 said: %v", err)
				}
				if after, throttled := provider.RetryAfter(err); throttled && (after <= 0 || after > maxPause) {
					t.Errorf("ask again after %s", after)
				}
				if hits := w.proxy.Hits()[faultproxy.Refuse]; hits != 1 {
					t.Errorf("%d requests, want one", hits)
				}
			})
		})
	}
}

// A List waits for throttles between its pages, and is whole or an error.
//
// proves PROV-1
func TestListIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := account()
		c.PageSize = 5
		w := imagine(t, c)
		p := w.provider(nil)
		for i := range 23 {
			if _, err := p.Create(t.Context(), suite.Request("sh1", fmt.Sprintf("web-%d", i), "b", plain)); err != nil {
				t.Fatal(err)
			}
		}
		second := func(r *http.Request, body []byte) bool {
			return action("DescribeInstances")(r, body) && strings.Contains(string(body), "NextToken=")
		}
		w.proxy.Add(faultproxy.Fault{Kind: faultproxy.Refuse, When: second, Times: 3, Answer: refusal(503, "RequestLimitExceeded")})
		w.proxy.Add(faultproxy.Fault{Kind: faultproxy.Cut, When: second, Times: 1})
		begun := time.Now()
		machines, err := p.List(t.Context(), "sh1")
		if err != nil || len(machines) != 23 {
			t.Errorf("%d machines, %v", len(machines), err)
		}
		if took := time.Since(begun); took < 7*minPause {
			t.Errorf("three throttles were waited for in %s", took)
		}
		w.proxy.Add(faultproxy.Fault{Kind: faultproxy.Cut, When: second})
		if machines, err := p.List(t.Context(), "sh1"); err == nil || len(machines) > 0 {
			t.Errorf("%d machines of a list that was cut off, %v", len(machines), err)
		}
	})
}

// No more requests are sent than are allowed: a call whose turn would come too late says when to come
// again, and sends none.
//
// proves PROV-5
func TestRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := imagine(t, account())
		p := w.provider(func(c *Config) { c.CallsPerMinute = 2 })
		for range 2 {
			if _, err := p.List(t.Context(), "sh1"); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := p.List(ctx, "sh1"); provider.KindOf(err) != provider.Throttled {
			t.Errorf("a third list: %v", err)
		}
		if got := w.server.Requests()["DescribeInstances"]; got != 2 {
			t.Errorf("%d requests", got)
		}
		if _, err := p.List(t.Context(), "sh1"); err != nil {
			t.Errorf("with time to wait: %v", err)
		}
	})
}
