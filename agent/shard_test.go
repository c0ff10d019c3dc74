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
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/checks"
	"github.com/leasehold/leasehold/agent/host"
	"github.com/leasehold/leasehold/agent/notice"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/workload"
	"github.com/leasehold/leasehold/provider"
)

const (
	interval       = 5 * time.Second
	leaseTTL       = 17 * time.Second
	reconnectFirst = time.Second
	reconnectMost  = 30 * time.Second
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

// script is how a replica behaves; zero is well.
type script struct {
	refuse  *protocol.Refused // answers every hello
	hang    bool              // never welcomes
	mute    bool              // takes reports and says nothing
	nack    bool              // renews nothing
	closing bool              // ends every stream after the welcome
}

func newShard(t *testing.T, names ...string) *shard {
	t.Helper()
	s := &shard{replicas: map[string]*replica{}, lease: 100, dialled: map[string]int{}, began: time.Now()}
	for _, n := range names {
		s.replicas[n] = &replica{shard: s, name: n, orders: make(chan *protocol.GatewayMessage)}
		s.replicas[n].start()
	}
	return s
}

func (r *replica) start() {
	r.lis = bufconn.Listen(1 << 20)
	r.server = grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
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
		ReconnectMin: durationpb.New(reconnectFirst), ReconnectMax: durationpb.New(reconnectMost),
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
	for {
		select {
		case m, more := <-said:
			if !more {
				return nil
			}
			act := r.note(m)
			if m.GetGoodbye() != nil {
				return nil
			}
			if err := stream.Send(answer(act, m.GetReport(), lease)); err != nil {
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

func answer(act script, report *protocol.Report, lease int64) *protocol.GatewayMessage {
	switch {
	case act.mute:
		return &protocol.GatewayMessage{} // an unknown kind: ignored
	case act.nack:
		return &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Nack{Nack: &protocol.Nack{Sequence: report.GetSequence(), Message: "etcd is out of reach"}}}
	default:
		return &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Ack{Ack: &protocol.Ack{Sequence: report.GetSequence(), Lease: lease}}}
	}
}

// machine is a workload and host in memory.
type machine struct {
	mu      sync.Mutex
	state   workload.State
	run     []string          // of the next start
	vars    map[string]string // with these
	started string            // what the last start had of them
	stopFor time.Duration     // how long it takes to stop
	lingers time.Duration     // how long it goes on when it is killed
	disk    chan struct{}     // the state file's, if it hangs; closed when it answers
	starts  int
	stops   int
	ended   time.Time // when it was last stopped
	kept    bool
	changed chan struct{}
}

func newMachine(wanted bool) *machine {
	return &machine{state: workload.State{Wanted: wanted}, changed: make(chan struct{}, 1)}
}

func (m *machine) Run(ctx context.Context) { <-ctx.Done() }
func (m *machine) Latest() host.Sample     { return host.Sample{CPUPercent: 12, Uptime: time.Hour} }

func (m *machine) Configure(run []string, vars map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.run, m.vars = run, vars
}

func (m *machine) Start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.state.Wanted || m.state.Running {
		return nil
	}
	m.starts++
	m.started = fmt.Sprint(m.run, m.vars)
	m.state = workload.State{Wanted: true, Running: true, PID: 7, Since: time.Now()}
	return nil
}

func (m *machine) Stop(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state.Running {
		if m.stopFor > 0 {
			m.mu.Unlock()
			select {
			case <-time.After(m.stopFor):
			case <-ctx.Done():
				<-time.After(m.lingers)
			}
			m.mu.Lock()
		}
		m.stops++
		m.ended = time.Now()
	}
	if m.state.Wanted {
		m.state = workload.State{Wanted: true}
	}
}

func (m *machine) Release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = true
}

func (m *machine) State() workload.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

func (m *machine) Changed() <-chan struct{} { return m.changed }

func (m *machine) exit(code int) {
	m.mu.Lock()
	m.state = workload.State{Wanted: true, Since: time.Now(), Exit: &workload.Exit{
		Code: code, At: time.Now(), Why: fmt.Sprintf("ended with exit code %d", code), Output: []byte("last words"),
	}}
	m.mu.Unlock()
	m.changed <- struct{}{}
}

// hook is a drain hook in memory. Its methods are those of the real one.
type hook struct {
	mu      sync.Mutex
	drain   *workload.Drain // that runs
	begun   []string        // tokens
	killed  []string
	ended   string
	closed  bool
	kept    bool
	changed chan struct{}
}

func newHook() *hook { return &hook{changed: make(chan struct{}, 1)} }

func (h *hook) Want(d *workload.Drain) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case d != nil && (h.ended == d.Token || h.drain != nil && h.drain.Token == d.Token):
		return
	case h.drain != nil:
		h.killed = append(h.killed, h.drain.Token)
	}
	if h.drain = d; d != nil {
		h.begun = append(h.begun, d.Token)
	}
}

// end has the hook that runs end of itself.
func (h *hook) end() {
	h.mu.Lock()
	h.ended, h.drain = h.drain.Token, nil
	h.mu.Unlock()
	h.changed <- struct{}{}
}

func (h *hook) Ended() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

func (h *hook) Changed() <-chan struct{} { return h.changed }

func (h *hook) Close(keep bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed, h.kept = true, keep
}

// oracle is a source of notices in memory.
type oracle struct {
	mu      sync.Mutex
	spec    notice.Spec
	latest  *notice.Notice
	changed chan struct{}
}

func newOracle() *oracle { return &oracle{changed: make(chan struct{}, 1)} }

func (o *oracle) Run(ctx context.Context) { <-ctx.Done() }

func (o *oracle) Watch(spec notice.Spec) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spec = spec
}

func (o *oracle) Latest() *notice.Notice {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latest
}

func (o *oracle) Changed() <-chan struct{} { return o.changed }

func (o *oracle) says(n *notice.Notice) {
	o.mu.Lock()
	o.latest = n
	o.mu.Unlock()
	o.changed <- struct{}{}
}

// watches is what it was told to watch last.
func (o *oracle) watches() notice.Spec {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.spec
}

// offSwitch is a machine that can be powered off.
type offSwitch struct {
	mu     sync.Mutex
	off    []time.Time // when it was asked to
	fails  error
	ran    []string    // commands
	killed []time.Time // commands that the context's end has ended
	ends   bool        // commands end by themselves
}

func newSwitch() *offSwitch { return &offSwitch{ends: true} }

func (o *offSwitch) PowerOff(context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.off = append(o.off, time.Now())
	return o.fails
}

func (o *offSwitch) Command(ctx context.Context, run []string, vars map[string]string) error {
	o.mu.Lock()
	o.ran = append(o.ran, fmt.Sprint(run, vars))
	ends := o.ends
	o.mu.Unlock()
	if ends {
		return nil
	}
	<-ctx.Done()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.killed = append(o.killed, time.Now())
	return ctx.Err()
}

// commands are those that were run, and when any was killed.
func (o *offSwitch) commands() (ran []string, killed []time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.ran), slices.Clone(o.killed)
}

// counting are credentials that count handshakes.
type counting struct {
	credentials.TransportCredentials
	shard *shard
}

func (c counting) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c.shard.mu.Lock()
	c.shard.shaken++
	c.shard.mu.Unlock()
	return c.TransportCredentials.ClientHandshake(ctx, authority, conn)
}

func (c counting) Clone() credentials.TransportCredentials {
	return counting{c.TransportCredentials.Clone(), c.shard}
}

// checker is a runner of checks in memory: a check has the results that a test gives it.
type checker struct {
	mu      sync.Mutex
	specs   []*protocol.CheckSpec
	vars    map[string]string
	states  []checks.State
	changed chan struct{}
	closed  bool
}

func newChecker() *checker { return &checker{changed: make(chan struct{}, 1)} }

func (c *checker) Want(w checks.Wanted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var states []checks.State
	for _, spec := range w.Specs {
		s := checks.State{Name: spec.GetName(), Kind: checks.Kind(spec), Optional: spec.GetOptional(), Verdict: checks.Assume(w.Assume, time.Now()), Threshold: 2}
		if known, is := w.Known[s.Name]; is {
			s.Verdict = known.Kept()
		}
		for i, old := range c.specs {
			if proto.Equal(old, spec) {
				s = c.states[i]
			}
		}
		states = append(states, s)
	}
	c.specs, c.vars, c.states = w.Specs, w.Vars, states
}

// result has a check, by its place, go through a run.
func (c *checker) result(t *testing.T, i int, why checks.Result) {
	t.Helper()
	c.mu.Lock()
	if i >= len(c.states) {
		c.mu.Unlock()
		t.Fatalf("there are %d checks", len(c.states))
	}
	var decided bool
	c.states[i].Verdict, decided = c.states[i].After(why, checks.Rules{Unhealthy: 2, Healthy: 2}, time.Now())
	c.mu.Unlock()
	if decided {
		c.changed <- struct{}{}
	}
	synctest.Wait()
}

func (c *checker) States() []checks.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.states)
}

func (c *checker) Changed() <-chan struct{} { return c.changed }

func (c *checker) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
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
			ReportInterval: interval.String(), ReconnectMin: reconnectFirst.String(), ReconnectMax: reconnectMost.String(), StopTimeout: "30s",
		},
		BootID: "boot-1", StateDir: t.TempDir(), Version: "test",
	}
	if change != nil {
		change(&cfg)
	}
	h, c, notices, evac := newHook(), newChecker(), newOracle(), newOracle()
	power, began := newSwitch(), s.began
	a, err := New(cfg, Deps{
		Credentials: counting{insecure.NewCredentials(), s}, Logger: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
		Host: m, Workload: m, Hook: h, Checks: c, Notices: notices, Evacuation: evac, Fence: power, Uptime: func() time.Duration { return time.Since(began) }, Dial: s.dial, Rand: func() float64 { return 0.999 },
	})
	if err != nil {
		t.Fatal(err)
	}
	save := a.scribe.save
	a.scribe.save = func(p page) error {
		m.mu.Lock()
		answers := m.disk
		m.mu.Unlock()
		if answers != nil {
			<-answers
		}
		return save(p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{t: t, shard: s, machine: m, hook: h, checker: c, notices: notices, evac: evac, power: power, state: filepath.Join(cfg.StateDir, "agent.json"), cancel: cancel, done: make(chan error, 1)}
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

// take returns what was heard since the last take.
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

// summary is what was heard in words: "a hello", "a report 1 healthy", "a goodbye MOVING".
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
