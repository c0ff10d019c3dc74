package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/identity/identitytest"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/provider"
)

// token is the machine's join token.
const token = "a token that is good once"

// machine is who it is.
var machine = identity.Identity{Shard: "shard-1", Role: identity.Agent, Name: "web-0-a"}

// patience is how long a required event may take on a slow machine.
const patience = 2 * time.Minute

// gateway admits the one machine, welcomes every agent, acknowledges every report, and passes the
// messages to the test.
type gateway struct {
	protocol.UnimplementedGatewayServer
	t       testing.TB
	ca      *identitytest.Authority
	address string
	server  *grpc.Server
	heard   chan *protocol.AgentMessage
	wanted  atomic.Pointer[protocol.Wanted] // sent with every answer
}

func startGateway(t testing.TB) *gateway {
	t.Helper()
	return serveGateway(t, identitytest.New(t, "agents"), "127.0.0.1:0")
}

// again is another replica of the shard, in the place of this one.
func (g *gateway) again() *gateway {
	g.t.Helper()
	return serveGateway(g.t, g.ca, g.address)
}

func serveGateway(t testing.TB, ca *identitytest.Authority, at string) *gateway {
	t.Helper()
	lis, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, ca: ca, address: lis.Addr().String(), heard: make(chan *protocol.AgentMessage, 1000)}
	own := ca.Own(t, identity.Identity{Shard: machine.Shard, Role: identity.Coordinator, Name: "coord-a"}, time.Hour)
	g.server = grpc.NewServer(
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.Creds(credentials.NewTLS(identity.ServerConfig(own, identitytest.Trust(ca)))),
	)
	protocol.RegisterGatewayServer(g.server, g)
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.server.Serve(lis) })
	t.Cleanup(func() { g.server.Stop(); serving.Wait() })
	return g
}

func (g *gateway) Join(_ context.Context, r *protocol.JoinRequest) (*protocol.Certificate, error) {
	if r.GetToken() != token {
		return nil, status.Error(codes.PermissionDenied, "join refused")
	}
	trust := identitytest.Trust(g.ca)
	return &protocol.Certificate{
		Chain: [][]byte{g.ca.Issue(g.t, r.GetRequest(), machine, time.Hour)},
		Trust: &protocol.Trust{Authorities: trust.DER(), Issuer: trust.Issuer},
	}, nil
}

func (g *gateway) Session(stream grpc.BidiStreamingServer[protocol.AgentMessage, protocol.GatewayMessage]) error {
	caller, _ := peer.FromContext(stream.Context())
	if info, ok := caller.AuthInfo.(credentials.TLSInfo); !ok || len(info.State.PeerCertificates) == 0 {
		return status.Error(codes.PermissionDenied, "no certificate")
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil // the agent has said all
		}
		if err != nil {
			return err
		}
		g.heard <- m
		var answer *protocol.GatewayMessage
		switch {
		case m.GetHello() != nil:
			answer = &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Welcome{Welcome: &protocol.Welcome{
				Replica: g.address, Lease: 5, ReportInterval: durationpb.New(time.Second),
				LeaseTtl: durationpb.New(5 * time.Second),
			}}}
		case m.GetReport() != nil:
			answer = &protocol.GatewayMessage{
				Kind: &protocol.GatewayMessage_Ack{Ack: &protocol.Ack{Sequence: m.GetReport().GetSequence(), Lease: 5}},
			}
		default:
			return nil
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
		if w := g.wanted.Load(); w != nil {
			if err := stream.Send(&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Wanted{Wanted: w}}); err != nil {
				return err
			}
		}
	}
}

// await returns the next message that is meant.
func (g *gateway) await(what string, is func(*protocol.AgentMessage) bool) *protocol.AgentMessage {
	g.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case m := <-g.heard:
			if is(m) {
				return m
			}
		case <-deadline:
			g.t.Fatalf("no %s within %s", what, patience)
		}
	}
}

func (g *gateway) hello() *protocol.Hello {
	g.t.Helper()
	return g.await("hello", func(m *protocol.AgentMessage) bool { return m.GetHello() != nil }).GetHello()
}

func (g *gateway) healthy() {
	g.t.Helper()
	g.await("healthy report", func(m *protocol.AgentMessage) bool { return m.GetReport().GetHealthy() })
}

// box is a machine: a directory with a bootstrap document, and what runs in it.
type box struct {
	testing.TB
	dir string
}

func newBox(t testing.TB, run []string, g *gateway) box {
	t.Helper()
	b := box{t, t.TempDir()}
	doc, err := json.Marshal(provider.Bootstrap{
		Schema: provider.BootstrapSchema, Instance: machine.Name, Group: "web", Shard: machine.Shard,
		Coordinators: []string{g.address},
		JoinToken:    token, CA: string(identitytest.Trust(g.ca).PEM()),
		ReportInterval: "1s", ReconnectMin: "100ms", ReconnectMax: "2s", StopTimeout: "20s", Run: run,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.bootstrap(), doc, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pid := b.said(); pid > 1 {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	})
	return b
}

func (b box) bootstrap() string { return filepath.Join(b.dir, "bootstrap.json") }

// becomes gives the machine the document of another instance.
func (b box) becomes(instance string) {
	b.Helper()
	data, err := os.ReadFile(b.bootstrap())
	if err != nil {
		b.Fatal(err)
	}
	var doc provider.Bootstrap
	if err := json.Unmarshal(data, &doc); err != nil {
		b.Fatal(err)
	}
	doc.Instance = instance
	if data, err = json.Marshal(doc); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(b.bootstrap(), data, 0o600); err != nil {
		b.Fatal(err)
	}
}

// said is the process ID that the workload wrote; 0 if it did not, or if two did.
func (b box) said() int {
	data, _ := os.ReadFile(filepath.Join(b.dir, "pid"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return pid
}

// workload waits until the workload has said its process ID.
func (b box) workload() int {
	b.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		if pid := b.said(); pid > 1 {
			return pid
		}
	}
	b.Fatalf("no workload within %s", patience)
	return 0
}

// serving is a workload that prints its process ID and keeps running.
var serving = []string{"sh", "-c", "echo $$ >>pid; exec sleep 1000"}

type agentProcess struct {
	*exec.Cmd
	box  box
	log  *bytes.Buffer
	done chan struct{}
}

func (b box) agent(env ...string) *agentProcess {
	b.Helper()
	p := &agentProcess{Cmd: exec.Command(agentBinary), box: b, log: &bytes.Buffer{}, done: make(chan struct{})}
	p.Env = append(os.Environ(), provider.EnvBootstrap+"="+b.bootstrap(), provider.EnvBootID+"=boot-1")
	p.Env = append(p.Env, env...)
	p.Stderr = p.log
	if err := p.Start(); err != nil {
		b.Fatal(err)
	}
	go func() { defer close(p.done); _ = p.Wait() }()
	b.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.done
		if b.Failed() {
			b.Logf("log of the agent:\n%s", p.log)
		}
	})
	return p
}

func (p *agentProcess) signal(sig os.Signal) {
	p.box.Helper()
	if err := p.Process.Signal(sig); err != nil {
		p.box.Fatal(err)
	}
}

func (p *agentProcess) ended() int {
	p.box.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.box.Fatalf("agent has not ended within %s", patience)
	}
	return p.ProcessState.ExitCode()
}

func lives(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(data), ") Z ")
}

// proves DET-1, DET-8, DET-9
func TestJoinsReportsAndEndsInOrder(t *testing.T) {
	g := startGateway(t)
	b := newBox(t, serving, g)
	p := b.agent()
	if h := g.hello(); h.GetInstance() != "web-0-a" || h.GetBootId() != "boot-1" || h.GetAgentVersion() != "1.2.3" ||
		h.GetEpoch() != 1 {
		t.Errorf("hello is %v", h)
	}
	g.healthy()
	g.healthy()
	pid := b.workload()
	p.signal(syscall.SIGTERM)
	goodbye := g.await("goodbye", func(m *protocol.AgentMessage) bool { return m.GetGoodbye() != nil }).GetGoodbye()
	if goodbye.GetKind() != protocol.Goodbye_SHUTDOWN {
		t.Errorf("goodbye is %v", goodbye)
	}
	if code := p.ended(); code != 0 {
		t.Errorf("agent ended with code %d", code)
	}
	if lives(pid) {
		t.Error("workload was not ended")
	}
}

// The replica that it spoke to is gone when it wakes, and another serves at that address.
//
// proves DET-14, DET-18
func TestFrozenAgentComesBack(t *testing.T) {
	first := startGateway(t)
	b := newBox(t, serving, first)
	p := b.agent()
	first.healthy()
	p.signal(syscall.SIGSTOP)
	first.server.Stop()
	second := first.again()
	p.signal(syscall.SIGCONT)
	if h := second.hello(); h.GetEpoch() < 2 || h.GetLease() != 5 {
		t.Errorf("hello after the thaw is %v, want a higher epoch and the lease from before", h)
	}
	second.healthy()
}

// proves DET-14
func TestKilledAgentComesBackToItsWorkload(t *testing.T) {
	g := startGateway(t)
	b := newBox(t, serving, g)
	first := b.agent()
	g.healthy()
	pid := b.workload()
	first.signal(syscall.SIGKILL)
	first.ended()
	if !lives(pid) {
		t.Fatal("workload ended with the agent")
	}

	second := b.agent()
	if h := g.hello(); h.GetEpoch() != 2 || h.GetLease() != 5 {
		t.Errorf("hello of the second agent is %v", h)
	}
	g.healthy()
	if now := b.said(); now != pid {
		t.Errorf("workload is %d, was %d: a second one was started", now, pid)
	}
	second.signal(syscall.SIGTERM)
	if code := second.ended(); code != 0 {
		t.Errorf("second agent ended with code %d", code)
	}
	if lives(pid) {
		t.Error("workload that was taken up again was not stopped")
	}
}

// proves DET-8
func TestUpgradeLeavesTheWorkloadAlone(t *testing.T) {
	g := startGateway(t)
	b := newBox(t, serving, g)
	p := b.agent("LEASEHOLD_FAREWELL=restart", "LEASEHOLD_KEEP_WORKLOAD=true")
	g.healthy()
	pid := b.workload()
	p.signal(syscall.SIGTERM)
	goodbye := g.await("goodbye", func(m *protocol.AgentMessage) bool { return m.GetGoodbye() != nil }).GetGoodbye()
	if code := p.ended(); code != 0 || goodbye.GetKind() != protocol.Goodbye_RESTART {
		t.Errorf("code %d, goodbye %v", code, goodbye)
	}
	if !lives(pid) {
		t.Error("workload was ended")
	}
}

// An agent whose document names another instance when it is terminated does not come back.
//
// proves DET-8
func TestWorkloadEndsWithItsInstance(t *testing.T) {
	g := startGateway(t)
	b := newBox(t, serving, g)
	p := b.agent("LEASEHOLD_FAREWELL=restart", "LEASEHOLD_KEEP_WORKLOAD=true")
	g.healthy()
	pid := b.workload()
	b.becomes("web-0-other")
	p.signal(syscall.SIGTERM)
	goodbye := g.await("goodbye", func(m *protocol.AgentMessage) bool { return m.GetGoodbye() != nil }).GetGoodbye()
	if code := p.ended(); code != 0 || goodbye.GetKind() != protocol.Goodbye_SHUTDOWN {
		t.Errorf("code %d, goodbye %v", code, goodbye)
	}
	if lives(pid) {
		t.Error("the workload of the other instance goes on")
	}
}

// proves DET-1, DET-19
func TestFailingWorkloadIsReportedWithItsLastOutput(t *testing.T) {
	g := startGateway(t)
	b := newBox(t, []string{"sh", "-c", "echo out of luck; exit 4"}, g)
	b.agent()
	report := g.await("unhealthy report with an exit", func(m *protocol.AgentMessage) bool {
		return m.GetReport().GetWorkloadExit() != nil
	}).GetReport()
	if e := report.GetWorkloadExit(); e.GetCode() != 4 || string(e.GetOutput()) != "out of luck\n" ||
		report.GetHealthy() {
		t.Errorf("report is %v", report)
	}
}
