package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// DemoWeb is the workload of the demo group: a small web server that returns the name of its
// instance.
type DemoWeb struct {
	Port int `required:"" help:"Loopback address to listen on."`
}

// Run serves until ctx ends.
func (d *DemoWeb) Run(ctx context.Context) error {
	instance := os.Getenv("LEASEHOLD_INSTANCE")
	began := time.Now()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "hello from %s, up %s\n", instance, time.Since(began).Round(time.Second))
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "demo_uptime_seconds %g\n", time.Since(began).Seconds())
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	server := &http.Server{
		Addr: fmt.Sprintf("127.0.0.1:%d", d.Port), Handler: mux, ReadHeaderTimeout: 5 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve on %s: %w", server.Addr, err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := server.Shutdown(stop)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		return served
	}
	return err
}
