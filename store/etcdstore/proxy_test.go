package etcdstore

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy stands between a store and etcd. Frozen, it accepts and reads nothing and forwards nothing,
// as an etcd does that was stopped or lost its machine: connections stay, answers do not come.
type proxy struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	thawed  [2]chan struct{} // by direction; closed while data flows
	conns   map[net.Conn]struct{}
	closed  bool
	running sync.WaitGroup
}

const (
	toServer = iota
	toClient
)

func startProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: target, conns: make(map[net.Conn]struct{})}
	for dir := range p.thawed {
		p.thawed[dir] = make(chan struct{})
		close(p.thawed[dir])
	}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) freeze(directions ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, dir := range directions {
		p.thawed[dir] = make(chan struct{})
	}
}

func (p *proxy) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.thawed {
		select {
		case <-c:
		default:
			close(c)
		}
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			client.Close()
			server.Close()
			return
		}
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		p.running.Go(func() { p.pump(server, client, toServer) })
		p.running.Go(func() { p.pump(client, server, toClient) })
	}
}

// pump forwards one direction. What it read before a freeze waits for the thaw.
func (p *proxy) pump(to io.WriteCloser, from io.ReadCloser, dir int) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		thawed := p.thawed[dir]
		p.mu.Unlock()
		<-thawed
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) close() {
	p.thaw()
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}
