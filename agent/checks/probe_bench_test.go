package checks

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/workload"
)

// One run of a check of each kind, where the servers that are asked are in the same process: what
// they cost is in the figures. For exec that is the start of /bin/true.
func BenchmarkProbe(b *testing.B) {
	l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	b.Cleanup(func() { server.Stop(); <-served })
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	b.Cleanup(site.Close)
	_, rpcPort, _ := net.SplitHostPort(l.Addr().String())
	_, webPort, _ := net.SplitHostPort(site.Listener.Addr().String())
	pidFile := filepath.Join(b.TempDir(), "pid")
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		b.Fatal(err)
	}

	for _, c := range []struct {
		name string
		spec *protocol.CheckSpec
	}{
		{"http", web(&protocol.HTTPCheck{Port: webPort})},
		{"tcp", door(&protocol.TCPCheck{Port: webPort})},
		{"grpc", rpc(&protocol.GRPCCheck{Port: rpcPort})},
		{
			"exec",
			&protocol.CheckSpec{Kind: &protocol.CheckSpec_Exec{Exec: &protocol.ExecCheck{Run: []string{"/bin/true"}}}},
		},
		{
			"process by file",
			&protocol.CheckSpec{Kind: &protocol.CheckSpec_Process{Process: &protocol.ProcessCheck{PidFile: pidFile}}},
		},
		{
			"process by name",
			&protocol.CheckSpec{Kind: &protocol.CheckSpec_Process{Process: &protocol.ProcessCheck{Name: "checks.test"}}},
		},
		{
			"process absent",
			&protocol.CheckSpec{Kind: &protocol.CheckSpec_Process{Process: &protocol.ProcessCheck{Name: "no-such-process"}}},
		},
	} {
		b.Run(c.name, func(b *testing.B) {
			run, err := prepare(c.spec, workload.Config{Dir: b.TempDir()}, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
				result := run(ctx)
				cancel()
				if (result == "") == (c.name == "process absent") {
					b.Fatalf("result is %q", result)
				}
			}
		})
	}
}
