package download

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	atOnce       = 32              // transfers at the same time
	maxTime      = 2 * time.Minute // for one transfer
	headersTime  = 10 * time.Second
	maxHeaders   = 8 << 10
	comeAgain    = 5 * time.Second // Retry-After for a client beyond the limit
	shutdownTime = 2 * time.Second
)

// Path is where the program for an architecture is.
func Path(arch string) string { return "/agent/linux-" + arch }

// Server serves agent programs.
type Server struct {
	agents      Agents
	certificate func() (*tls.Certificate, error)
	log         *slog.Logger
	free        chan struct{} // a token for each transfer that may begin
	began       time.Time
}

// New returns a server that shows this certificate in each handshake.
func New(agents Agents, certificate func() (*tls.Certificate, error), log *slog.Logger) *Server {
	s := &Server{agents: agents, certificate: certificate, log: log, free: make(chan struct{}, atOnce), began: time.Now()}
	for range atOnce {
		s.free <- struct{}{}
	}
	return s
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headersTime, ReadTimeout: headersTime, WriteTimeout: maxTime,
		IdleTimeout: headersTime, MaxHeaderBytes: maxHeaders,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate() },
			NextProtos:     []string{"http/1.1"},
		},
	}
	stopped := make(chan struct{})
	defer func() { <-stopped }()
	ended, end := context.WithCancel(ctx)
	defer end()
	go func() {
		defer close(stopped)
		<-ended.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		if server.Shutdown(last) != nil {
			_ = server.Close() // what is under way is broken off: the machine comes again, to another replica
		}
	}()
	if err := server.ServeTLS(listener, "", ""); ctx.Err() == nil {
		return err
	}
	return nil
}

// ServeHTTP answers GET and HEAD of a program.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for arch, program := range s.agents {
		if r.URL.Path == Path(arch) {
			s.serve(w, r, program)
			return
		}
	}
	http.NotFound(w, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, program Program) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "GET or HEAD", http.StatusMethodNotAllowed)
		return
	}
	select {
	case <-s.free:
		defer func() { s.free <- struct{}{} }()
	default:
		w.Header().Set("Retry-After", strconv.Itoa(int(comeAgain.Seconds())))
		http.Error(w, "too many machines fetch it at once: come again", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("ETag", `"`+program.SHA256+`"`)
	http.ServeContent(w, r, "", s.began, bytes.NewReader(program.Content))
}
