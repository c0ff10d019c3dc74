package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/pki"
)

// callersEnv has this program, started again, be the agents: their memory must not be counted with
// the replica's.
const callersEnv = "LEASEHOLD_TEST_CALLERS"

// BenchmarkIdleAgents measures what an agent without news costs its replica. LEASEHOLD_TEST_AGENTS
// sets their number, 1,000 by default.
func BenchmarkIdleAgents(b *testing.B) {
	if of := os.Getenv(callersEnv); of != "" {
		if err := beCallers(of); err != nil {
			b.Fatal(err)
		}
		return
	}
	agents := 1000
	if n, err := strconv.Atoi(os.Getenv("LEASEHOLD_TEST_AGENTS")); err == nil {
		agents = n
	}
	for _, kind := range []struct {
		name    string
		secured bool
		conns   int
	}{{"own TLS connection", true, agents}, {"shared connections", false, max(1, agents/1000)}} {
		b.Run(kind.name, func(b *testing.B) {
			h := openHubWith(b, kind.secured)
			for i := range agents {
				h.record(callerID(i))
			}
			before := memoryNow()
			callers := exec.Command(os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkIdleAgents$",
				"-test.benchtime=1x")
			callers.Env = append(os.Environ(),
				fmt.Sprintf("%s=%s %d %d %s", callersEnv, h.address, agents, kind.conns, h.dir))
			if !kind.secured {
				callers.Env[len(callers.Env)-1] = fmt.Sprintf("%s=%s %d %d -", callersEnv, h.address, agents,
					kind.conns)
			}
			callers.Stderr = os.Stderr
			in, err := callers.StdinPipe()
			if err != nil {
				b.Fatal(err)
			}
			out, err := callers.StdoutPipe()
			if err != nil {
				b.Fatal(err)
			}
			if err := callers.Start(); err != nil {
				b.Fatal(err)
			}
			defer func() {
				in.Close()
				_ = callers.Wait()
			}()
			lines := bufio.NewScanner(out)
			for lines.Scan() && lines.Text() != "ready" {
			}
			if lines.Text() != "ready" {
				b.Fatal("the agents did not come")
			}
			with := memoryNow()
			for b.Loop() {
			}
			each := func(what string, with, before uint64) {
				b.ReportMetric((float64(with)-float64(before))/float64(agents), what)
			}
			each("B/agent", with.used, before.used)
			each("stackB/agent", with.stacks, before.stacks)
			each("residentB/agent", with.resident, before.resident)
			each("goroutines/agent", uint64(with.goroutines), uint64(before.goroutines))
			b.ReportMetric(0, "ns/op")
		})
	}
}

func callerID(i int) string { return fmt.Sprintf("idle-%d", i) }

// memory returns the memory that this process uses.
type memory struct {
	used     uint64 // heap and stacks
	stacks   uint64
	resident uint64

	goroutines int
}

func memoryNow() memory {
	for range 3 { // stacks are halved with each
		runtime.GC()
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	now := memory{used: m.HeapInuse + m.StackInuse, stacks: m.StackInuse, goroutines: runtime.NumGoroutine()}
	status, _ := os.ReadFile("/proc/self/status")
	if _, rest, found := strings.Cut(string(status), "VmRSS:"); found {
		var kib uint64
		if _, err := fmt.Sscan(rest, &kib); err == nil {
			now.resident = kib << 10
		}
	}
	return now
}

// beCallers returns the agents' process: each says hello, reports twice and is silent until our
// input ends.
func beCallers(of string) error {
	var address, dir string
	var agents, conns int
	if _, err := fmt.Sscan(of, &address, &agents, &conns, &dir); err != nil {
		return err
	}
	var ca *pki.Authority
	if dir != "-" {
		var err error
		if ca, err = pki.Open(dir, slog.New(slog.DiscardHandler)); err != nil {
			return err
		}
	}
	var shared []*grpc.ClientConn
	for i := range conns {
		conn, err := callerConn(address, ca, callerID(i))
		if err != nil {
			return err
		}
		defer conn.Close()
		shared = append(shared, conn)
	}
	next, failed := make(chan int), make(chan error, agents)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for i := range next {
				failed <- beCaller(shared[i%conns], callerID(i))
			}
		})
	}
	for i := range agents {
		next <- i
	}
	close(next)
	all.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	fmt.Println("\nready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

func callerConn(address string, ca *pki.Authority, id string) (*grpc.ClientConn, error) {
	secured := insecure.NewCredentials()
	if ca != nil {
		own, err := papersOf(ca, id)
		if err != nil {
			return nil, err
		}
		secured = credentials.NewTLS(identity.ClientConfig(shardID, own, ca.Trust()))
	}
	return grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(secured),
		grpc.WithAuthority(identity.Host(shardID, identity.Coordinator)),
		grpc.WithReadBufferSize(1<<10), grpc.WithWriteBufferSize(1<<10), grpc.WithIdleTimeout(0))
}

func beCaller(conn *grpc.ClientConn, id string) error {
	for epoch := uint64(1); ; epoch++ { // a refused agent returns
		stream, err := protocol.NewGatewayClient(conn).Session(context.Background())
		if err != nil {
			return err
		}
		if err = stream.Send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Hello{Hello: hello(id, "boot",
			epoch)}}); err != nil {
			return err
		}
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if m.GetWelcome() == nil {
			<-time.After(200 * time.Millisecond)
			continue
		}
		a := &honest{stream: stream}
		for range 2 {
			if _, ok := a.report(); !ok {
				return fmt.Errorf("%s is not acknowledged", id)
			}
		}
		return nil
	}
}
