package embedetcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"google.golang.org/grpc"
)

// Version is the version of etcd that members are of.
var Version = version.Version

// Config says where a member keeps its data and where it listens.
type Config struct {
	DataDir string       // made if it does not exist
	Listen  string       // host:port for clients; port 0 takes a free one
	Logger  *slog.Logger // gets etcd's warnings and errors; nil: silent

	// TLS is the member's certificate, and the authority of its clients; nil: it serves all clients,
	// in plain text.
	TLS *TLS

	// Cluster is what the member is to others; nil: it is alone, and has no port for others.
	Cluster *Cluster

	// Verbose passes on what etcd logs at info as well.
	Verbose bool
	// NoSync leaves out fsync: for tests, which lose nothing when the machine goes down.
	NoSync bool
	// StartTimeout is how long Start waits until the member serves (30s): a large data directory
	// takes a while.
	StartTimeout time.Duration
}

// TLS are files of a member that shows a certificate and serves only clients that show one. Once
// authentication is on, the common name of a client's certificate is its user.
type TLS struct {
	Cert, Key string // for the address that it listens on; reloaded for each connection
	ClientCA  string // the authority that issues the certificates of clients
}

const (
	memberName = "leasehold"
	// peerAddress is recorded as the address of a member that is alone, and never listened on.
	peerAddress = "127.0.0.1:2380"
	// quota is how large the data may grow before etcd refuses writes.
	quota = 8 << 30
)

// Server is a running member.
type Server struct {
	etcd     *embed.Etcd
	serving  chan *grpc.Server // gets the server of the client port when etcd makes it; holds one
	service  *grpc.Server
	lock     *dirLock
	endpoint string
	close    sync.Once
	warned   warnings
}

// Start starts the member and returns once it serves. The context bounds starting alone. Errors fit
// on one line and say what to do next.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.DataDir == "" {
		return nil, errors.New("start embedded etcd: no data directory given")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.StartTimeout <= 0 {
		cfg.StartTimeout = 30 * time.Second
	}
	host, port, err := splitListen(cfg.Listen)
	if err != nil {
		return nil, err
	}
	if cfg.Cluster != nil {
		if err := cfg.Cluster.check(cfg.TLS); err != nil {
			return nil, err
		}
	}
	lock, err := lockDir(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); !ip.IsLoopback() && cfg.TLS == nil {
		cfg.Logger.Warn("embedded etcd accepts connections from other machines without authentication: "+
			"block the port, or listen on 127.0.0.1", "address", cfg.Listen)
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.StartTimeout)
	defer cancel()
	s, err := startOn(ctx, cfg, host, port)
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}
	s.lock = lock
	return s, nil
}

// splitListen splits the address. etcd binds to IP addresses alone.
func splitListen(listen string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(listen)
	if err != nil {
		return "", "", fmt.Errorf("start embedded etcd: listen address: %q: must be host:port", listen)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if net.ParseIP(host) == nil {
		return "", "",
			fmt.Errorf("start embedded etcd: listen address: %q: the host must be an IP address, for example 127.0.0.1:%s",
				listen, port)
	}
	return host, port, nil
}

// startOn starts the member on this port, or on a free one.
func startOn(ctx context.Context, cfg Config, host, port string) (*Server, error) {
	if port != "0" {
		return startAt(ctx, cfg, host, port)
	}
	// etcd writes the address that it advertises into its data, so it must know the port
	// beforehand. Another program may take it in the moment between.
	var err error
	for range 10 {
		if port, err = freePort(host); err != nil {
			return nil, fmt.Errorf("start embedded etcd: find a free port on %s: %w", host, err)
		}
		var s *Server
		if s, err = startAt(ctx, cfg, host, port); err == nil || !errors.Is(err, errPortTaken) {
			return s, err
		}
	}
	return nil, err
}

func freePort(host string) (string, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

func startAt(ctx context.Context, cfg Config, host, port string) (*Server, error) {
	address := net.JoinHostPort(host, port)
	// etcd would read all its data before it tries.
	if err := probePort(address); err != nil {
		return nil, err
	}
	if cfg.Cluster != nil {
		if err := probePort(cfg.Cluster.PeerListen); err != nil {
			return nil, err
		}
	}
	s := &Server{endpoint: dialable(host, port), serving: make(chan *grpc.Server, 1)}
	last := new(lastError)
	etcd, err := startEtcd(s.settings(cfg, address, last), last)
	if err != nil {
		return nil, explainStart(cfg.DataDir, address, err)
	}
	s.etcd = etcd
	select {
	case s.service = <-s.serving: // which etcd makes once it is ready
		return s, nil
	case err := <-etcd.Err():
		s.stop()
		return nil, explainStart(cfg.DataDir, address, err)
	case <-etcd.Server.StopNotify():
		s.stop()
		return nil, fmt.Errorf("start embedded etcd in %s: it stopped while starting: its log says why", cfg.DataDir)
	case <-ctx.Done():
		s.stop()
		return nil, fmt.Errorf("start embedded etcd in %s: not ready in time: %w: its log says what it waits for",
			cfg.DataDir, ctx.Err())
	}
}

// settings returns the configuration in etcd's form.
func (s *Server) settings(cfg Config, address string, last *lastError) *embed.Config {
	e := embed.NewConfig()
	e.Name = memberName
	e.Dir = cfg.DataDir
	scheme := "http"
	if cfg.TLS != nil {
		scheme = "https"
		e.ClientTLSInfo.CertFile, e.ClientTLSInfo.KeyFile = cfg.TLS.Cert, cfg.TLS.Key
		e.ClientTLSInfo.TrustedCAFile, e.ClientTLSInfo.ClientCertAuth = cfg.TLS.ClientCA, true
		e.TlsMinVersion = "TLS1.3"
		// It would speak to the member as the member itself.
		e.EnableGRPCGateway = false
	}
	e.ListenClientUrls = []url.URL{{Scheme: scheme, Host: address}}
	e.AdvertiseClientUrls = []url.URL{{Scheme: scheme, Host: s.endpoint}}
	e.ListenPeerUrls = nil
	e.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: peerAddress}}
	e.InitialCluster = memberName + "=http://" + peerAddress
	if cfg.Cluster != nil {
		cfg.Cluster.apply(e, *cfg.TLS)
	}
	e.QuotaBackendBytes = quota
	e.UnsafeNoFsync = cfg.NoSync
	// A client that vanished silently is noticed within 15 seconds, not two hours.
	e.GRPCKeepAliveInterval = 10 * time.Second
	e.GRPCKeepAliveTimeout = 5 * time.Second
	e.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newZapLogger(cfg.Logger, cfg.Verbose, last, &s.warned))
	e.ServiceRegister = func(g *grpc.Server) { s.serving <- g } // one port, one server
	return e
}

// startEtcd starts it. If etcd cannot read its data, it logs a fatal line or panics: both end here
// as errors.
func startEtcd(e *embed.Config, last *lastError) (etcd *embed.Etcd, err error) {
	defer func() {
		if p := recover(); p != nil {
			etcd, err = nil, &brokenDataError{said: fmt.Sprint(p), why: last.get()}
		}
	}()
	return embed.StartEtcd(e)
}

// Endpoint returns the address for clients, as host:port.
func (s *Server) Endpoint() string { return s.endpoint }

// Stopped is closed when the member has stopped, by Close or by itself.
func (s *Server) Stopped() <-chan struct{} { return s.etcd.Server.StopNotify() }

// Working reports whether the member answers a read of its own data before ctx ends, which takes no
// other member.
func (s *Server) Working(ctx context.Context) bool {
	answered := make(chan struct{})
	go func() { // outlives this call only where it hangs
		defer close(answered)
		// An error is an answer too: no user has rights to this key.
		_, _ = s.etcd.Server.Range(ctx, &pb.RangeRequest{Key: []byte{0}, Serializable: true})
	}()
	select {
	case <-answered:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Close stops the member and frees its port and its data directory. Clients that are still
// connected are cut off.
func (s *Server) Close() error {
	var err error
	s.close.Do(func() {
		s.stop()
		err = s.lock.release()
	})
	return err
}

func (s *Server) stop() {
	s.warned.ending.Store(true)
	// etcd would wait seconds for watches and keepalive streams to end, which never do.
	if s.service != nil {
		s.service.Stop()
	}
	s.etcd.Close()
}

// dialable returns the address at which a client on this machine reaches the listener.
func dialable(host, port string) string {
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// dbPath returns the file that an etcd locks while it runs on a data directory.
func dbPath(dir string) string { return filepath.Join(dir, "member", "snap", "db") }

// HasData reports whether there is anything of an etcd in this data directory, if only of a first
// start that failed.
func HasData(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "member"))
	return err == nil
}

// HasLog reports whether a member has its log in this data directory. Without one etcd starts a
// member with no data, also under the ID of one that the cluster knows.
func HasLog(dir string) bool { return wal.Exist(filepath.Join(dir, "member", "wal")) }
