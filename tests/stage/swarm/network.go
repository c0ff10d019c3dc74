package swarm

import (
	"context"
	"errors"
	"net"
	"sync"
)

// wire is the network of one machine.
type wire struct {
	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

var errCut = errors.New("network is unreachable")

func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut = cut; !cut {
		return
	}
	for c := range w.conns {
		_ = c.Close()
	}
}

func (w *wire) dial(ctx context.Context, address string) (net.Conn, error) {
	w.mu.Lock()
	cut := w.cut
	w.mu.Unlock()
	if cut {
		return nil, errCut
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return nil, errors.Join(errCut, c.Close())
	}
	w.conns[c] = true
	return &plug{c, w}, nil
}

// plug is the machine's end of a connection.
type plug struct {
	net.Conn
	w *wire
}

func (p *plug) Close() error {
	p.w.mu.Lock()
	delete(p.w.conns, p.Conn)
	p.w.mu.Unlock()
	return p.Conn.Close()
}
