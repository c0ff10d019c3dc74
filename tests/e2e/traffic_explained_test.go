package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/provider/balancer/haproxy/haproxytest"
)

// An operator sees what an instance waits for: a load balancer that has not confirmed it, and the
// connections that it still serves while it leaves.
//
// proves LB-1, LB-2
func TestWaitingForTrafficIsExplained(t *testing.T) {
	t.Parallel()
	s := newServedIn(t, "tcp") // a connection counts as in use as long as it is open
	s.applyWeb(1)
	s.inService(1)
	first := s.h.wanted("web")[0]
	held := s.open()

	s.relay.Set(haproxytest.Hang)
	s.must("group", "scale", "web", "2")
	var second string
	s.await("a second instance", func() bool {
		for _, id := range s.h.wanted("web") {
			if id != first {
				second = id
			}
		}
		return second != ""
	})
	s.shows("load balancer front has not confirmed it: it does not answer", "status")
	s.shows("load balancer front: joining", "explain", second)
	s.shows("freed when: the load balancer sends it traffic", "explain", second)
	s.relay.Set(haproxytest.Pass)
	s.inService(2)

	s.must("instance", "drain", first, "--confirm="+first)
	s.shows("freed when: its last connection ends", "explain", first)
	s.shows("removal of "+first+": it leaves load balancer front", "status")
	s.shows("it leaves load balancer front, with ", "explain", first)
	held()
	s.await("its removal", func() bool { return !s.h.instance(first).Present() })
}

// shows waits until a command prints a text.
func (w *world) shows(text string, command ...string) {
	w.t.Helper()
	w.await(fmt.Sprintf("leasehold %s with %q", strings.Join(command, " "), text), func() bool {
		return strings.Contains(w.must(command...), text)
	})
}

// open opens a connection through HAProxy, which is in use until the caller ends it.
func (s *served) open() (end func()) {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", s.haproxy.Front)
	if err != nil {
		s.t.Fatal(err)
	}
	end = sync.OnceFunc(func() { _ = conn.Close() })
	s.t.Cleanup(end)
	if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: web\r\n\r\n"); err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		s.t.Fatal(err)
	}
	return end
}
