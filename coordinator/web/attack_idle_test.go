//go:build !race

// The race detector would make these many times slower, and sees the same code in other tests.

package web_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/coordinator/web"
)

// Thousands of connections that say nothing, or never finish, keep no client out, and are cut off.
func TestIdleConnectionsGiveWay(t *testing.T) {
	t.Parallel()
	s := open(t, web.Config{Listen: loopback}, web.Deps{})
	var idle []net.Conn
	defer func() {
		for _, c := range idle {
			c.Close()
		}
	}()
	for i := range 2000 {
		c := s.dial()
		idle = append(idle, c)
		if i%2 == 0 {
			_, _ = io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: local") // and so on, one day
		}
		if i%100 == 99 {
			if code, _, _ := s.get("/metrics"); code != http.StatusOK {
				t.Fatalf("beside %d idle connections: %d", i+1, code)
			}
		}
	}
	for i, c := range idle[:1000] { // all but the last few have been cut off already
		if _, rest := answer(c); strings.Contains(rest, "ok") {
			t.Fatalf("connection %d was answered", i)
		}
	}
}
