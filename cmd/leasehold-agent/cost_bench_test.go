package main

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
)

var window = flag.Duration("window", 10*time.Second, "for how long an agent is watched to tell what it costs")

// What the agent takes of a machine that has nothing else to do for it: in percent of one core,
// itself and the commands that it runs, and of memory. It reports each second here, five times as
// often as it does by default.
//
//	go test ./cmd/leasehold-agent -run '^$' -bench Cost -window 60s
func BenchmarkCost(b *testing.B) {
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

	every2s := []*protocol.CheckSpec{
		{Name: "http", Kind: &protocol.CheckSpec_Http{Http: &protocol.HTTPCheck{Port: webPort}}},
		{Name: "tcp", Kind: &protocol.CheckSpec_Tcp{Tcp: &protocol.TCPCheck{Port: webPort}}},
		{Name: "grpc", Kind: &protocol.CheckSpec_Grpc{Grpc: &protocol.GRPCCheck{Port: rpcPort}}},
		{Name: "pid", Kind: &protocol.CheckSpec_Process{Process: &protocol.ProcessCheck{Name: "sleep"}}},
		{Name: "exec", Kind: &protocol.CheckSpec_Exec{Exec: &protocol.ExecCheck{Run: []string{"/bin/true"}}}},
	}
	for _, c := range every2s {
		c.Interval, c.Timeout, c.UnhealthyThreshold, c.HealthyThreshold = durationpb.New(2*time.Second),
			durationpb.New(time.Second), 2, 2
	}
	for _, c := range []struct {
		name   string
		checks int
	}{{"no checks", 0}, {"four checks and no command", 4}, {"five checks", 5}} {
		b.Run(c.name, func(b *testing.B) {
			g := startGateway(b)
			g.wanted.Store(&protocol.Wanted{ConfigHash: "c1", Run: serving, Checks: every2s[:c.checks]})
			p := newBox(b, serving, g).agent()
			g.await("healthy report of all checks", func(m *protocol.AgentMessage) bool {
				return m.GetReport().GetHealthy() && len(m.GetReport().GetChecks()) == c.checks+1
			})
			var own, commands time.Duration
			watched := time.Duration(0)
			for b.Loop() {
				before, ran := used(b, p.Process.Pid)
				began := time.Now()
				g.watch(b, *window)
				after, run := used(b, p.Process.Pid)
				own, commands, watched = own+after-before, commands+run-ran, watched+time.Since(began)
			}
			b.ReportMetric(100*float64(own)/float64(watched), "%core")
			b.ReportMetric(100*float64(commands)/float64(watched), "%core-commands")
			b.ReportMetric(float64(resident(b, p.Process.Pid))/(1<<20), "MiB")
		})
	}
}

// watch takes what the agent says for a while: it has to stay healthy.
func (g *gateway) watch(b *testing.B, span time.Duration) {
	over := time.After(span)
	for {
		select {
		case <-over:
			return
		case m := <-g.heard:
			if r := m.GetReport(); r != nil && !r.GetHealthy() {
				b.Fatalf("it is not healthy: %s", r.GetWhy())
			}
		}
	}
}

// used is the CPU time of a process and of its children that have ended.
func used(b *testing.B, pid int) (own, children time.Duration) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	words := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	const utime = 11 // after the name; then the system's part, and the same for children
	ticks := func(i int) time.Duration {
		n, err := strconv.Atoi(string(words[utime+i]))
		if err != nil {
			b.Fatal(err)
		}
		return time.Duration(n) * 10 * time.Millisecond
	}
	return ticks(0) + ticks(1), ticks(2) + ticks(3)
}

// resident returns the memory of a process.
func resident(b *testing.B, pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Fatal(err)
	}
	pages, err := strconv.Atoi(string(bytes.Fields(data)[1]))
	if err != nil {
		b.Fatal(err)
	}
	return pages * os.Getpagesize()
}
