package swarm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
)

// startAgain is how long a machine waits before it restarts an agent that has ended.
const startAgain = 100 * time.Millisecond

// agents are the programs that machines run as their agents, for example of another release, in
// place of the agent in this process.
type agents struct {
	mu      sync.Mutex
	next    string                 // of machines that are created from now on; "": none
	program map[string]string      // by instance; "": none
	process map[string]*os.Process // running agents
}

// isProgram reports whether a machine's agent is a program. That never changes for a machine.
func (a *agents) isProgram(instance string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.program == nil {
		a.program, a.process = map[string]string{}, map[string]*os.Process{}
	}
	if _, known := a.program[instance]; !known {
		a.program[instance] = a.next
	}
	return a.program[instance] != ""
}

// start starts a machine's agent. It ends with the machine, and with this process.
func (a *agents) start(ctx context.Context, instance string, how func(*exec.Cmd)) (*exec.Cmd, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	cmd := exec.CommandContext(ctx, a.program[instance])
	how(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	a.process[instance] = cmd.Process
	return cmd, nil
}

func (a *agents) ended(instance string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.process, instance)
}

// run is one boot of a machine whose agent is a program: the program is started, and restarted when
// it ends, until the machine goes down.
func (s *swarm) run(ctx context.Context, boot fake.Boot, dir string) {
	runtime.LockOSThread() // its end kills the agent if this process is killed
	defer runtime.UnlockOSThread()
	instance, document := boot.Bootstrap.Instance, filepath.Join(dir, "bootstrap.json")
	text, err := json.Marshal(boot.Bootstrap)
	if err == nil {
		err = os.WriteFile(document, text, 0o600)
	}
	if err != nil {
		s.cfg.Logger.Error("machine has no bootstrap document", "instance", instance, "error", err)
		return
	}
	log, err := os.OpenFile(filepath.Join(dir, "agent.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.cfg.Logger.Error("agent has no log", "instance", instance, "error", err)
		return
	}
	defer log.Close()
	for ctx.Err() == nil {
		cmd, err := s.agents.start(ctx, instance, func(cmd *exec.Cmd) {
			cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
			cmd.Env = []string{
				provider.EnvBootstrap + "=" + document, provider.EnvBootID + "=" + boot.ID,
				"LEASEHOLD_FAREWELL=restart", "PATH=" + os.Getenv("PATH"),
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		})
		if err == nil {
			_ = cmd.Wait() // its log says how it ended
		} else {
			s.cfg.Logger.Error("agent does not start", "instance", instance, "error", err)
		}
		s.agents.ended(instance)
		select {
		case <-ctx.Done():
		case <-time.After(startAgain):
		}
	}
}

// RunAgents makes machines that are created from now on run a program as their agent:
// leasehold-agent, of any release. Without a program they have the agent in this process.
func (c *Control) RunAgents(program string) error {
	return c.client.Call("Control.RunAgents", program, new(bool))
}

// ExchangeAgents replaces the agents of machines that run a program, as an upgrade of their package
// does.
func (c *Control) ExchangeAgents(program string, instances ...string) error {
	return c.client.Call("Control.ExchangeAgents", append([]string{program}, instances...), new(bool))
}

func (v *service) RunAgents(program string, _ *bool) error {
	v.s.agents.mu.Lock()
	defer v.s.agents.mu.Unlock()
	v.s.agents.next = program
	return nil
}

func (v *service) ExchangeAgents(programAndInstances []string, _ *bool) error {
	a := &v.s.agents
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range programAndInstances[1:] {
		if a.program[id] == "" || a.process[id] == nil {
			return fmt.Errorf("exchange the agent of %s: no program runs there", id)
		}
		a.program[id] = programAndInstances[0]
		if err := a.process[id].Signal(syscall.SIGTERM); err != nil {
			return fmt.Errorf("exchange the agent of %s: %w", id, err)
		}
	}
	return nil
}
