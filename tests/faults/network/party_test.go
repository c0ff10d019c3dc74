package network

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/tests/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// longest is how long anything may take that must happen, and moment how long it is looked out for
// what must not. Neither measures speed.
const (
	longest = time.Minute
	moment  = 50 * time.Millisecond
)

// ends are the two halves of a connection over a way.
type ends struct{ from, to *end }

// end is what one party has of a connection.
type end struct {
	t *testing.T
	*net.TCPConn
	lines *bufio.Reader
}

// server is a party that is connected to.
type server struct {
	t *testing.T
	net.Listener
}

func newServer(t *testing.T) server {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return server{t, l}
}

func (s server) accept() *end {
	s.t.Helper()
	c, err := s.Accept()
	if err != nil {
		s.t.Fatal(err)
	}
	return newEnd(s.t, c)
}

func newEnd(t *testing.T, c net.Conn) *end {
	t.Helper()
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		t.Fatalf("%T", c)
	}
	t.Cleanup(func() { c.Close() })
	return &end{t: t, TCPConn: tcp, lines: bufio.NewReader(c)}
}

func try(t *testing.T, address, source string) (net.Conn, error) {
	var d net.Dialer
	if source != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(source)}
	}
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	return d.DialContext(ctx, "tcp", address)
}

// dial connects, from a certain address if one is given.
func dial(t *testing.T, address, source string) *end {
	t.Helper()
	c, err := try(t, address, source)
	if err != nil {
		t.Fatal(err)
	}
	return newEnd(t, c)
}

// isRefused connects, and is to hear of the RST then or with the first read.
func isRefused(t *testing.T, address, source string) {
	t.Helper()
	c, err := try(t, address, source)
	if err == nil {
		newEnd(t, c).hearsEnd(errReset)
	} else if !errors.Is(err, errReset) {
		t.Errorf("connect: %v, want %v", err, errReset)
	}
}

// newNetwork is one with a way from x to y, and y.
func newNetwork(t *testing.T) (n *Network, address string, y server) {
	t.Helper()
	n, y = New(), newServer(t)
	t.Cleanup(n.Close)
	address, err := n.Listen(Way{From: "x", To: "y", Leads: y.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	return n, address, y
}

func connect(t *testing.T, address string, y server) ends {
	t.Helper()
	return ends{dial(t, address, ""), y.accept()}
}

func (e *end) say(line string) {
	e.t.Helper()
	if _, err := e.Write([]byte(line + "\n")); err != nil {
		e.t.Fatalf("say %q: %v", line, err)
	}
}

func (e *end) hears(line string) {
	e.t.Helper()
	_ = e.SetReadDeadline(time.Now().Add(longest))
	if got, err := e.lines.ReadString('\n'); err != nil || got != line+"\n" {
		e.t.Fatalf("heard %q, %v; want %q", got, err, line)
	}
}

func (e *end) hearsNothing() {
	e.t.Helper()
	_ = e.SetReadDeadline(time.Now().Add(moment))
	if got, err := e.lines.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		e.t.Fatalf("heard %q, %v; want silence", got, err)
	}
}

func (e *end) hearsEnd(want error) {
	e.t.Helper()
	_ = e.SetReadDeadline(time.Now().Add(longest))
	got, err := io.ReadAll(e.lines)
	if err == nil {
		err = io.EOF
	}
	if len(got) > 0 || !errors.Is(err, want) {
		e.t.Fatalf("heard %q, %v; want %v", got, err, want)
	}
}

const errReset = syscall.ECONNRESET

func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	harness.Await(t, what, longest, time.Millisecond, so, nil)
}
