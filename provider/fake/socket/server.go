package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"sync"
)

// Server serves services at a socket.
type Server struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool
}

// Listen serves services, each under its name, until Close.
func Listen(ctx context.Context, socket string, services map[string]any) (*Server, error) {
	server := rpc.NewServer()
	var errs []error
	for name, service := range services {
		errs = append(errs, server.RegisterName(name, service))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("serve a fake cloud: %w", err)
	}
	s := &Server{listener: l, conns: map[net.Conn]bool{}}
	s.serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed by Close
			}
			if s.keep(conn) {
				s.serving.Go(func() {
					server.ServeConn(conn) // ends with its last call
					s.mu.Lock()
					defer s.mu.Unlock()
					delete(s.conns, conn)
				})
			}
		}
	})
	return s, nil
}

func (s *Server) keep(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return false
	}
	s.conns[conn] = true
	return true
}

// Close ends the service, and waits for the calls under way: end their context first.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	_ = s.listener.Close() // it was open
	for conn := range s.conns {
		_ = conn.Close() // its client has gone, or will notice
	}
	s.mu.Unlock()
	s.serving.Wait()
}
