package harness

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Process is a started program.
type Process struct {
	Name  string
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start starts a program. after is called when it has ended, before Ended is closed; it may be nil.
func Start(name string, cmd *exec.Cmd, after func()) (*Process, error) {
	p := &Process{Name: name, cmd: cmd, ended: make(chan struct{})}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.WaitDelay = 10 * time.Second // for children that inherited its output
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // State tells
		if after != nil {
			after()
		}
	}()
	return p, nil
}

// StartLogged is Start for a program whose output is appended to a file.
func StartLogged(name, log string, cmd *exec.Cmd) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer file.Close() // the program has its own descriptor
	cmd.Stdout, cmd.Stderr = file, file
	return Start(name, cmd, nil)
}

// PID is its process ID, and the ID of its group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Args are the program and its arguments.
func (p *Process) Args() []string { return p.cmd.Args }

// Ended is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// HasEnded reports whether the program has ended.
func (p *Process) HasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// State waits for the end, and returns how the program ended.
func (p *Process) State() *os.ProcessState {
	<-p.ended
	return p.cmd.ProcessState
}

// ExitCode is State's exit code: -1 if a signal ended the program.
func (p *Process) ExitCode() int { return p.State().ExitCode() }

// Signal sends a signal to the program, not to its group. It is no error if the program has ended.
func (p *Process) Signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

// Freeze stops the program with SIGSTOP.
func (p *Process) Freeze() { p.Signal(syscall.SIGSTOP) }

// Thaw resumes it.
func (p *Process) Thaw() { p.Signal(syscall.SIGCONT) }

// Terminate sends SIGTERM.
func (p *Process) Terminate() { p.Signal(syscall.SIGTERM) }

// Kill kills the program, and waits for its end.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.ended
}

// KillGroup kills the program and its group, and waits for its end. It does nothing after that.
func (p *Process) KillGroup() {
	if !p.HasEnded() {
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
		<-p.ended
	}
}
