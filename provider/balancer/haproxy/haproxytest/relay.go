package haproxytest

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Mode is what a relay does with a connection.
type Mode int

// The modes of a relay.
const (
	Pass     Mode = iota // it is HAProxy's
	Close                // it is closed at once
	Hang                 // it is held, and nothing is answered
	Nonsense             // the answer is one that no HAProxy gives
	Part                 // the answer ends in its middle
	NoRights             // it is passed to the socket without rights
)

// Relay stands before a runtime socket.
type Relay struct {
	Socket string // path

	p        *Process
	listener net.Listener
	ctx      context.Context
	running  sync.WaitGroup

	mu   sync.Mutex
	mode Mode
	held []net.Conn
}

// NewRelay starts one before a process. It ends with the test.
func NewRelay(t testing.TB, p *Process) *Relay {
	t.Helper()
	r := &Relay{Socket: filepath.Join(p.Dir, "relay"), p: p, ctx: context.WithoutCancel(t.Context())}
	var err error
	if r.listener, err = new(net.ListenConfig).Listen(t.Context(), "unix", r.Socket); err != nil {
		t.Fatal(err)
	}
	r.running.Go(r.accept)
	t.Cleanup(func() {
		r.listener.Close()
		r.Set(Pass)
		r.running.Wait()
	})
	return r
}

// Set has the relay behave in another way, and ends connections that it holds.
func (r *Relay) Set(m Mode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mode = m
	for _, c := range r.held {
		c.Close()
	}
	r.held = nil
}

func (r *Relay) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		mode := r.mode
		if mode == Hang {
			r.held = append(r.held, conn)
		}
		r.mu.Unlock()
		switch mode {
		case Hang:
		case Close:
			conn.Close()
		default:
			r.running.Go(func() { r.serve(conn, mode) })
		}
	}
}

func (r *Relay) serve(client net.Conn, mode Mode) {
	defer client.Close()
	path := r.p.Socket
	if mode == NoRights {
		path = r.p.User
	}
	server, err := new(net.Dialer).DialContext(r.ctx, "unix", path)
	if err != nil {
		return
	}
	defer server.Close()
	line := make([]byte, 64<<10)
	n, err := client.Read(line)
	if err != nil {
		return
	}
	if mode == Nonsense {
		_, _ = io.WriteString(client, "1\n# be_name srv_name\nweb one two three\n\n") // the client may be gone
		return
	}
	if _, err := server.Write(line[:n]); err != nil {
		return
	}
	answer, err := io.ReadAll(server)
	if err != nil {
		return
	}
	if mode == Part {
		// Behind a line, where it is hardest to notice. The last server is missing, and the empty line at
		// the end.
		lines := strings.SplitAfter(string(answer), "\n")
		answer = []byte(strings.Join(lines[:max(1, len(lines)-3)], ""))
	}
	_, _ = client.Write(answer) // the client may be gone
}
