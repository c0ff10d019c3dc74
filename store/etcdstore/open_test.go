package etcdstore

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/ports"
)

func TestOpenFailsAtOnceWhereNothingListens(t *testing.T) {
	closed := ports.Between(1100, 2000).FreeAddress(t)
	_, err := Open(t.Context(), Config{Endpoints: []string{closed}, DialTimeout: limit})
	sayAll(t, err, store.ErrUnavailable, closed, "connection refused", "check that etcd runs there")
}

func TestOpenIsBoundedWhereAServerListensAndDoesNotAnswer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, no process reads
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_, err = Open(t.Context(), Config{Endpoints: []string{silent.Addr().String()}, DialTimeout: 300 * time.Millisecond})
	sayAll(t, err, store.ErrUnavailable, silent.Addr().String(), "no answer in time")

	// gRPC gives up before that
	_, err = Open(t.Context(), Config{Endpoints: []string{silent.Addr().String()}, DialTimeout: limit})
	sayAll(t, err, store.ErrUnavailable, silent.Addr().String(), "answers nothing", "stands still")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Open(ctx, Config{Endpoints: []string{silent.Addr().String()}, DialTimeout: limit})
	sayAll(t, err, store.ErrUnavailable, "context canceled")
}

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		says string
	}{
		{Config{}, "no endpoint"},
		{Config{Endpoints: []string{" "}}, "no endpoint"},
		{Config{Endpoints: []string{"a:1"}, Username: "u"}, "go together"},
		{Config{Endpoints: []string{"a:1"}, RenewStreams: 65}, "RenewStreams"},
		{Config{Endpoints: []string{"a:1"}, RenewStall: -1}, "RenewStall"},
	} {
		if _, err := Open(t.Context(), c.cfg); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: got %v, want it to say %q", c.cfg, err, c.says)
		}
	}
}

// sayAll checks what an error is, that it is one line, and what it says.
func sayAll(t *testing.T, err, sentinel error, want ...string) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Fatalf("got %v, want %v", err, sentinel)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is more than one line", err)
	}
}
