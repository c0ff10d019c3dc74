package guard_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/leasehold/leasehold/coordinator/guard"
)

// street is the network in front of a connection guard, in a synctest bubble.
type street struct {
	t        *testing.T
	guard    *guard.Connections
	incoming chan incoming
	listener net.Listener
	ended    chan struct{}
	shut     sync.Once

	mu       sync.Mutex
	refusals []guard.Refusal
	served   map[string]context.Context // of the connections that got in, by name
}

type incoming struct {
	conn net.Conn
	err  error
}

func (s *street) Accept() (net.Conn, error) {
	select {
	case in := <-s.incoming:
		return in.conn, in.err
	case <-s.ended:
		return nil, net.ErrClosed
	}
}

func (s *street) Close() error {
	s.shut.Do(func() { close(s.ended) })
	return nil
}
func (s *street) Addr() net.Addr { return at("guard") }

// at is an address.
type at string

func (at) Network() string  { return "street" }
func (a at) String() string { return string(a) }

type from struct {
	net.Conn
	addr at
}

func (f from) RemoteAddr() net.Addr { return f.addr }

// spoken is a handshake of one line: the client's name, which may be empty.
type spoken struct {
	credentials.TransportCredentials
}

type who struct{ name string }

func (who) AuthType() string { return "spoken" }

func (spoken) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	line, err := bufio.NewReaderSize(raw, 16).ReadString('\n')
	if err != nil {
		return nil, nil, err
	}
	return raw, who{strings.TrimSpace(line)}, nil
}

// laborious is a handshake of two lines, the second of which is the name. Each takes time to
// process.
type laborious struct {
	credentials.TransportCredentials
}

const labour = 10 * time.Millisecond

func (laborious) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	lines := bufio.NewReaderSize(raw, 16)
	var name string
	for range 2 {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil, nil, err
		}
		<-time.After(labour)
		name = strings.TrimSpace(line)
		if _, err := fmt.Fprintln(raw, "go on"); err != nil {
			return nil, nil, err
		}
	}
	return raw, who{name}, nil
}

func onStreet(t *testing.T, b guard.Bounds, test func(*street)) {
	t.Helper()
	onStreetWith(t, b, spoken{}, test)
}

func onStreetWith(t *testing.T, b guard.Bounds, inner credentials.TransportCredentials, test func(*street)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &street{
			t: t, incoming: make(chan incoming), ended: make(chan struct{}),
			served: map[string]context.Context{},
		}
		var err error
		s.guard, err = guard.NewConnections(b,
			guard.Deps{Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Refused: func(r guard.Refusal) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.refusals = append(s.refusals, r)
			}})
		if err != nil {
			t.Fatal(err)
		}
		creds := s.guard.Credentials(inner, func(info credentials.AuthInfo) string { return info.(who).name })
		s.listener = s.guard.Listener(s)
		var server sync.WaitGroup
		server.Go(func() {
			for {
				conn, err := s.listener.Accept()
				if err != nil {
					return
				}
				server.Go(func() {
					secure, info, err := creds.ServerHandshake(conn)
					if err != nil {
						conn.Close()
						return
					}
					ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: secure.RemoteAddr(), AuthInfo: info})
					s.mu.Lock()
					s.served[info.(who).name] = ctx //nolint:fatcontext // each has its own
					s.mu.Unlock()
					_, _ = io.Copy(io.Discard, secure)
					secure.Close()
				})
			}
		})
		test(s)
		s.listener.Close()
		server.Wait()
		if c := s.guard.Counts(); c != (guard.Counts{}) {
			t.Errorf("the guard still counts %+v", c)
		}
	})
}

// caller is a client.
type caller struct {
	net.Conn
	out chan struct{} // closed when the other side has closed
}

func (s *street) comes(address string) *caller {
	s.t.Helper()
	ours, theirs := net.Pipe()
	s.incoming <- incoming{conn: from{theirs, at(address)}}
	c := &caller{ours, make(chan struct{})}
	go func() {
		defer close(c.out)
		_, _ = io.Copy(io.Discard, ours)
	}()
	synctest.Wait()
	return c
}

// says finishes the handshake.
func (c *caller) says(name string) *caller {
	fmt.Fprintln(c, name)
	synctest.Wait()
	return c
}

func (c *caller) isOut() bool {
	synctest.Wait()
	select {
	case <-c.out:
		return true
	default:
		return false
	}
}

func (s *street) whys() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.refusals {
		out = append(out, strings.TrimSpace(r.Address+" "+r.Claimed)+": "+r.Why)
	}
	return strings.Join(out, "\n")
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func small() guard.Bounds {
	return guard.Bounds{
		HandshakeTimeout: 5 * time.Second, Grace: time.Second, Pending: 6, PendingPerSource: 3,
		AnonymousLife:      30 * time.Second,
		AnonymousPerSource: 2, PerName: 2, Total: 10, WriteTimeout: 10 * time.Second, Handshakes: 1,
	}
}
