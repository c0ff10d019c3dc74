package xdsserver

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/coordinator/access"
	"github.com/leasehold/leasehold/coordinator/discovery"
)

// Config are the values that a server needs.
type Config struct {
	Listen string // port 0 takes a free one
	Access access.Config
}

// The bounds of what clients can have us spend.
const (
	maxConnections = 4096 // at once; a client has one
	maxStreams     = 16   // on one of them
	maxRequest     = 1 << 20
	handshakeTime  = 5 * time.Second
	idleTime       = time.Minute // of a connection without a stream
	pingTime       = 30 * time.Second
	pongTime       = 10 * time.Second
	minPing        = 10 * time.Second // between two pings of a client
)

// ageHeader comes with each stream: how many seconds ago etcd last answered when the stream began.
const ageHeader = "leasehold-age"

// Server serves xDS.
type Server struct {
	cfg       Config
	directory *discovery.Directory
	catalog   *catalog
	access    *access.Access
	log       *slog.Logger
	listener  net.Listener
	local     bool // it listens on loopback
}

// New reads the files and makes a server that does not listen yet. It follows the directory, which
// must not run yet.
func New(cfg Config, d *discovery.Directory, log *slog.Logger) (*Server, error) {
	s := &Server{cfg: cfg, directory: d, log: log, catalog: newCatalog(d, rand.Text()+"-", log)}
	var err error
	s.access, err = access.Open(cfg.Access, "h2", log)
	d.OnChange(s.catalog.changed)
	return s, err
}

// Listen opens the address. It fails with an access.UnsafeError if outsiders could reach it without
// authentication.
func (s *Server) Listen(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen for xds on %s: %w", s.cfg.Listen, err)
	}
	if address, ok := l.Addr().(*net.TCPAddr); ok {
		s.local = address.IP.IsLoopback()
	}
	if err := s.access.Safe("--xds", s.cfg.Listen, s.local, "127.0.0.1:7422"); err != nil {
		return errors.Join(err, l.Close())
	}
	s.listener = netutil.LimitListener(l, maxConnections)
	return nil
}

// Address returns where the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Run serves until ctx ends. Listen comes before.
func (s *Server) Run(ctx context.Context) error {
	options := []grpc.ServerOption{
		grpc.StreamInterceptor(s.admit),
		grpc.MaxConcurrentStreams(maxStreams), grpc.MaxRecvMsgSize(maxRequest), grpc.ConnectionTimeout(handshakeTime),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTime, Time: pingTime, Timeout: pongTime}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
	}
	if config := s.access.TLS(); config != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	streams := newServices(ctx, s.catalog.caches(), asks{s.catalog})
	g := grpc.NewServer(options...)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, streams)
	endpointv3.RegisterEndpointDiscoveryServiceServer(g, streams)
	served := make(chan error, 1)
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() { served <- g.Serve(s.listener) })
	select {
	case <-ctx.Done():
		end()
		g.Stop() // clients go to another replica, and keep what they have
		return nil
	case err := <-served:
		return fmt.Errorf("serve xds: %w", err)
	}
}

// admit accepts a stream.
func (s *Server) admit(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	ctx := stream.Context()
	var handshake *tls.ConnectionState
	if p, there := peer.FromContext(ctx); there {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			handshake = &info.State
		}
	}
	var authorization string
	if shown := metadata.ValueFromIncomingContext(ctx, "authorization"); len(shown) == 1 {
		authorization = shown[0]
	}
	switch {
	case !s.access.Admits(s.local, authorization, handshake):
		return status.Error(codes.Unauthenticated, "credentials are needed")
	case !s.catalog.isReady():
		return status.Error(codes.Unavailable, "this replica has not read the shard yet")
	}
	if err := stream.SetHeader(metadata.Pairs(ageHeader, strconv.Itoa(int(s.directory.Age().Seconds())))); err != nil {
		return err
	}
	return handle(srv, stream)
}
