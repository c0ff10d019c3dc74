package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/store"
)

// Store is an open connection to etcd. Use Open to get one.
type Store struct {
	cfg    Config
	data   *clientv3.Client // reads, transactions, watches, vitals
	leases *clientv3.Client // grants, revocations, renewals

	renewer *renewer

	// ctx ends with Close; running counts what Close waits for.
	ctx     context.Context
	cancel  context.CancelFunc
	mu      sync.Mutex // guards closed, and running against being added to once it is
	closed  bool
	running sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

// Open connects to etcd and returns once a member has answered. If none does it fails, within
// DialTimeout at the latest and at once if every endpoint refuses. The error wraps
// store.ErrUnavailable, or store.ErrDenied if etcd rejects our certificate or password. ctx bounds
// opening alone.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg}
	s.ctx, s.cancel = context.WithCancel(context.Background())

	dialing, stop := context.WithTimeout(ctx, cfg.DialTimeout)
	defer stop()
	if s.data, err = s.connect(dialing); err != nil {
		s.cancel()
		return nil, err
	}
	if s.leases, err = s.connect(dialing); err != nil {
		s.cancel()
		return nil, errors.Join(err, closeClient(s.data))
	}
	s.renewer = newRenewer(cfg, s.leases)
	return s, nil
}

// Close ends all watches and renewals, waits for them and closes the connections. Leases live on
// until they run out.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()

	s.cancel()
	s.renewer.close()
	s.running.Wait()
	return errors.Join(closeClient(s.data), closeClient(s.leases))
}

// Use switches to these endpoints: the cluster has other members than when the store was opened.
// Work on a member that is still there continues undisturbed.
func (s *Store) Use(endpoints []string) error {
	if len(endpoints) == 0 {
		return errors.New("use other endpoints: no endpoint given")
	}
	s.data.SetEndpoints(endpoints...)
	s.leases.SetEndpoints(endpoints...)
	return s.renewer.use(endpoints)
}

// start runs f in a goroutine that Close waits for. It reports false, and does nothing, on a closed
// store.
func (s *Store) start(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Go(f)
	return true
}

// connect makes a client and checks that a member answers it.
func (s *Store) connect(ctx context.Context) (*clientv3.Client, error) {
	client, err := s.newClient(ctx)
	if err != nil {
		return nil, s.explainDial(ctx, err)
	}
	// Not waiting for readiness: when every endpoint has refused there is nothing to wait for.
	if _, err := pb.NewMaintenanceClient(client.ActiveConnection()).Status(ctx, &pb.StatusRequest{},
		grpc.WaitForReady(false)); err != nil {
		return nil, errors.Join(s.explainDial(ctx, err), closeClient(client))
	}
	return client, nil
}

func (s *Store) newClient(ctx context.Context) (*clientv3.Client, error) {
	remaining := s.cfg.DialTimeout
	if deadline, ok := ctx.Deadline(); ok {
		remaining = max(time.Until(deadline), time.Millisecond)
	}
	return clientv3.New(clientv3.Config{
		Endpoints:   s.cfg.Endpoints,
		TLS:         s.cfg.TLS,
		Username:    s.cfg.Username,
		Password:    s.cfg.Password,
		Token:       s.cfg.token,
		DialTimeout: remaining, // bounds the password login
		Context:     s.ctx,
		Logger:      zap.NewNop(), // what matters of it comes back as errors
		// A silent member is given up after 13 seconds. A shorter time is not possible: gRPC sends
		// no ping more often than every 10 seconds, and etcd accepts none more often than every 5.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		DialOptions: []grpc.DialOption{
			// gRPC's default backs off for up to two minutes: etcd would be back long before us.
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff: backoff.Config{
					BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
					MaxDelay: 2 * time.Second,
				},
				MinConnectTimeout: 3 * time.Second,
			}),
		},
	})
}

// DialError is why etcd could not be opened, and what to do about it: for logs, in one line. A
// command has a next step of its own, and shows What alone.
type DialError struct {
	What error
	Next string
}

func (e *DialError) Error() string { return e.What.Error() + ": " + e.Next }
func (e *DialError) Unwrap() error { return e.What }

// explainDial returns an error of one line: which endpoints were tried, why that failed and what to
// do.
func (s *Store) explainDial(ctx context.Context, err error) error {
	where := strings.Join(s.cfg.Endpoints, ", ")
	if denied(err) {
		return &DialError{
			What: fmt.Errorf("connect to etcd at %s: %w: %s", where, denial(err), reason(err)),
			Next: "check the user name, the password and the certificate",
		}
	}
	if s.asksForCertificate() {
		return fmt.Errorf("connect to etcd at %s: %w: it asks for a certificate, and none was given", where,
			store.ErrNotLoggedIn)
	}
	why := reason(err)
	if ctx.Err() != nil {
		why = "no answer in time"
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			why = ctx.Err().Error()
		}
		if last := lastConnectionError(err); last != "" {
			why += " (" + last + ")"
		}
	}
	next := "check that etcd runs there, or name other endpoints"
	switch {
	case strings.Contains(why, "use of closed network connection"), // gRPC gave the connection up
		strings.Contains(why, "handshake") && strings.Contains(why, "deadline exceeded"):
		why, next = "it takes connections and answers nothing",
			"see whether that etcd stands still (paused, or its disk blocked), and whether it speaks TLS and this side does not"
	case strings.Contains(why, "handshake") || strings.Contains(why, "server preface"):
		next = "check that the certificates match, and that both sides speak TLS or neither does"
	}
	return &DialError{What: fmt.Errorf("connect to etcd at %s: %w: %s", where, store.ErrUnavailable, why), Next: next}
}

// asksForCertificate reports whether a member rejects clients without a certificate, and this
// client has none. In TLS 1.3 the server says so only after the handshake, and the message is lost
// if the client has sent something by then: so this takes a connection of its own.
func (s *Store) asksForCertificate() bool {
	if s.cfg.TLS == nil || len(s.cfg.TLS.Certificates) > 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	address := s.cfg.Endpoints[0]
	if _, rest, found := strings.Cut(address, "://"); found {
		address = rest
	}
	conn, err := (&tls.Dialer{Config: s.cfg.TLS}).DialContext(ctx, "tcp", address)
	if err == nil {
		defer func() { _ = conn.Close() }() // nothing was sent
		if deadline, ok := ctx.Deadline(); ok {
			_ = conn.SetReadDeadline(deadline)
		}
		_, err = conn.Read(make([]byte, 1))
	}
	return err != nil && strings.Contains(err.Error(), "certificate required")
}

// reason takes the innermost message out of a gRPC error: the rest says the same in more words.
func reason(err error) string {
	if last := lastConnectionError(err); last != "" {
		return last
	}
	if st, ok := status.FromError(err); ok {
		return oneLine(st.Message())
	}
	return oneLine(err.Error())
}

// lastConnectionError returns why gRPC could not connect, if that is what the error says.
func lastConnectionError(err error) string {
	msg := err.Error()
	_, desc, found := strings.Cut(msg, `connection error: desc = "`)
	if !found {
		return ""
	}
	if i := strings.LastIndex(desc, `"`); i >= 0 {
		desc = desc[:i]
	}
	desc = strings.TrimPrefix(desc, "transport: ")
	desc = strings.TrimPrefix(desc, "Error while dialing: ")
	return oneLine(strings.ReplaceAll(desc, `\"`, `"`))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// closeClient closes a client. That its own context has ended is how closing works, not a failure.
func closeClient(c *clientv3.Client) error {
	if err := c.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("close etcd client: %w", err)
	}
	return nil
}
