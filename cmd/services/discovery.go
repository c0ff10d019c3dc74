package services

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"syscall"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/access"
	"github.com/leasehold/leasehold/coordinator/discovery"
	"github.com/leasehold/leasehold/coordinator/discovery/dnsserver"
)

// Discovery holds the flags of the servers that tell clients which instances are in service.
type Discovery struct {
	DNS   string         `name:"dns" help:"Address to answer DNS queries for instances on, by UDP and TCP (default: off)." env:"LEASEHOLD_DNS" placeholder:"HOST:PORT"`
	Zone  string         `name:"dns-zone" help:"Name below which groups are found by DNS (default: SHARD.leasehold)." env:"LEASEHOLD_DNS_ZONE" placeholder:"NAME"`
	Allow []netip.Prefix `name:"dns-allow" help:"Networks whose DNS queries are answered (default: loopback, private and link-local networks)." placeholder:"CIDR"`
	XDS   string         `name:"xds" help:"Address to serve instances on by xDS, to gRPC and Envoy (default: off). An address other than loopback needs TLS, and a token or client certificates, as --http does, with the same files." env:"LEASEHOLD_XDS" placeholder:"HOST:PORT"`
}

// guide are a replica's servers for clients that look for instances. All of them may be off.
type guide struct {
	directory *discovery.Directory
	dns       *dnsserver.Server // nil: off
	xds       DiscoveryServer   // nil: off
	log       *slog.Logger
}

func off(address string) bool { return address == "" || address == "off" }

// open opens the listening addresses.
func (d Discovery) open(ctx context.Context, h *Host, r *coordinator.Replica, files access.Config,
	log *slog.Logger,
) (*guide, error) {
	g := &guide{directory: discovery.NewDirectory(r.Cache()), log: log}
	if !off(d.DNS) {
		zone := d.Zone
		if zone == "" {
			zone = h.Shard + ".leasehold"
		}
		server, err := dnsserver.New(dnsserver.Config{Listen: d.DNS, Zone: zone, Allow: d.Allow}, g.directory, log)
		if err != nil {
			return nil, problem("give a name like web.example with --dns-zone", "--dns-zone: %s", err)
		}
		if err := server.Listen(ctx); err != nil {
			return nil, findProblem("--dns", d.DNS, err)
		}
		log.Info("serving dns", "address", server.Address(), "zone", server.Zone())
		g.dns = server
	}
	if !off(d.XDS) {
		if h.Adapters.XDS == nil {
			return nil, problem("leave --xds out, or run leasehold itself", "--xds: this program has no server of xDS")
		}
		server, err := h.Adapters.XDS(d.XDS, files, g.directory, log)
		if err == nil {
			err = server.Listen(ctx)
		}
		if err != nil {
			return nil, findProblem("--xds", d.XDS, err)
		}
		log.Info("serving xds", "address", server.Address())
		g.xds = server
	}
	return g, nil
}

// findProblem returns why a server is not opened, with the next step.
func findProblem(flag, address string, err error) error {
	var unsafe *access.UnsafeError
	switch {
	case errors.As(err, &unsafe):
		return problem(unsafe.Next, "%s", unsafe.What)
	case errors.Is(err, syscall.EACCES):
		return problem("choose a port above 1023, or give this program CAP_NET_BIND_SERVICE", "%s: %s", flag, err)
	}
	return listenProblem(flag, address, err)
}

// shown returns the addresses for people.
func (g *guide) shown() string {
	text := ""
	if g.dns != nil {
		text += "  dns " + g.dns.Address()
	}
	if g.xds != nil {
		text += "  xds " + g.xds.Address()
	}
	return text
}

// around serves while the replica runs, and logs an early end. Agents are still served then.
func (g *guide) around(ctx context.Context, run func(context.Context) error) error {
	if g.dns == nil && g.xds == nil {
		return run(ctx)
	}
	serve, stop := context.WithCancel(context.WithoutCancel(ctx))
	var serving sync.WaitGroup
	defer serving.Wait()
	defer stop()
	serving.Go(func() { g.directory.Run(serve) })
	keep := func(name string, run func(context.Context) error) {
		serving.Go(func() {
			if err := run(serve); err != nil {
				g.log.Error("server for clients that look for instances ended; agents are still served", "server", name,
					"error", err)
			}
		})
	}
	if g.dns != nil {
		keep("dns", g.dns.Run)
	}
	if g.xds != nil {
		keep("xds", g.xds.Run)
	}
	return run(ctx)
}
