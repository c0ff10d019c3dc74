package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/certificate"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/provider"
)

const (
	interval       = 5 * time.Second
	leaseTTL       = 17 * time.Second
	reconnectFirst = time.Second
	maxReconnect   = 30 * time.Second
)

type gatewayStream = grpc.BidiStreamingServer[protocol.AgentMessage, protocol.GatewayMessage]

// shard is a set of replicas in memory, all of which know the epoch that the newest stream had.
type shard struct {
	mu       sync.Mutex
	replicas map[string]*replica
	epoch    uint64
	lease    int64
	heard    []heard
	dialled  map[string]int
	shaken   int // handshakes
	began    time.Time
	office   *office // issues certificates; nil: streams are not secured
}

// heard is one message from an agent.
type heard struct {
	at      time.Time
	replica string
	message *protocol.AgentMessage
}

// replica serves agents as a gateway would, unless its script says otherwise.
type replica struct {
	protocol.UnimplementedGatewayServer
	shard  *shard
	name   string
	script script // under shard.mu
	lis    *bufconn.Listener
	server *grpc.Server
	orders chan *protocol.GatewayMessage // for the stream that is open
}

// script is a replica's behavior; the zero value is normal.
type script struct {
	refuse  *protocol.Refused // answers every hello
	hang    bool              // never welcomes
	mute    bool              // takes reports and says nothing
	nack    bool              // renews nothing
	closing bool              // ends every stream after the welcome
	older   uint32            // speaks a protocol that is older by so much
	report  bool              // acknowledges and asks for a report
}

func newShard(t *testing.T, names ...string) *shard {
	t.Helper()
	return newSecuredShard(nil, names...)
}

// newSecuredShard has an office that says who may speak.
func newSecuredShard(o *office, names ...string) *shard {
	s := &shard{office: o, replicas: map[string]*replica{}, lease: 100, dialled: map[string]int{}, began: time.Now()}
	for _, n := range names {
		s.replicas[n] = &replica{shard: s, name: n, orders: make(chan *protocol.GatewayMessage)}
		s.replicas[n].start()
	}
	return s
}

func (r *replica) start() {
	r.lis = bufconn.Listen(1 << 20)
	options := []grpc.ServerOption{grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
		MinTime:             time.Second,
		PermitWithoutStream: true,
	})}
	if r.shard.office != nil {
		options = append(options, grpc.Creds(r.shard.office.credentials(r.name)))
	}
	r.server = grpc.NewServer(options...)
	protocol.RegisterGatewayServer(r.server, r)
	server, lis := r.server, r.lis
	go func() { _ = server.Serve(lis) }()
}

func (r *replica) stop() { r.server.Stop() }

func (s *shard) stop() {
	for _, r := range s.replicas {
		r.stop()
	}
}

func (s *shard) dial(ctx context.Context, address string) (net.Conn, error) {
	s.mu.Lock()
	r := s.replicas[address]
	s.dialled[address]++
	s.mu.Unlock()
	if r == nil {
		return nil, fmt.Errorf("no host %s", address)
	}
	return r.lis.DialContext(ctx)
}

func (s *shard) act(name string, as script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas[name].script = as
}

// handshakes returns how often the agent has connected.
func (s *shard) handshakes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shaken
}

func (s *shard) names() []string {
	var out []string
	for n := range s.replicas {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func (r *replica) note(m *protocol.AgentMessage) script {
	r.shard.mu.Lock()
	defer r.shard.mu.Unlock()
	r.shard.heard = append(r.shard.heard, heard{at: time.Now(), replica: r.name, message: m})
	return r.script
}

func (r *replica) Session(stream gatewayStream) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	act := r.note(first)
	hello := first.GetHello()
	desk, err := r.shard.office.receive(stream.Context(), hello)
	if err != nil {
		return err
	}
	refusal := act.refuse
	r.shard.mu.Lock()
	if refusal == nil && hello.GetEpoch() <= r.shard.epoch {
		refusal = &protocol.Refused{Reason: protocol.Refused_STALE_EPOCH, StoredEpoch: r.shard.epoch}
	}
	if refusal == nil && !act.hang {
		r.shard.epoch = hello.GetEpoch()
		if hello.GetLease() != r.shard.lease {
			r.shard.lease++
		}
	}
	lease := r.shard.lease
	r.shard.mu.Unlock()
	if refusal != nil {
		return stream.Send(&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Refused{Refused: refusal}})
	}
	if act.hang {
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	if err := stream.Send(&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Welcome{Welcome: &protocol.Welcome{
		Replica: r.name, Lease: lease, Coordinators: r.shard.names(),
		ReportInterval: durationpb.New(interval), LeaseTtl: durationpb.New(leaseTTL),
		ReconnectMin: durationpb.New(reconnectFirst), ReconnectMax: durationpb.New(maxReconnect),
		Protocol: max(1, protocol.Newest-act.older),
	}}}); err != nil || act.closing {
		return err
	}
	said := make(chan *protocol.AgentMessage)
	go func() {
		defer close(said)
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case said <- m:
			case <-stream.Context().Done():
				return
			}
		}
	}()
	news, trust := desk.newTrust(), ""
	if err := desk.tellTrust(stream, hello.GetTrust()); err != nil {
		return err
	}
	for {
		select {
		case <-news:
			news = desk.newTrust()
			if err := desk.tellTrust(stream, ""); err != nil {
				return err
			}
		case <-desk.over():
			return stream.Send(&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Refused{Refused: &protocol.Refused{
				Reason: protocol.Refused_CERTIFICATE, Message: "the certificate has ended",
			}}})
		case m, more := <-said:
			if !more {
				return nil
			}
			act := r.note(m)
			if m.GetGoodbye() != nil {
				return nil
			}
			if request := m.GetRenewCertificate(); request != nil {
				if err := desk.renew(stream, request); err != nil {
					return err
				}
				continue
			}
			sequence := m.GetHeartbeat().GetSequence()
			if report := m.GetReport(); report != nil {
				sequence, trust = report.GetSequence(), report.GetTrust()
			}
			if err := desk.tellTrust(stream, trust); err != nil {
				return err
			}
			if err := stream.Send(answer(act, sequence, lease)); err != nil {
				return err
			}
		case o := <-r.orders:
			if err := stream.Send(o); err != nil {
				return err
			}
			if o.GetRefused() != nil {
				return nil
			}
		}
	}
}

func answer(act script, sequence uint64, lease int64) *protocol.GatewayMessage {
	switch {
	case act.mute:
		return &protocol.GatewayMessage{} // an unknown kind: ignored
	case act.nack:
		return &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Nack{Nack: &protocol.Nack{
			Sequence: sequence,
			Message:  "etcd is out of reach",
		}}}
	default:
		return &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Ack{Ack: &protocol.Ack{
			Sequence: sequence,
			Lease:    lease, Report: act.report,
		}}}
	}
}

// counting is a certificate that counts handshakes.
type counting struct {
	Certificate
	shard *shard
}

func (c counting) Credentials(bare bool) (credentials.TransportCredentials, uint64) {
	own, generation := c.Certificate.Credentials(bare)
	return countedCredentials{own, c.shard}, generation
}

type countedCredentials struct {
	credentials.TransportCredentials
	shard *shard
}

func (c countedCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn,
	credentials.AuthInfo, error,
) {
	c.shard.mu.Lock()
	c.shard.shaken++
	c.shard.mu.Unlock()
	return c.TransportCredentials.ClientHandshake(ctx, authority, conn)
}

func (c countedCredentials) Clone() credentials.TransportCredentials {
	return countedCredentials{c.TransportCredentials.Clone(), c.shard}
}

// running is an agent under way in a bubble.
type running struct {
	t       *testing.T
	shard   *shard
	machine *machine
	hook    *hook
	notices *oracle
	evac    *oracle
	power   *offSwitch
	checker *checker
	state   string // the agent's state file
	cancel  context.CancelFunc
	done    chan error
}

func startAgent(t *testing.T, s *shard, m *machine, change func(*Config)) *running {
	t.Helper()
	cfg := Config{
		Bootstrap: provider.Bootstrap{
			Instance: "web-0-a", Group: "web", Shard: "shard-1", Coordinators: s.names(), JoinToken: "join",
			ReportInterval: interval.String(), ReconnectMin: reconnectFirst.String(),
			ReconnectMax: maxReconnect.String(), StopTimeout: "30s",
		},
		BootID: "boot-1", StateDir: t.TempDir(), Version: "test",
	}
	if change != nil {
		change(&cfg)
	}
	h, c, notices, evac := newHook(), newChecker(), newOracle(), newOracle()
	power, began := newSwitch(), s.began
	answering := func() {
		m.mu.Lock()
		answers := m.disk
		m.mu.Unlock()
		if answers != nil {
			<-answers
		}
	}
	log := slog.New(slog.NewTextHandler(testWriter{t}, nil))
	var papers Certificate = certificate.Unsecured{}
	if s.office != nil {
		papers = s.office.certificate(t, &cfg, log, answering)
	}
	a, err := New(cfg, Deps{
		Certificate: counting{papers, s}, Logger: log,
		Host: m, Workload: m, Hook: h, Checks: c, Notices: notices, Evacuation: evac, Fence: power,
		Secrets: m.hidden, Files: m.files,
		Uptime: func() time.Duration {
			m.mu.Lock()
			defer m.mu.Unlock()
			return time.Since(began) + m.slept
		},
		Dial: s.dial, Crash: m.crash,
		Rand: func() float64 { return 0.999 },
	})
	if err != nil {
		t.Fatal(err)
	}
	save := a.stateWriter.save
	a.stateWriter.save = func(p stateFile) error {
		answering()
		return save(p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{
		t: t, shard: s, machine: m, hook: h, checker: c, notices: notices, evac: evac, power: power,
		state: filepath.Join(cfg.StateDir, "agent.json"), cancel: cancel, done: make(chan error, 1),
	}
	go func() { r.done <- a.Run(ctx) }()
	return r
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(string(p[:len(p)-1]))
	return len(p), nil
}

// pass lets the bubble's time pass, and everything settle.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// end ends the agent, then the shard, so that nothing of the bubble is left.
func (r *running) end() {
	r.t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		r.t.Errorf("Run: %v, want nil", err)
	}
	r.shard.stop()
	synctest.Wait()
}

// take returns the messages since the last take.
func (s *shard) take() []heard {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.heard
	s.heard = nil
	return out
}

// order makes the replica's open stream say something.
func (s *shard) order(t *testing.T, name string, m *protocol.GatewayMessage) {
	t.Helper()
	select {
	case s.replicas[name].orders <- m:
	case <-time.After(time.Minute):
		t.Fatalf("replica %s has no open stream", name)
	}
	synctest.Wait()
}

// summary returns the messages in words: "a hello", "a report 1 healthy", "a goodbye MOVING".
func summary(all []heard) []string {
	var out []string
	for _, h := range all {
		switch k := h.message.GetKind().(type) {
		case *protocol.AgentMessage_Hello:
			out = append(out, h.replica+" hello")
		case *protocol.AgentMessage_Report:
			health := "healthy"
			if !k.Report.GetHealthy() {
				health = "unhealthy"
			}
			out = append(out, fmt.Sprintf("%s report %d %s", h.replica, k.Report.GetSequence(), health))
		case *protocol.AgentMessage_Heartbeat:
			out = append(out, fmt.Sprintf("%s heartbeat %d of %d", h.replica, k.Heartbeat.GetSequence(),
				k.Heartbeat.GetReport()))
		case *protocol.AgentMessage_RenewCertificate:
			out = append(out, h.replica+" renew")
		case *protocol.AgentMessage_Goodbye:
			out = append(out, h.replica+" goodbye "+k.Goodbye.GetKind().String())
		}
	}
	return out
}

func wantHeard(t *testing.T, got []heard, want ...string) {
	t.Helper()
	if s := summary(got); !slices.Equal(s, want) {
		t.Errorf("heard %q, want %q", s, want)
	}
}
