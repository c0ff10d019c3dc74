package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/agent/checks"
	"github.com/leasehold/leasehold/agent/files"
	"github.com/leasehold/leasehold/agent/host"
	"github.com/leasehold/leasehold/agent/notice"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/secrets"
	"github.com/leasehold/leasehold/agent/workload"
)

// machine is a workload and host in memory.
type machine struct {
	mu      sync.Mutex
	killed  int // the workload
	crashed int // the agent
	state   workload.State
	run     []string          // of the next start
	vars    map[string]string // with these
	started string            // what the last start had of them
	stopFor time.Duration     // how long it takes to stop
	lingers time.Duration     // how long it keeps running after a kill
	disk    chan struct{}     // the state file's, if it hangs; closed when it answers
	opens   chan struct{}     // the file of the workload's output, if the disk hangs; closed when it answers
	stuck   chan struct{}     // holds up the end of Run until it is closed
	unread  bool              // the record of an earlier agent's workload cannot be read
	starts  int
	stops   int
	ended   time.Time // when it was last stopped
	slept   time.Duration
	kept    bool
	// unrecorded: the disk has no record of what was started
	unrecorded bool
	changed    chan struct{}
	hidden     *secrets.Holder // nil: it has none
	files      *files.Manager  // nil: it keeps none
}

func newMachine(wanted bool) *machine {
	return &machine{state: workload.State{Wanted: wanted}, changed: make(chan struct{}, 1)}
}

func (m *machine) Run(ctx context.Context) {
	<-ctx.Done()
	if m.stuck != nil {
		<-m.stuck
	}
}

func (m *machine) Latest() host.Sample { return host.Sample{CPUPercent: 12, Uptime: time.Hour} }

func (m *machine) Configure(run []string, vars map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.run, m.vars = run, vars
}

func (m *machine) Start(ctx context.Context) error {
	if m.opens != nil {
		<-m.opens
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return workload.ErrWaits
	}
	if !m.state.Wanted || m.state.Running {
		return nil
	}
	if m.state.Unread = m.unread; m.unread {
		return workload.ErrWaits
	}
	if why := m.hidden.Missing(); why != "" {
		m.state.Waits = "secrets: " + why
		return workload.ErrWaits
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
		m.state = workload.State{Wanted: true, Unread: m.unread}
	}
}

func (m *machine) Release() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = true
	return !m.unrecorded
}

func (m *machine) StopReleased(ctx context.Context) error {
	m.Stop(ctx)
	return nil
}

func (m *machine) Kill() {
	m.mu.Lock()
	m.killed++
	m.mu.Unlock()
	go m.exit(-1)
}

func (m *machine) crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.crashed++
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

// hook is a drain hook in memory, with the methods of the real one.
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

func (h *hook) Close(keep bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed, h.kept = true, keep
	return true
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

// watches returns the last source that was set.
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
		s := checks.State{
			Name: spec.GetName(), Kind: checks.Kind(spec), Optional: spec.GetOptional(),
			Verdict: checks.Assume(w.Assume, time.Now()), Threshold: 2,
		}
		if known, ok := w.Known[s.Name]; ok {
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
