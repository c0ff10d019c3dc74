package parts

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Spec describes the part to start.
type Spec struct {
	Name string   // of the part, for messages and its log file
	Args []string // the program's arguments
	Dir  string   // directory for its log; it must exist

	// Program is the program to start; "": this program, even if its file was replaced since.
	Program string
	// Env is added to the environment.
	Env []string
}

// Part is a running process.
type Part struct {
	Ready // its first line

	name  string
	log   string
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
	err   error // valid once ended is closed
}

// stopLimit is how long a part may take to stop in order.
const stopLimit = 10 * time.Second

// Start starts a part and returns once it is ready. The context bounds the start alone.
func Start(ctx context.Context, spec Spec) (*Part, error) {
	program := spec.Program
	if program == "" {
		program = "/proc/self/exe"
	}
	p := &Part{name: spec.Name, log: filepath.Join(spec.Dir, spec.Name+".log"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	p.cmd = exec.Command(program, spec.Args...)
	p.cmd.Env = append(os.Environ(), spec.Env...)
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	said := make(chan []byte, 1)
	go p.listen(stdout, said)
	if err := p.await(ctx, said); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// listen reads the part's first line, and waits for its end.
func (p *Part) listen(stdout io.Reader, said chan<- []byte) {
	defer close(p.ended)
	lines := bufio.NewReader(stdout)
	line, _ := lines.ReadBytes('\n') // after an early end the line is empty
	said <- line
	_, _ = io.Copy(io.Discard, lines)
	p.err = p.cmd.Wait()
}

func (p *Part) await(ctx context.Context, said <-chan []byte) error {
	var line []byte
	select {
	case line = <-said:
	case <-ctx.Done():
		return fmt.Errorf("start %s: not ready in time: %w: see %s", p.name, context.Cause(ctx), p.log)
	}
	if err := json.Unmarshal(line, &p.Ready); err != nil {
		return fmt.Errorf("start %s: it ended before it was ready%s: see %s", p.name, p.lastWords(), p.log)
	}
	if p.Failed != "" {
		return fmt.Errorf("start %s: %s", p.name, p.Failed)
	}
	return nil
}

// lastWords returns the last line of the log, or "".
func (p *Part) lastWords() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return ": " + last
	}
	return ""
}

// PID returns its process ID.
func (p *Part) PID() int { return p.cmd.Process.Pid }

// Log returns the name of its log file.
func (p *Part) Log() string { return p.log }

// Ended is closed when the process is gone.
func (p *Part) Ended() <-chan struct{} { return p.ended }

// Pause stops the process with SIGSTOP, as on a machine that stalls.
func (p *Part) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume resumes a paused part.
func (p *Part) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Part) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// Kill kills the process, and returns when it is gone.
func (p *Part) Kill() error {
	err := p.cmd.Process.Kill()
	<-p.ended
	_ = p.stdin.Close() // nothing reads it any more
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Stop stops the process in order, paused or not, and returns when it is gone.
func (p *Part) Stop() error {
	_ = p.stdin.Close() // tells the child to stop
	_ = p.Resume()      // it may have ended already
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	select {
	case <-p.ended:
	case <-limit.C:
		return errors.Join(fmt.Errorf("stop %s: it did not end within %s: see %s", p.name, stopLimit, p.log), p.Kill())
	}
	if p.err != nil {
		return fmt.Errorf("%s ended: %w: see %s", p.name, p.err, p.log)
	}
	return nil
}
