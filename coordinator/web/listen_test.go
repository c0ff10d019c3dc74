package web_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/coordinator/web"
)

// An address that another program took is an error, unless any free port will do.
func TestListenWhereAnotherListens(t *testing.T) {
	t.Parallel()
	other, err := new(net.ListenConfig).Listen(t.Context(), "tcp", loopback)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	taken := other.Addr().String()
	server := func(orFreePort bool) *web.Server {
		t.Helper()
		s, err := web.New(web.Config{Listen: taken, OrFreePort: orFreePort, Shard: "test"}, idle(t))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if err := server(false).Listen(t.Context()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listening on %s, which is taken: %v", taken, err)
	}
	s := server(true)
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		over, end := context.WithCancel(t.Context())
		end()
		if err := s.Run(over); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	at, err := url.Parse(s.URL())
	if err != nil || at.Host == taken || at.Hostname() != "127.0.0.1" {
		t.Errorf("it listens at %s, %v: want another port of the same host than %s", s.URL(), err, taken)
	}
}
