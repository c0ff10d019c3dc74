package targetgroup_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/amazon"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/balancer/balancertest"
	"github.com/leasehold/leasehold/provider/balancer/suite"
	"github.com/leasehold/leasehold/provider/balancer/targetgroup"
	"github.com/leasehold/leasehold/provider/balancer/targetgroup/targetgrouptest"
	"github.com/leasehold/leasehold/provider/faultproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	arn   = "arn:aws:elasticloadbalancing:test-1:123456789012:targetgroup/web/73e2d6bc24d8a067"
	other = "arn:aws:elasticloadbalancing:test-1:123456789012:targetgroup/api/0123456789abcdef"
)

// account returns the account of most tests.
func account() targetgrouptest.Config {
	return targetgrouptest.Config{
		Region: "test-1", Keys: map[string]string{"AKIATEST": "s3cret"}, Groups: map[string]targetgrouptest.Group{
			arn: {Type: "ip", Checks: 10 * time.Millisecond, Delay: 300 * time.Millisecond},
		},
	}
}

// cloud is a server behind a proxy that has requests fail.
type cloud struct {
	t      *testing.T
	server *targetgrouptest.Server
	proxy  *faultproxy.Proxy
	hangs  atomic.Bool
	url    string
}

func serve(t *testing.T, c targetgrouptest.Config) *cloud {
	t.Helper()
	w := &cloud{t: t, server: targetgrouptest.New(c)}
	w.proxy = faultproxy.New(w.server, 1)
	over := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.hangs.Load() {
			_, _ = r.Body.Read(make([]byte, 1<<16)) // else the end of the request is not noticed
			<-r.Context().Done()
			return
		}
		w.proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() {
		over.CloseClientConnections()
		over.Close()
		w.server.Close()
	})
	w.url = over.URL
	return w
}

// open opens a balancer as one coordinator.
func (w *cloud) open(groups ...string) (*targetgroup.Balancer, error) {
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	b, err := targetgroup.New(w.t.Context(), targetgroup.Config{
		Region: "test-1", Endpoint: w.url, Secrets: &amazon.Secrets{AccessKeyID: "id", SecretAccessKey: "key"},
		TargetGroups: groups, CallsPerMinute: 60000, CallTimeout: "2s", Consistency: "1s",
		Client: &http.Client{Transport: transport},
	})
	if err == nil {
		b.UseSecrets(func(name string) (string, error) {
			return map[string]string{"id": "AKIATEST", "key": "s3cret"}[name], nil
		})
	}
	return b, err
}

func (w *cloud) must(groups ...string) *targetgroup.Balancer {
	w.t.Helper()
	b, err := w.open(groups...)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

func refusal(status int, code string) faultproxy.Answer {
	return faultproxy.Answer{
		Status: status, Header: http.Header{"Content-Type": {"text/xml"}},
		Body: "<ErrorResponse><Error><Code>" + code + "</Code><Message>because of the " +
			"test</Message></Error><RequestId>x</RequestId></ErrorResponse>",
	}
}

// The suite, with a test server that balances no traffic.
//
// proves LB-1, LB-3, PROV-5
func TestTargetGroupsKeepTheContract(t *testing.T) {
	t.Parallel()
	w := serve(t, account())
	fault := func(f faultproxy.Fault) func() func() {
		return func() func() {
			w.proxy.Add(f)
			return w.proxy.Clear
		}
	}
	place := func(address string, port int) netip.AddrPort {
		return netip.AddrPortFrom(netip.MustParseAddr(address), uint16(port))
	}
	noTraffic := []string{
		"AddBringsTraffic", "AddAtAnotherAddress", "DrainKeepsWhatIsInUse", "AddEndsADrain", "RemoveDuringADrain",
		"WhatIsForgottenIsPutBack",
	}
	balancertest.Run(t, suite.Harness{
		Open: func() (balancer.Balancer, error) { return w.open(arn) },
		Forget: func() error {
			w.server.Forget(arn)
			return nil
		},
		Foreign: func(address string, port int) error {
			w.server.Register(arn, place(address, port))
			return nil
		},
		ForeignStands: func(address string, port int) (bool, error) {
			return w.server.Deregister(arn, place(address, port)), nil
		},
		Break: map[suite.Way]func() func(){
			suite.IsDown:      fault(faultproxy.Fault{Kind: faultproxy.Lose}),
			suite.AnswersPart: fault(faultproxy.Fault{Kind: faultproxy.Cut}),
			suite.TalksNonsense: fault(faultproxy.Fault{Kind: faultproxy.Refuse, Answer: faultproxy.Answer{
				Status: 200,
				Body:   "<html>hello",
			}}),
			suite.Refuses: fault(faultproxy.Fault{Kind: faultproxy.Refuse, Answer: refusal(403, "AccessDenied")}),
			suite.Hangs: func() func() {
				w.hangs.Store(true)
				return func() { w.hangs.Store(false) }
			},
		},
	}, append(noTraffic, "WeightIsKept")...)
}

var member = balancer.Member{Instance: "web-1", Address: "127.0.0.1", Port: 9}

// Amazon's errors get the kinds that coordinators act on, and requests are sent once.
//
// proves PROV-5
func TestErrorsHaveKinds(t *testing.T) {
	t.Parallel()
	w := serve(t, account())
	for code, want := range map[string]provider.Kind{
		"Throttling": provider.Throttled, "RequestLimitExceeded": provider.Throttled,
		"AccessDenied": provider.Credentials, "ExpiredToken": provider.Credentials,
		"SignatureDoesNotMatch": provider.Credentials,
		"TooManyTargets":        provider.Capacity, "TooManyRegistrationsForTargetId": provider.Capacity,
		"TargetGroupNotFound": provider.Invalid, "InvalidTarget": provider.Invalid, "ValidationError": provider.Invalid,
		"InternalFailure": provider.Temporary, "ServiceUnavailable": provider.Temporary,
		"UnknownToEveryone": provider.Temporary,
	} {
		w.proxy.Add(faultproxy.Fault{Kind: faultproxy.Refuse, Answer: refusal(400, code)})
		before := w.proxy.Hits()[faultproxy.Refuse]
		b := w.must(arn)
		err := b.Add(t.Context(), "sh1", member)
		if provider.KindOf(err) != want || !strings.Contains(fmt.Sprint(err), code) ||
			!strings.Contains(err.Error(), "because of the test") {
			t.Errorf("%s: %s: %v", code, provider.KindOf(err), err)
		}
		if hits := w.proxy.Hits()[faultproxy.Refuse] - before; hits != 1 {
			t.Errorf("%s: %d requests", code, hits)
		}
		if after, throttled := provider.RetryAfter(err); throttled && (after <= 0 || after > amazon.MaxPause) {
			t.Errorf("%s: ask again after %s", code, after)
		}
		w.proxy.Clear()
	}
	b := w.must(arn)
	b.UseSecrets(func(string) (string, error) { return "", fmt.Errorf("no such secret") })
	if _, err := b.List(t.Context(), "sh1", nil); provider.KindOf(err) != provider.Credentials {
		t.Errorf("without its secret: %v", err)
	}
	b.UseSecrets(func(string) (string, error) { return "wrong", nil })
	if _, err := b.List(t.Context(), "sh1", nil); provider.KindOf(err) != provider.Credentials {
		t.Errorf("with a wrong key: %v", err)
	}
}

func action(name string) func(*http.Request, []byte) bool {
	return func(_ *http.Request, body []byte) bool {
		form, err := url.ParseQuery(string(body))
		return err == nil && form.Get("Action") == name
	}
}

// A request whose answer was lost had its effect. The call is an error, and may be repeated.
//
// proves LB-3
func TestAnswersThatAreLost(t *testing.T) {
	t.Parallel()
	w := serve(t, account())
	b := w.must(arn)
	membership := func() balancer.Membership {
		l, err := b.List(t.Context(), "sh1", []balancer.Member{member})
		if err != nil {
			t.Fatal(err)
		}
		return l.Of(member)
	}
	w.proxy.Add(faultproxy.Fault{Kind: faultproxy.Swallow, When: action("RegisterTargets"), Times: 1})
	if err := b.Add(t.Context(), "sh1", member); err == nil || membership().Has != 1 {
		t.Errorf("Add whose answer was lost: %v, %+v", err, membership())
	}
	if err := b.Add(t.Context(), "sh1", member); err != nil {
		t.Error(err)
	}
	w.proxy.Add(faultproxy.Fault{Kind: faultproxy.Swallow, When: action("DeregisterTargets"), Times: 1})
	if err := b.Drain(t.Context(), "sh1", member); err == nil || membership().Draining != 1 {
		t.Errorf("Drain whose answer was lost: %v, %+v", err, membership())
	}
	// A draining member is not deregistered again, which would restart its drain.
	before := w.server.Requests("DeregisterTargets")
	for range 3 {
		if err := b.Remove(t.Context(), "sh1", member); err != nil {
			t.Error(err)
		}
	}
	if sent := w.server.Requests("DeregisterTargets") - before; sent != 0 {
		t.Errorf("it was deregistered %d times more", sent)
	}
}

// A member joins all groups; a group that Amazon refuses or does not know is reported separately.
//
// proves LB-2, LB-3
func TestSeveralGroups(t *testing.T) {
	t.Parallel()
	c := account()
	c.Groups[other] = targetgrouptest.Group{Type: "ip", Unused: true, Most: 1}
	w := serve(t, c)
	both := w.must(arn, other)
	if err := both.Add(t.Context(), "sh1", member); err != nil {
		t.Fatal(err)
	}
	l, err := both.List(t.Context(), "sh1", []balancer.Member{member})
	if err != nil || !l.Of(member).InPlace() || l.Of(member).Confirmed() {
		t.Errorf("a group that no load balancer uses confirms no member: %+v, %v", l, err)
	}
	second := balancer.Member{Instance: "web-2", Address: "127.0.0.1", Port: 10}
	if err := both.Add(t.Context(), "sh1", second); provider.KindOf(err) != provider.Capacity ||
		!strings.Contains(err.Error(), "api") {
		t.Errorf("Add to a group that is full: %v", err)
	}
	if l, err := both.List(t.Context(), "sh1", []balancer.Member{second}); err != nil || l.Of(second).Has != 1 ||
		l.Targets[0].Foreign != 1 {
		t.Errorf("%+v, %v", l, err)
	}
	w.server.Delete(other)
	if l, err := both.List(t.Context(), "sh1", []balancer.Member{member}); err != nil || len(l.Silent()) != 1 ||
		l.Silent()[0] != "api" {
		t.Errorf("of two groups one is gone: %+v, %v", l, err)
	}
}

// Requests are bounded: a request whose turn is too far away is not sent, and its error says when
// to repeat it.
//
// proves PROV-5
func TestThrottles(t *testing.T) {
	t.Parallel()
	c := account()
	c.PerSecond, c.Burst = 0.001, 1
	w := serve(t, c)
	b := w.must(arn)
	if _, err := b.List(t.Context(), "sh1", nil); err != nil {
		t.Fatal(err)
	}
	_, err := b.List(t.Context(), "sh1", nil)
	if after, throttled := provider.RetryAfter(err); !throttled || after > amazon.MaxPause {
		t.Errorf("a second request: %v", err)
	}
}

// An answer without a list of targets is no empty list: nothing is known of the members. The SDK
// takes an empty body for an answer in which nothing is set.
//
// proves LB-3
func TestAnAnswerWithoutAListProvesNothing(t *testing.T) {
	t.Parallel()
	w := serve(t, account())
	b := w.must(arn)
	if err := b.Add(t.Context(), "sh1", member); err != nil {
		t.Fatal(err)
	}
	recorded := []balancer.Member{member}
	for _, body := range []string{
		"", "<DescribeTargetHealthResponse><DescribeTargetHealthResult/></DescribeTargetHealthResponse>",
	} {
		w.proxy.Add(faultproxy.Fault{Kind: faultproxy.Refuse, Answer: faultproxy.Answer{Status: 200, Body: body}})
		if l, err := b.List(t.Context(), "sh1", recorded); err == nil {
			t.Errorf("%q: %+v, so the member is gone: %v", body, l.Targets, l.Of(member).Gone())
		}
		w.proxy.Clear()
	}
	if l, err := b.List(t.Context(), "sh1", recorded); err != nil || l.Of(member).Has != 1 {
		t.Errorf("%+v, %v", l.Targets, err)
	}
}

// Impossible configurations are refused with the next step.
//
// proves SEC-7
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	good := targetgroup.Config{Region: "test-1", TargetGroups: []string{arn}}
	if _, err := targetgroup.New(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	for says, change := range map[string]func(*targetgroup.Config){
		"region: is missing":          func(c *targetgroup.Config) { c.Region = "" },
		"region: \"../x\"":            func(c *targetgroup.Config) { c.Region = "../x" },
		"arns: is missing":            func(c *targetgroup.Config) { c.TargetGroups = nil },
		"must be an ARN":              func(c *targetgroup.Config) { c.TargetGroups = []string{"web"} },
		"in another region":           func(c *targetgroup.Config) { c.Region = "test-2" },
		"is named twice":              func(c *targetgroup.Config) { c.TargetGroups = []string{arn, arn} },
		"calls_per_minute: -1":        func(c *targetgroup.Config) { c.CallsPerMinute = -1 },
		"secrets: needs":              func(c *targetgroup.Config) { c.Secrets = &amazon.Secrets{AccessKeyID: "x"} },
		"call_timeout: \"soon\"":      func(c *targetgroup.Config) { c.CallTimeout = "soon" },
		"endpoint: \"ftp://x\": must": func(c *targetgroup.Config) { c.Endpoint = "ftp://x" },
	} {
		c := good
		change(&c)
		if _, err := targetgroup.New(t.Context(), c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	a := account()
	a.Groups[other] = targetgrouptest.Group{Type: "instance", Unused: true}
	w := serve(t, a)
	for group, says := range map[string]string{
		other:                     "make one of type ip",
		arn[:len(arn)-4] + "0000": "TargetGroupNotFound",
	} {
		if err := w.must(group).Add(t.Context(), "sh1", member); provider.KindOf(err) != provider.Invalid ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// A redirect is not followed, also if it keeps the method, and no link-local address is asked.
//
// proves SEC-7
func TestOnlyTheEndpointIsReached(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer elsewhere.Close()
	api := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer api.Close()
	for endpoint, says := range map[string]string{api.URL: "", "http://169.254.169.254": "link-local"} {
		b, err := targetgroup.New(t.Context(), targetgroup.Config{
			Region: "test-1", TargetGroups: []string{arn}, Endpoint: endpoint,
			Secrets: &amazon.Secrets{AccessKeyID: "id", SecretAccessKey: "key"},
		})
		if err != nil {
			t.Fatal(err)
		}
		b.UseSecrets(func(string) (string, error) { return "x", nil })
		if _, err := b.List(t.Context(), "sh1", nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", endpoint, err, says)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests reached the address of the redirect", n)
	}
}
