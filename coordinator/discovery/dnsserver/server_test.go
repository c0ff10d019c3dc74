package dnsserver

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/discovery"
	"github.com/leasehold/leasehold/store"
)

// serve runs a server that knows some groups, until the test ends.
func serve(t *testing.T, allow ...string) *Server {
	t.Helper()
	cfg := Config{Listen: "127.0.0.1:0", Zone: "Main.Leasehold"}
	for _, network := range allow {
		cfg.Allow = append(cfg.Allow, netip.MustParsePrefix(network))
	}
	s, err := New(cfg, discovery.NewDirectory(cache.New(store.KeysOf("main"))), slog.New(slog.DiscardHandler))
	if err == nil {
		err = s.Listen(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	s.zone.directory = some
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return s
}

// proves LB-4: the same address answers by UDP and TCP, and only those that are allowed
func TestWhoIsAnswered(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		allow string
		want  string
	}{
		{"", "NOERROR | bare.main.leasehold. 5 IN A 10.0.0.4"},
		{"127.0.0.0/8", "NOERROR | bare.main.leasehold. 5 IN A 10.0.0.4"},
		{"10.0.0.0/8", "REFUSED"},
	} {
		var allow []string
		if test.allow != "" {
			allow = append(allow, test.allow)
		}
		s := serve(t, allow...)
		for _, network := range []string{"udp", "tcp"} {
			client := dns.Client{Net: network, Timeout: time.Minute}
			got, _, err := client.ExchangeContext(t.Context(), ask("bare.main.leasehold.", dns.TypeA), s.Address())
			if err != nil {
				t.Fatalf("allowed %q, by %s: %v", test.allow, network, err)
			}
			if told(got) != test.want {
				t.Errorf("allowed %q, by %s: %s, want %s", test.allow, network, told(got), test.want)
			}
		}
	}
}

func TestPrivateNetworks(t *testing.T) {
	s := &Server{allow: Private()}
	for address, want := range map[string]bool{
		"127.0.0.1": true, "10.1.2.3": true, "192.168.0.9": true, "172.31.0.1": true, "::1": true, "fd00::9": true,
		"fe80::1%lo": true, "::ffff:10.0.0.1": true,
		"8.8.8.8": false, "172.32.0.1": false, "2001:db8::1": false, "::ffff:8.8.8.8": false,
	} {
		if got := s.admits(udpAddress(address)); got != want {
			t.Errorf("%s is answered: %t, want %t", address, got, want)
		}
	}
}

// udpAddress is an address as a packet's sender has it.
type udpAddress string

func (udpAddress) Network() string { return "udp" }
func (a udpAddress) String() string {
	return netip.AddrPortFrom(netip.MustParseAddr(string(a)), 53).String()
}

func TestZonesThatAreNone(t *testing.T) {
	for _, zone := range []string{"", ".", "a b", "a..b", "a/b", "_x.y", "*.x"} {
		if _, err := New(Config{Zone: zone}, nil, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%q is a zone", zone)
		}
	}
}
