package cloud

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/tests/faults/history"
)

// NoteHarm records the beginning or end of a machine's fault, caused by this package or another.
func (c *Cloud) NoteHarm(instance string, kind history.HarmKind, ends bool) {
	c.cfg.Log.Add(history.Event{Harm: &history.Harm{Instance: instance, Kind: kind, Ends: ends}})
}

// Crash crashes a machine: its provider lists it as crashed from then on. It returns when no
// process of it runs.
func (c *Cloud) Crash(instance string) error {
	m, err := c.living(instance)
	if err != nil {
		return fmt.Errorf("crash %s: %w", instance, err)
	}
	c.mu.Lock()
	ended := m.ended
	c.NoteHarm(instance, history.Crashed, false)
	c.mu.Unlock()
	fell := c.provider.Crash(instance, "the machine has crashed")
	c.mu.Lock()
	if m.up {
		m.inHurry()
	}
	c.mu.Unlock()
	if !fell {
		return fmt.Errorf("crash %s: it has gone down meanwhile", instance)
	}
	<-ended
	return nil
}

// living returns a running machine. It waits for one whose agent is just being started, because
// that agent may be visible already.
func (c *Cloud) living(instance string) (*machine, error) {
	m := c.machine(instance)
	if m == nil {
		return nil, errDown
	}
	m.act.Lock()
	defer m.act.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !m.up || !m.booted {
		return nil, errDown
	}
	return m, nil
}

var errDown = errors.New("there is no such machine up")

// Freeze stops all processes of a machine.
func (c *Cloud) Freeze(instance string) error {
	m, err := c.living(instance)
	if err != nil {
		return fmt.Errorf("freeze %s: %w", instance, err)
	}
	m.act.Lock()
	defer m.act.Unlock()
	c.mu.Lock()
	if !m.up || m.thawed != nil {
		c.mu.Unlock()
		return fmt.Errorf("freeze %s: it is down, or stands still already", instance)
	}
	m.thawed = make(chan struct{})
	c.NoteHarm(instance, history.Frozen, false)
	c.mu.Unlock()
	c.untilNone(m, func(pid int) bool { return !stands(pid) }, syscall.SIGSTOP)
	return nil
}

// Thaw resumes a frozen machine.
func (c *Cloud) Thaw(instance string) error {
	m, err := c.living(instance)
	if err != nil {
		return fmt.Errorf("thaw %s: %w", instance, err)
	}
	m.act.Lock()
	defer m.act.Unlock()
	c.mu.Lock()
	frozen := m.up && m.thawed != nil
	c.mu.Unlock()
	if !frozen {
		return fmt.Errorf("thaw %s: it does not stand still", instance)
	}
	c.untilNone(m, stands, syscall.SIGCONT)
	c.mu.Lock()
	defer c.mu.Unlock()
	close(m.thawed)
	m.thawed = nil
	c.NoteHarm(instance, history.Frozen, true)
	return nil
}

// KillAgent kills the agent alone. The machine restarts it after a while, in the same boot.
func (c *Cloud) KillAgent(instance string) error {
	m, err := c.living(instance)
	if err != nil {
		return fmt.Errorf("kill the agent of %s: %w", instance, err)
	}
	m.act.Lock()
	defer m.act.Unlock()
	c.mu.Lock()
	a := m.agent
	if a == nil {
		c.mu.Unlock()
		return fmt.Errorf("kill the agent of %s: %w", instance, errDown)
	}
	m.exited = true
	c.NoteHarm(instance, history.Exited, false)
	c.mu.Unlock()
	a.kill()
	return nil
}

// KillWorkload kills the workload. Its agent goes on. The fault ends with the next boot.
func (c *Cloud) KillWorkload(instance string) error {
	m, err := c.living(instance)
	if err != nil {
		return fmt.Errorf("kill the workload of %s: %w", instance, err)
	}
	pid, err := m.workload()
	if err != nil {
		return fmt.Errorf("kill the workload of %s: %w", instance, err)
	}
	if pid <= 1 || !c.signal(m, pid, 0) {
		return fmt.Errorf("kill the workload of %s: it does not run", instance)
	}
	c.mu.Lock()
	m.exited, m.idle = true, true
	c.NoteHarm(instance, history.Exited, false)
	c.mu.Unlock()
	c.signal(m, pid, syscall.SIGKILL)
	return nil
}

// Sicken makes a check of a machine's workload fail that runs `test ! -e sick`.
func (c *Cloud) Sicken(instance string) error {
	m, err := c.living(instance)
	if err != nil {
		return fmt.Errorf("sicken %s: %w", instance, err)
	}
	c.NoteHarm(instance, history.Sick, false)
	if err := os.WriteFile(filepath.Join(m.dir, "sick"), nil, 0o600); err != nil {
		c.NoteHarm(instance, history.Sick, true) // it stays healthy, for example because its disk is full
		return fmt.Errorf("sicken %s: %w", instance, err)
	}
	return nil
}

// Cure ends that. It is no error if the machine is healthy already: the file may have been removed
// with the others.
func (c *Cloud) Cure(instance string) error {
	m := c.machine(instance)
	if m == nil {
		return fmt.Errorf("cure %s: %w", instance, errDown)
	}
	if err := os.Remove(filepath.Join(m.dir, "sick")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cure %s: %w", instance, err)
	}
	c.NoteHarm(instance, history.Sick, true)
	return nil
}

// SetClock sets the wall clock of a machine wrong by so much, also for agents that it starts later.
// That is not recorded as a fault.
func (c *Cloud) SetClock(instance string, by time.Duration) error {
	m, err := c.living(instance)
	if err != nil {
		return fmt.Errorf("set the clock of %s: %w", instance, err)
	}
	m.act.Lock()
	defer m.act.Unlock()
	c.mu.Lock()
	m.clock = by
	a := m.agent
	c.mu.Unlock()
	if a == nil {
		return nil
	}
	select {
	case <-a.Ended():
		return nil // the next agent gets it
	default:
	}
	if err := a.setClock(by); err != nil {
		return fmt.Errorf("set the clock of %s: %w", instance, err)
	}
	return nil
}
