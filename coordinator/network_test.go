package coordinator_test

import (
	"context"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc/test/bufconn"
)

// network connects agents with replicas in memory, so that streams live in a bubble's time.
type network struct {
	mu    sync.Mutex
	ports map[string]*port
}

type port struct {
	*bufconn.Listener
	conns []net.Conn
}

func newNetwork() *network { return &network{ports: map[string]*port{}} }

// listen takes an address, which may have been in use before.
func (n *network) listen(_ context.Context, address string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := &port{Listener: bufconn.Listen(64 << 10)}
	n.ports[address] = p
	return p, nil
}

func (n *network) dial(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	p := n.ports[address]
	n.mu.Unlock()
	if p == nil {
		return nil, fmt.Errorf("dial %s: connection refused", address)
	}
	conn, err := p.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ports[address] != p {
		conn.Close()
		return nil, fmt.Errorf("dial %s: its process has ended", address)
	}
	p.conns = append(p.conns, conn)
	return conn, nil
}

// kill closes an address and all connections to it, as the end of a process does.
func (n *network) kill(address string) {
	n.mu.Lock()
	p := n.ports[address]
	delete(n.ports, address)
	n.mu.Unlock()
	if p == nil {
		return
	}
	p.Close()
	for _, c := range p.conns {
		c.Close()
	}
}
