package ec2

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/amazon"
	"github.com/leasehold/leasehold/provider/ec2/ec2test"
	"github.com/leasehold/leasehold/provider/faultproxy"
	"github.com/leasehold/leasehold/provider/providertest"
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
	meter  providertest.Meter // of all requests that are sent
}

func imagine(t *testing.T, c ec2test.Config, faults ...faultproxy.Fault) *imagined {
	t.Helper()
	w := &imagined{t: t, server: ec2test.New(c), pipes: faultproxy.NewPipes()}
	w.proxy = faultproxy.New(w.server, 1, faults...)
	stop := w.pipes.Serve(w.meter.Before(w.proxy))
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
	c.PollInterval, c.Consistency, c.CallTimeout, c.CallsPerMinute = "3s", "1m", "5m", amazon.DefaultCalls
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

// What EC2 answers becomes the kind of error that a coordinator acts on, and is not repeated by
// the SDK.
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
		"InvalidAMIID.NotFound":         {Kind: provider.Invalid, Scope: "settings.image"},
		"InvalidGroup.NotFound":         {Kind: provider.Invalid, Scope: "settings.security_groups"},
		"InvalidSubnetID.NotFound":      {Kind: provider.Invalid, Scope: "zones of the provider's configuration"},
		"InvalidKeyPair.NotFound":       {Kind: provider.Invalid, Scope: "settings.key_name"},
		"InternalError":                 {Kind: provider.Temporary},
		"Unavailable":                   {Kind: provider.Temporary},
		"SomethingThatNobodyHasSeenYet": {Kind: provider.Temporary},
	} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := imagine(t, account(), faultproxy.Fault{
					Kind: faultproxy.Refuse, When: action("RunInstances"),
					Answer: refusal(400, code),
				})
				_, err := w.provider(nil).Create(t.Context(), suite.Request("sh1", "web-1", "b", plain))
				var got *provider.Error
				if provider.KindOf(err) != want.Kind || errors.As(err, &got) && got.Scope != want.Scope {
					t.Errorf("%s, scope %v: %v", provider.KindOf(err), got, err)
				}
				if !strings.Contains(err.Error(), code) || !strings.Contains(err.Error(), "because of the test") {
					t.Errorf("the error does not say what EC2 said: %v", err)
				}
				if after, throttled := provider.RetryAfter(err); throttled && (after <= 0 || after > amazon.MaxPause) {
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
		w.proxy.Add(faultproxy.Fault{
			Kind: faultproxy.Refuse, When: second, Times: 3,
			Answer: refusal(503, "RequestLimitExceeded"),
		})
		w.proxy.Add(faultproxy.Fault{Kind: faultproxy.Cut, When: second, Times: 1})
		begun := time.Now()
		machines, err := p.List(t.Context(), "sh1")
		if err != nil || len(machines) != 23 {
			t.Errorf("%d machines, %v", len(machines), err)
		}
		if took := time.Since(begun); took < 7*amazon.MinPause {
			t.Errorf("three throttles were waited for in %s", took)
		}
		w.proxy.Add(faultproxy.Fault{Kind: faultproxy.Cut, When: second})
		if machines, err := p.List(t.Context(), "sh1"); err == nil || len(machines) > 0 {
			t.Errorf("%d machines of a list that was cut off, %v", len(machines), err)
		}
	})
}

// An answer without a list of machines is no empty list. The SDK takes an empty body, and XML of
// any other kind, for an answer in which nothing is set.
//
// proves PROV-1, DET-4
func TestAnAnswerWithoutAListProvesNothing(t *testing.T) {
	for name, body := range map[string]string{
		"empty": "", "a page": "<html><body>It works!</body></html>",
		"no list": `<DescribeInstancesResponse><requestId>x</requestId></DescribeInstancesResponse>`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := imagine(t, account())
				p := w.provider(nil)
				m := create(t, p, request("web-1", "b"))
				sleep(2 * time.Minute) // EC2 shows it, and it is no newborn any more
				w.proxy.Add(faultproxy.Fault{
					Kind: faultproxy.Refuse, When: action("DescribeInstances"), Answer: faultproxy.Answer{Status: 200, Body: body},
				})
				if machines, err := p.List(t.Context(), "sh1"); err == nil {
					t.Errorf("List: %v", machines)
				}
				if err := p.Delete(t.Context(), "sh1", "web-1"); err == nil {
					t.Error("Delete took it for deleted")
				}
				w.proxy.Clear()
				if l := listed(t, p); len(l) != 1 || l[m.Ref].State != provider.StateRunning {
					t.Errorf("listed %+v", l)
				}
			})
		})
	}
}

// No more requests are sent than are allowed: a call whose turn would come too late says when to
// come again, and sends none.
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
