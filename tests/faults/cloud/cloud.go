package cloud

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/provider/fake/socket"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// Config describes a cloud.
type Config struct {
	Log    *history.Log
	Agent  string                       // path of cast; SetClock requires one whose wall clock can be set
	Dir    string                       // directory of the machines' state
	Logs   string                       // directory of the agents' logs; "": Dir
	Socket string                       // socket for replicas
	Zones  []string                     // default "a", "b"
	Source func(instance string) string // returns a machine's address; called once for each
	Made   func(instance string)        // called for each machine before it boots, if set
	// Whole says what is wrong with the content of a managed file that is neither the old nor the new
	// one, by the file's name; "" if it is whole.
	Whole map[string]func(content string) string
	// Certificate is a managed certificate, whose changes are recorded; nil: there is none.
	Certificate *Pair
	// AgentAgain is how long a machine waits before it restarts its agent; 0: 1s.
	AgentAgain time.Duration
}

// Cloud is machines and their provider.
type Cloud struct {
	cfg      Config
	mark     string // environment marker of all its processes, followed by the instance
	provider *fake.Provider
	calls    atomic.Uint64
	census   census

	traffic *traffic

	base   context.Context //nolint:containedctx // of all calls, which outlive their callers
	end    context.CancelFunc
	server *socket.Server
	late   sync.WaitGroup // effects of the load balancer that come after their calls
	keeper *exec.Cmd
	keeps  io.Closer

	mu       sync.Mutex
	machines map[string]*machine // all machines that ever existed
	failures []string
	keys     map[string]map[string]string // by machine, what reveals its private keys
}

// New starts nothing.
func New(cfg Config) (*Cloud, error) {
	if cfg.Log == nil || cfg.Agent == "" || cfg.Dir == "" || cfg.Socket == "" || cfg.Source == nil {
		return nil, errors.New("new cloud: Log, Agent, Dir, Socket and Source are needed")
	}
	cfg.AgentAgain = cmp.Or(cfg.AgentAgain, time.Second)
	c := &Cloud{cfg: cfg, mark: rand.Text(), machines: map[string]*machine{}, keys: map[string]map[string]string{}}
	c.traffic = &traffic{c: c, members: map[string]*served{}}
	c.provider = fake.NewProvider(fake.Config{Zones: fake.Zones(cfg.Zones...)},
		fake.Inside{Run: c.live, Observe: c.hear, Leaving: c.leaving, Address: c.reachedAt})
	return c, nil
}

// Serve serves replicas until Close. It returns once they can connect; calls end with the context.
func (c *Cloud) Serve(ctx context.Context) error {
	if err := os.MkdirAll(c.cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("serve the cloud: %w", err)
	}
	c.base, c.end = context.WithCancel(ctx)
	of := func(replica string) provider.Provider { return &front{c, replica} }
	var err error
	c.server, err = socket.Listen(ctx, c.cfg.Socket,
		map[string]any{"Machines": socket.NewMachines(c.base, of), "Traffic": &Traffic{c.traffic}})
	if err != nil {
		return err
	}
	if err := c.startKeeper(); err != nil {
		c.server.Close()
		return err
	}
	return nil
}

// startKeeper starts the process that kills all machines if this one cannot.
func (c *Cloud) startKeeper() (err error) {
	c.keeper = exec.Command(c.cfg.Agent, "keeper", c.mark)
	c.keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if c.keeps, err = c.keeper.StdinPipe(); err != nil {
		return err
	}
	if err := c.keeper.Start(); err != nil {
		return fmt.Errorf("start the keeper: %w", err)
	}
	return nil
}

// Close stops everything. What did not stop in time, or should have stopped before, is an error.
func (c *Cloud) Close() error {
	if c.base == nil || c.base.Err() != nil && c.keeper == nil {
		return nil
	}
	c.end()
	c.server.Close()
	c.late.Wait()
	c.provider.Close()
	var errs []error
	for instance, pids := range c.Processes() {
		errs = append(errs, fmt.Errorf("processes %v of machine %s were left", pids, instance))
	}
	_ = c.keeps.Close()
	if err := c.keeper.Wait(); err != nil {
		errs = append(errs, fmt.Errorf("keeper: %w", err))
	}
	c.keeper = nil
	return errors.Join(errs...)
}

// Failures are events that should not happen whatever was done to the machines: agents that ended
// by themselves, or crashed.
func (c *Cloud) Failures() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.failures)
}

func (c *Cloud) failed(what string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, fmt.Sprintf(what, args...))
}

// Processes returns all running processes, by machine.
func (c *Cloud) Processes() map[string][]int { return c.census.look(c.mark) }

// Existing returns all machines that exist, up or down, in order.
func (c *Cloud) Existing() []string {
	return c.those(func(m *machine) bool { return !m.over })
}

// Running returns the machines whose agent was started and not brought down, in order, including
// frozen ones.
func (c *Cloud) Running() []string {
	return c.those(func(m *machine) bool { return m.up && m.booted })
}

func (c *Cloud) those(are func(*machine) bool) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for id, m := range c.machines {
		if are(m) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Address returns a machine's address, "" if it never existed.
func (c *Cloud) Address(instance string) string {
	if m := c.machine(instance); m != nil {
		return m.address
	}
	return ""
}

// Zone returns a machine's zone, "" if it never existed.
func (c *Cloud) Zone(instance string) string {
	if m := c.machine(instance); m != nil {
		return m.zone
	}
	return ""
}

// PID returns the process of a machine's agent, 0 if there is none now.
func (c *Cloud) PID(instance string) int {
	m := c.machine(instance)
	if m == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.agent == nil {
		return 0
	}
	return m.agent.PID()
}

// Said returns the output of all agents of a machine.
func (c *Cloud) Said(instance string) string {
	text, err := os.ReadFile(c.logOf(instance))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (c *Cloud) logOf(instance string) string {
	return filepath.Join(cmp.Or(c.cfg.Logs, c.cfg.Dir), instance+".log")
}

// brokeDown reports whether an agent's output shows a crash.
func (c *Cloud) brokeDown(instance string) bool {
	said := []byte(c.Said(instance))
	return bytes.Contains(said, []byte("panic: ")) || bytes.Contains(said, []byte("fatal error: ")) ||
		bytes.Contains(said, []byte(`"bug: `))
}

func (c *Cloud) machine(instance string) *machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machines[instance]
}
