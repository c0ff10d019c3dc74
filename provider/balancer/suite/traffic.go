package suite

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// backend is an HTTP server of the suite that answers with its name.
type backend struct {
	name     string
	port     int
	server   *http.Server
	asked    atomic.Int64  // requests by the suite's clients
	entered  chan struct{} // gets a token when a slow request has arrived
	released chan struct{} // ends slow requests when it is closed
	once     sync.Once
}

// start starts a backend. It ends with the case.
func (s *subject) start(name string) *backend { return s.startAt(name, 0) }

func (s *subject) startAt(name string, port int) *backend {
	var from net.ListenConfig
	listener, err := from.Listen(s.base, "tcp", net.JoinHostPort(s.Host, fmt.Sprint(port)))
	if err != nil {
		s.Fatalf("start backend: %v", err)
	}
	_, number, err := net.SplitHostPort(listener.Addr().String())
	b := &backend{name: name, entered: make(chan struct{}, 100), released: make(chan struct{})}
	if _, bad := fmt.Sscan(number, &b.port); err != nil || bad != nil {
		s.Fatalf("start backend: %v, %v", err, bad)
	}
	b.server = &http.Server{Handler: b, ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = b.server.Serve(listener) // until it is closed
	}()
	s.later(func() {
		b.stop()
		<-ended
	})
	return b
}

// stop ends the backend and its requests.
func (b *backend) stop() {
	b.release()
	_ = b.server.Close() // it breaks its connections, as intended
}

func (b *backend) release() { b.once.Do(func() { close(b.released) }) }

// Paths of requests by the suite's clients; requests for other paths are health checks.
const (
	quickPath = "/suite/quick"
	slowPath  = "/suite/slow"
)

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case slowPath:
		b.asked.Add(1)
		b.entered <- struct{}{}
		select {
		case <-b.released:
		case <-r.Context().Done():
			return
		}
	case quickPath:
		b.asked.Add(1)
	}
	_, _ = io.WriteString(w, b.name) // the client may be gone
}

// client sends each request on a connection of its own.
func (s *subject) client() *http.Client {
	return &http.Client{Timeout: s.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
}

// ask sends a request and returns which backend answered.
func (s *subject) ask(client *http.Client, path string) (name string, err error) {
	ctx, cancel := context.WithTimeout(s.base, s.Patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Front+path, http.NoBody)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %q", answer.Status, text)
	}
	return string(text), err
}

// traffic sends requests one after the other, and returns how many each backend answered. None may
// fail.
func (s *subject) traffic(requests int) map[string]int {
	client := s.client()
	got := map[string]int{}
	for range requests {
		name, err := s.ask(client, quickPath)
		if err != nil {
			s.Fatalf("a request failed: %v", err)
		}
		got[name]++
	}
	return got
}

// slow is a request that is in progress until its backend is released.
type slow struct {
	name string
	err  error
	done chan struct{}
}

// begin sends slow requests until one arrives at the backend, and returns it.
func (s *subject) begin(at *backend, members int) *slow {
	for range 10 * members {
		r := &slow{done: make(chan struct{})}
		go func() {
			defer close(r.done)
			r.name, r.err = s.ask(s.client(), slowPath)
		}()
		select {
		case <-at.entered:
			s.later(func() { <-r.done })
			return r
		case <-time.After(s.Patience / 10):
			s.later(func() { <-r.done }) // it is at another backend
		case <-r.done:
			s.Fatalf("a slow request was not held: %q, %v", r.name, r.err)
		}
	}
	s.Fatalf("no request reaches %s", at.name)
	return nil
}
