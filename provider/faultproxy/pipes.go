package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Pipes are connections within this process, for servers and clients in virtual time: what waits on
// one of them waits for nothing outside.
type Pipes struct {
	dialed chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewPipes makes a listener and what dials it.
func NewPipes() *Pipes { return &Pipes{dialed: make(chan net.Conn), closed: make(chan struct{})} }

// Accept returns the next connection.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialed:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (p *Pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr is of no use.
func (p *Pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// Dial connects.
func (p *Pipes) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.dialed <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Serve answers requests until it is stopped.
func (p *Pipes) Serve(h http.Handler) (stop func()) {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // connections break on purpose
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(p) // until it is closed
	}()
	return func() {
		_ = server.Close() // of pipes
		<-ended
	}
}

// Client is an HTTP client of what listens.
func (p *Pipes) Client(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout: timeout, Transport: sender{&http.Transport{DialContext: p.Dial, MaxIdleConnsPerHost: 64}},
	}
}

// sender sends a copy of a request's body. A pipe holds nothing, so an answer may come before the
// transport has noticed the end of the body, and some clients close the body then, which would
// break the connection.
type sender struct{ *http.Transport }

func (s sender) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return s.Transport.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return s.Transport.RoundTrip(r)
}
