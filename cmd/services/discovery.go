package services

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/discovery"
	"github.com/leasehold/leasehold/coordinator/discovery/dnsserver"
)

// Discovery are the flags of the servers that tell clients which instances are in service.
type Discovery struct {
	DNS   string         `name:"dns" help:"Address to answer DNS queries for instances on, by UDP and TCP (default: off)." env:"LEASEHOLD_DNS" placeholder:"HOST:PORT"`
	Zone  string         `name:"dns-zone" help:"Name below which groups are found by DNS (default: SHARD.leasehold)." env:"LEASEHOLD_DNS_ZONE" placeholder:"NAME"`
	Allow []netip.Prefix `name:"dns-allow" help:"Networks whose DNS queries are answered (default: loopback, private and link-local networks)." placeholder:"CIDR"`
}

// guide are a replica's servers for clients that look for instances. All of them may be off.
type guide struct {
	directory *discovery.Directory
	dns       *dnsserver.Server // nil: off
	log       *slog.Logger
}

func off(address string) bool { return address == "" || address == "off" }

// open opens the listening addresses.
func (d Discovery) open(ctx context.Context, shard string, r *coordinator.Replica, log *slog.Logger) (*guide, error) {
	g := &guide{directory: discovery.NewDirectory(r.Cache()), log: log}
	if off(d.DNS) {
		return g, nil
	}
	if _, _, err := net.SplitHostPort(d.DNS); err != nil {
		return nil, problem("write it as HOST:PORT, or off", "--dns: %s: %s", d.DNS, err)
	}
	zone := d.Zone
	if zone == "" {
		zone = shard + ".leasehold"
	}
	server, err := dnsserver.New(dnsserver.Config{Listen: d.DNS, Zone: zone, Allow: d.Allow}, g.directory, log)
	if err != nil {
		return nil, problem("give a name like web.example with --dns-zone", "--dns-zone: %s", err)
	}
	switch err := server.Listen(ctx); {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, listenProblem("--dns", d.DNS, err)
	case errors.Is(err, syscall.EACCES):
		return nil, problem("choose a port above 1023, or give this program CAP_NET_BIND_SERVICE", "--dns: %s", err)
	case err != nil:
		return nil, problem("choose an address of this machine with --dns, or --dns off", "--dns: %s", err)
	}
	log.Info("serving dns", "address", server.Address(), "zone", server.Zone())
	g.dns = server
	return g, nil
}

// shown are the addresses for people.
func (g *guide) shown() string {
	if g.dns == nil {
		return ""
	}
	return "  dns " + g.dns.Address()
}

// around serves while the replica runs, and logs an early end. Agents are then served on.
func (g *guide) around(ctx context.Context, run func(context.Context) error) error {
	if g.dns == nil {
		return run(ctx)
	}
	serve, stop := context.WithCancel(context.WithoutCancel(ctx))
	var serving sync.WaitGroup
	defer serving.Wait()
	defer stop()
	serving.Go(func() { g.directory.Run(serve) })
	serving.Go(func() {
		if err := g.dns.Run(serve); err != nil {
			g.log.Error("dns server ended; agents are still served", "error", err)
		}
	})
	return run(ctx)
}
