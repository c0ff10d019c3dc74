package server

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/cmd/services"
)

// A host that joins while another is being added waits by itself, and says so once.
//
// proves DAY-1
func TestAJoinWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		log := slog.New(slog.NewTextHandler(&said, nil))
		began, tries := time.Now(), 0
		if err := afterOthers(t.Context(), log, func() error {
			if tries++; tries < 10 {
				return &busyError{"c is being added", "wait"}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(said.String(), "c is being added"); n != 1 || time.Since(began) != 9*busyPause {
			t.Errorf("%d lines after %s:\n%s", n, time.Since(began), said.String())
		}
		other := errors.New("the token is unknown")
		if err := afterOthers(t.Context(), log, func() error { return other }); !errors.Is(err, other) {
			t.Errorf("another error: %v", err)
		}
	})
}

// A name that leads to another machine is named, with where it leads.
func TestANameThatLeadsElsewhere(t *testing.T) {
	own := []net.Addr{&net.IPNet{IP: net.ParseIP("10.0.0.1"), Mask: net.CIDRMask(24, 32)}}
	at := func(all ...string) (out []net.IPAddr) {
		for _, one := range all {
			out = append(out, net.IPAddr{IP: net.ParseIP(one)})
		}
		return out
	}
	for _, c := range []struct {
		name  string
		found []net.IPAddr
		want  string
	}{
		{"a", at("10.0.0.1"), ""},
		{"a", at("10.0.0.9", "10.0.0.1"), ""},
		{"a", at("127.0.1.1"), ""},
		{"a", nil, ""},
		{"a", at("10.0.0.2"), "a resolves to 10.0.0.2, which is no address of this host"},
		{"a", at("10.0.0.2", "10.0.0.3"), "a resolves to 10.0.0.2 and 10.0.0.3, which are no addresses of this host"},
		{"10.0.0.2", at("10.0.0.2"), "10.0.0.2 is no address of this host"},
	} {
		if got := foreign(c.name, c.found, own); got != c.want {
			t.Errorf("%s at %v: %q, want %q", c.name, c.found, got, c.want)
		}
	}
}

// A first host that does not reach itself says where its own name leads.
func TestAHostThatDoesNotReachItself(t *testing.T) {
	p, silent := Place{Dir: "/data"}, errors.New("a does not answer")
	r := Record{Name: "a", Address: "192.0.2.1"}
	err := p.explainOwn(t.Context(), r, silent)
	var said *services.Problem
	if !errors.As(err, &said) || said.What != "a does not answer; 192.0.2.1 is no address of this host" ||
		!strings.Contains(said.Next, "--address") {
		t.Errorf("said %v", err)
	}
	if r.Address = "127.0.0.1"; !errors.Is(p.explainOwn(t.Context(), r, silent), silent) {
		t.Error("its own address is called another's")
	}
}
