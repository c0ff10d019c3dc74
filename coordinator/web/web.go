package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/access"
	"github.com/leasehold/leasehold/coordinator/api"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/observe"
	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/coordinator/web/page"
	"github.com/leasehold/leasehold/store"
)

// Config has the values that a server needs.
type Config struct {
	Listen     string // where it listens; port 0 takes a free one
	OrFreePort bool   // take a free port if another program listens there
	Access     access.Config
	Shard      string
	ReplicaID  string // of the replica whose state is served
	Advertise  string // HOST:PORT at which browsers reach it; "": where it listens
}

// Replica is the coordinator whose state is served.
type Replica interface {
	Status() coordinator.ReplicaStatus
	CountMachines() (orphans, missing int, leads bool)
	Certificates() []coordinator.Certificate
	Cache() *cache.Cache
}

// Deps are the parts that a server works with.
type Deps struct {
	Replica Replica
	Metrics *Metrics
	Store   store.Store // of which the journal is followed, for the page
	Logger  *slog.Logger
	Login   api.Login // of users of etcd, for the API; nil: there is no API
	// Members asks etcd's members for their state; nil: they are not asked.
	Members func(context.Context) (store.Members, error)
}

// Limits of what a client can make the server spend.
const (
	idleTime  = time.Minute // between two requests on a connection
	maxHeader = 8 << 10     // bytes; net/http adds 4 KiB
	maxSeats  = 128         // connections at once
	endTime   = time.Second // for answers that are under way when the server ends
)

// Tests on a busy machine allow more.
var (
	headerTime = 5 * time.Second  // for the handshake, and again for a request's headers
	answerTime = 15 * time.Second // from the first byte of a request to the last of the answer
)

// Server is the HTTP server.
type Server struct {
	cfg      Config
	log      *slog.Logger
	replica  Replica
	health   *health
	targets  targets
	people   *people
	live     *live
	api      *api.Handler // nil: off
	endAPI   func()
	journal  *journal.Memory
	views    *view.Source
	ask      func(context.Context) (store.Members, error) // nil: etcd's members are not asked
	store    store.Store
	metrics  *Metrics
	access   *access.Access
	refusals *refusals

	listener net.Listener
	local    bool   // it listens on loopback
	host     string // the host in the address that was asked for
}

// New reads the files and returns a server that does not listen yet.
func New(cfg Config, deps Deps) (*Server, error) {
	if cfg.Shard == "" || deps.Replica == nil || deps.Metrics == nil || deps.Store == nil || deps.Logger == nil {
		return nil, errors.New("web needs a shard, a replica, metrics, a store and a logger")
	}
	s, err := configured(cfg, deps.Logger)
	if err != nil {
		return nil, err
	}
	s.metrics, s.replica = deps.Metrics, deps.Replica
	certificates := func() []coordinator.Certificate {
		all := deps.Replica.Certificates()
		if leaf := s.access.Certificate(); leaf != nil {
			all = append(all, certificateOf("http", leaf))
		}
		return all
	}
	s.health = &health{replica: deps.Replica, certificates: certificates}
	s.targets = targets{deps.Replica}
	s.store, s.journal = deps.Store, journal.New(store.KeysOf(cfg.Shard), journal.MaxEntries)
	s.views, s.ask = view.New(cfg.Shard, deps.Replica.Cache(), s.journal), deps.Members
	pages, err := page.New(page.Config{Shard: cfg.Shard, Replica: cfg.ReplicaID}, page.Deps{
		Replica: deps.Replica, Journal: s.journal, Views: s.views,
	})
	if err != nil {
		return nil, err
	}
	s.people = newPeople(pages, s.siblings)
	s.live = newLive(pages, deps.Replica.Cache(), s.journal)
	s.endAPI = func() {}
	if deps.Login != nil {
		s.api, s.endAPI = api.New(api.Deps{
			Views: s.views, Cache: deps.Replica.Cache(), Journal: s.journal,
			Login: deps.Login,
		})
	}
	return s, deps.Metrics.watch(deps.Replica, certificates)
}

// Check returns why a server could not be opened now, so that an operator learns of a wrong address
// or file before anything else starts.
func Check(ctx context.Context, cfg Config) error {
	s, err := configured(cfg, slog.New(slog.DiscardHandler))
	if err == nil {
		err = s.Listen(ctx)
	}
	if err != nil {
		return err
	}
	return s.listener.Close()
}

// configured reads the files of a server.
func configured(cfg Config, log *slog.Logger) (*Server, error) {
	if cfg.Listen == "" {
		return nil, errors.New("web needs an address to listen on")
	}
	host, _, err := net.SplitHostPort(cfg.Listen)
	if err != nil {
		return nil, &access.UnsafeError{
			What: fmt.Sprintf("--http: %s: %s", cfg.Listen, err),
			Next: "write it as HOST:PORT, or off",
		}
	}
	s := &Server{cfg: cfg, log: log, refusals: newRefusals(log), host: host}
	s.access, err = access.Open(cfg.Access, "http/1.1", log)
	return s, err
}

// Listen opens the address. It fails with an access.UnsafeError where other machines could reach it
// without protection.
func (s *Server) Listen(ctx context.Context) error {
	var listening net.ListenConfig
	l, err := listening.Listen(ctx, "tcp", s.cfg.Listen)
	if s.cfg.OrFreePort && errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(s.cfg.Listen) // it could be parsed: the address is in use
		l, err = listening.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return fmt.Errorf("listen for http on %s: %w", s.cfg.Listen, err)
	}
	if address, ok := l.Addr().(*net.TCPAddr); ok { // where it really listens, whatever the name said
		s.local = address.IP.IsLoopback()
	}
	if err := s.access.Safe("--http", s.cfg.Listen, s.local, "127.0.0.1:7421"); err != nil {
		return errors.Join(err, l.Close())
	}
	s.listener = newCrowd(l, maxSeats)
	if config := s.access.TLS(); config != nil {
		s.listener = tls.NewListener(s.listener, config)
	}
	return nil
}

// Address is where the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// URL is the server's URL for a browser on this machine.
func (s *Server) URL() string {
	if s.access.TLS() != nil {
		return "https://" + s.Address()
	}
	return "http://" + s.Address()
}

// Page is the address of the page for browsers on other machines, as replicas announce it; "": none
// is known.
func (s *Server) Page() string {
	scheme, at := "http://", s.cfg.Advertise
	if s.access.TLS() != nil {
		scheme = "https://"
	}
	if at == "" {
		at = s.Address()
		if a, ok := s.listener.Addr().(*net.TCPAddr); !ok || a.IP.IsUnspecified() {
			return ""
		}
	}
	return scheme + at
}

// Run serves until ctx ends. Call Listen first.
func (s *Server) Run(ctx context.Context) error {
	var protocols http.Protocols
	protocols.SetHTTP1(true) // HTTP/1.1: one request at a time on a connection, as limits and counts assume
	server := &http.Server{
		Handler: s.handler(), Protocols: &protocols,
		ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader,
		// of handshakes and the like, which any client can cause
		ConnContext: seated, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	following, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { _ = s.journal.Run(following, s.store) })
	beside.Go(func() { s.live.run(following) })
	beside.Go(func() { observe.Run(following, s.views, s.cfg.ReplicaID, s.ask) })
	defer beside.Wait()
	defer stop()
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	stop() // ends streams, so that shutdown does not wait for them
	s.endAPI()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if server.Shutdown(end) != nil {
		_ = server.Close() // does not wait for slow readers
	}
	err := <-served
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve http: %w", err)
	}
	return context.Cause(ctx)
}

// readyPath says whether the replica is ready.
const readyPath = "/readyz"

// endpoint is a path for programs.
type endpoint struct {
	path string
	// open reports whether a request needs no credentials.
	open  func(r *http.Request) bool
	serve http.HandlerFunc
}

func (s *Server) endpoints() []endpoint {
	// Load balancers and supervisors have no credentials, and learn one bit.
	oneBit := func(r *http.Request) bool { return r.URL.RawQuery == "" }
	never := func(*http.Request) bool { return false }
	return []endpoint{
		{"/livez", oneBit, s.health.live},
		{readyPath, oneBit, s.health.ready},
		{"/metrics", never, s.metrics.serve(s.log)},
		{"/discovery/prometheus", never, s.targets.serve},
		{"/live", never, s.live.serve},
	}
}
