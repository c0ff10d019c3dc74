package services

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"syscall"

	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/access"
	"github.com/leasehold/leasehold/coordinator/web"
	"github.com/leasehold/leasehold/store"
)

// HTTP are the flags of a replica's read-only HTTP server.
type HTTP struct {
	HTTP      string   `name:"http" help:"Address to serve the page, health and metrics on (default: ${default}), or off. An address other than loopback needs TLS, and a token or client certificates." default:"127.0.0.1:7421" env:"LEASEHOLD_HTTP" placeholder:"HOST:PORT"`
	Cert      string   `name:"http-cert" help:"Certificate chain of the HTTP server, as PEM. It is reloaded when it changes, as are the files of --http-key, --http-token-file and --http-client-ca." type:"path" placeholder:"FILE"`
	Key       string   `name:"http-key" help:"Key of the HTTP server's certificate." type:"path" placeholder:"FILE"`
	TokenFile string   `name:"http-token-file" help:"File with the token that clients must send (Authorization: Bearer)." type:"path" placeholder:"FILE"`
	Proxies   []string `name:"http-proxy" help:"Reverse proxy, as an address or a network, that names the client in a header; may be repeated." placeholder:"CIDR"`
	ProxySays string   `name:"http-proxy-header" help:"Header in which --http-proxy names the client. The proxy must remove it from clients' requests." default:"X-Forwarded-User" placeholder:"NAME"`
	ClientCA  string   `name:"http-client-ca" help:"Certificate authority of client certificates accepted instead of the token, as PEM." type:"path" placeholder:"FILE"`

	Advertise string `name:"http-advertise" help:"Address at which browsers reach the page (default: the listening address). Pages of other replicas move there when theirs is gone." placeholder:"HOST:PORT"`
	API       bool   `name:"http-api" help:"Serve the API for programs as well: reads for readers of the page, edits with users of etcd." env:"LEASEHOLD_HTTP_API"`

	etcd       *program.Connection // login for users of the API; nil: as the flags say
	orFreePort bool                // take a free port if the one in HTTP is taken
}

// off reports whether the HTTP server is off.
func (f HTTP) off() bool { return f.HTTP == "" || f.HTTP == "off" }

// side is a replica's HTTP server, which may be off.
type side struct {
	metrics *web.Metrics
	server  *web.Server // nil: off
	log     *slog.Logger
}

func newSide(h *Host, log *slog.Logger) *side {
	return &side{metrics: web.NewMetrics(h.Version), log: log}
}

// measured returns a store with metrics.
func (s *side) measured(st store.Store) store.Store { return s.metrics.Store(st) }

// open opens the listening address.
func (s *side) open(ctx context.Context, f HTTP, h *Host, id string, r *coordinator.Replica, st store.Store) error {
	if f.off() {
		return nil
	}
	cfg := f.config()
	cfg.Shard, cfg.ReplicaID, cfg.Advertise = h.Shard, id, f.Advertise
	deps := web.Deps{Replica: r, Metrics: s.metrics, Store: st, Logger: s.log}
	if h.Members != nil {
		deps.Members = func(ctx context.Context) (store.Members, error) { return h.Members(ctx, f.etcd) }
	}
	if f.API {
		deps.Login = h.Login(f.etcd)
	}
	server, err := web.New(cfg, deps)
	if err == nil {
		err = server.Listen(ctx)
	}
	if err != nil {
		return f.problem(err)
	}
	s.server = server
	r.ShowPage(server.Page())
	s.log.Info("serving http", "url", server.URL())
	return nil
}

// check returns what would prevent a replica from serving, before anything is started.
func (f HTTP) check(ctx context.Context) error {
	if f.off() {
		return nil
	}
	return f.problem(web.Check(ctx, f.config()))
}

func (f HTTP) config() web.Config {
	who := f.access()
	who.Proxies, who.ProxyHeader = f.Proxies, f.ProxySays
	return web.Config{Listen: f.HTTP, OrFreePort: f.orFreePort, Access: who}
}

// access returns the files that define who may read.
func (f HTTP) access() access.Config {
	return access.Config{CertFile: f.Cert, KeyFile: f.Key, TokenFile: f.TokenFile, ClientCAFile: f.ClientCA}
}

// problem returns an HTTP error with the next step.
func (f HTTP) problem(err error) error {
	var unsafe *access.UnsafeError
	switch {
	case errors.As(err, &unsafe):
		return problem(unsafe.Next, "%s", unsafe.What)
	case errors.Is(err, syscall.EADDRINUSE):
		return problem("stop the program that listens there, choose another address with --http (port 0 takes a free one), "+
			"or --http off", "--http: %s is taken by another program", f.HTTP)
	case err != nil:
		return problem("choose an address of this machine with --http, or --http off", "--http: %s", err)
	}
	return nil
}

// shown returns the address for people.
func (s *side) shown() string {
	if s.server == nil {
		return ""
	}
	return "  " + s.server.URL()
}

// around serves while the replica runs, and logs an early end. Agents are still served then.
func (s *side) around(ctx context.Context, run func(context.Context) error) error {
	if s.server == nil {
		return run(ctx)
	}
	serve, stop := context.WithCancel(context.WithoutCancel(ctx))
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.server.Run(serve); serve.Err() == nil {
			s.log.Error("http server ended; agents are still served", "error", err)
		}
	})
	defer serving.Wait()
	defer stop()
	return run(ctx)
}
