package haproxy_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/balancer/balancertest"
	"github.com/leasehold/leasehold/provider/balancer/haproxy"
	"github.com/leasehold/leasehold/provider/balancer/haproxy/haproxytest"
	"github.com/leasehold/leasehold/provider/balancer/suite"
	"github.com/leasehold/leasehold/tests/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, c haproxy.Config) *haproxy.Balancer {
	t.Helper()
	c.Name, c.Backend = "web", "web"
	b, err := haproxy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// quickChecks notices at once when a server comes up. The answer to a check may still take two
// seconds, since HAProxy allows it as long as the interval: with 50 ms, a healthy server of a busy
// machine is down for a moment.
const quickChecks = "check inter 2s fastinter 50ms downinter 50ms rise 2 fall 3"

// behindRelay returns what the suite is told of a HAProxy behind a relay.
func behindRelay(t *testing.T, p *haproxytest.Process, c haproxy.Config) suite.Harness {
	r := haproxytest.NewRelay(t, p)
	c.Sockets, c.Timeout = []string{"unix:" + r.Socket}, "2s"
	c.Name, c.Backend = "web", "web"
	as := func(m haproxytest.Mode) func() func() {
		return func() func() {
			r.Set(m)
			return func() { r.Set(haproxytest.Pass) }
		}
	}
	hand := func(address string, port int) string { return "hand" + fmt.Sprint(port) }
	return suite.Harness{
		Open:  func() (balancer.Balancer, error) { return haproxy.New(c) },
		Front: p.Front,
		Break: map[suite.Way]func() func(){
			suite.IsDown: as(haproxytest.Close), suite.Hangs: as(haproxytest.Hang),
			suite.TalksNonsense: as(haproxytest.Nonsense),
			suite.AnswersPart:   as(haproxytest.Part), suite.Refuses: as(haproxytest.NoRights),
		},
		Foreign: func(address string, port int) error {
			name := hand(address, port)
			_, err := p.Ask(fmt.Sprintf("add server web/%s %s:%d check; enable server web/%s", name, address, port, name))
			return err
		},
		ForeignStands: func(address string, port int) (bool, error) {
			state, err := p.Ask("show servers state web")
			name := hand(address, port)
			stands := false
			for _, line := range strings.Split(state, "\n") {
				f := strings.Fields(line)
				stands = stands || len(f) > 18 && f[3] == name && f[6] == "0" && f[4] == address && f[18] == fmt.Sprint(port)
			}
			if stands && err == nil {
				_, err = p.Ask(fmt.Sprintf("set server web/%s state maint; del server web/%s", name, name))
			}
			return stands, err
		},
	}
}

// The suite, with servers that are added to a real HAProxy, which forgets them when it reloads.
//
// proves LB-1, LB-3
func TestAddedServersKeepTheContract(t *testing.T) {
	t.Parallel()
	p := haproxytest.Start(t, 0)
	h := behindRelay(t, p, haproxy.Config{Server: quickChecks})
	h.Forget = func() error { p.Reload(); return nil }
	balancertest.Run(t, h)
}

// The suite, with the slots of a server-template, which survive a reload.
//
// proves LB-1, LB-3
func TestSlotsKeepTheContract(t *testing.T) {
	t.Parallel()
	p := haproxytest.Start(t, 10)
	h := behindRelay(t, p, haproxy.Config{Slots: "slot"})
	h.Forget = func() error {
		p.Save()
		p.Reload()
		return nil
	}
	balancertest.Run(t, h)
}

// member returns an instance at a server that answers.
func member(t *testing.T, instance string) balancer.Member {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = c.Read(make([]byte, 1000))
				_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"))
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return balancer.Member{Instance: instance, Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}
}

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	harness.Await(t, what, 30*time.Second, 10*time.Millisecond, so, nil)
}
