package cloud

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/tests/faults/history"
	"github.com/leasehold/leasehold/tests/harness"
	"github.com/leasehold/leasehold/tests/machines"
)

// agent is the process of a machine's agent. Its standard input is a pipe from the test, so it ends
// when the test ends.
type agent struct {
	*harness.Process
	orders io.WriteCloser
	killed atomic.Bool // by this package
}

// startAgent starts the agent of a machine, once the machine is not frozen.
func (c *Cloud) startAgent(ctx context.Context, m *machine) (*agent, error) {
	m.act.Lock()
	defer m.act.Unlock()
	for {
		c.mu.Lock()
		thawed := m.thawed
		c.mu.Unlock()
		if thawed == nil {
			break
		}
		m.act.Unlock()
		select {
		case <-ctx.Done():
		case <-thawed:
		}
		m.act.Lock()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a, err := c.fork(m)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m.agent = a
	if !m.booted {
		m.booted, m.idle = true, false
		c.note(m, history.Booted, "")
	}
	if m.exited && !m.idle {
		m.exited = false
		c.NoteHarm(m.id, history.Exited, true)
	}
	if m.clock != 0 {
		_ = a.setClock(m.clock) // if it has ended already, that is noticed
	}
	return a, nil
}

func (c *Cloud) fork(m *machine) (*agent, error) {
	if err := os.MkdirAll(filepath.Join(m.dir, Managed), 0o700); err != nil {
		return nil, err
	}
	document := filepath.Join(m.dir, "bootstrap.json")
	b := m.boot.Bootstrap
	b.Zone = m.zone
	b.Facts = map[string]string{"host": m.address, "address": m.address, "dir": m.dir}
	data, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(document, data, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(c.cfg.Agent, "agent")
	cmd.Dir = m.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + m.dir, "TMPDIR=" + m.dir, "GOTRACEBACK=all",
		"GOMAXPROCS=1", // machines are small
		provider.EnvBootstrap + "=" + document,
		provider.EnvBootID + "=" + m.boot.ID,
		provider.EnvMachine + "=" + b.Shard + "/" + m.id,
		"LEASEHOLD_STATE_DIR=" + m.dir,
		"LEASEHOLD_SOURCE=" + m.address,
		"LEASEHOLD_FILES_ROOT=" + filepath.Join(m.dir, Managed),
		"LEASEHOLD_FAREWELL=shutdown",
		machines.EnvTest + "=" + c.mark + "/" + m.id,
	}
	a := &agent{}
	if a.orders, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	a.Process, err = harness.StartLogged("agent of "+m.id, c.logOf(m.id), cmd)
	return a, err
}

// terminate sends SIGTERM to an agent.
func (a *agent) terminate() {
	a.killed.Store(true)
	a.Terminate()
}

// kill kills an agent.
func (a *agent) kill() {
	a.killed.Store(true)
	a.Kill()
}

func (a *agent) setClock(by time.Duration) error {
	_, err := fmt.Fprintf(a.orders, "clock %d\n", int64(by/time.Second))
	return err
}
