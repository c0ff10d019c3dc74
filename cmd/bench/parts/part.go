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

// Spec says what is started.
type Spec struct {
	Name string   // of the part, in messages and of its log
	Args []string // of the program
	Dir  string   // where its log goes; it must exist

	// Program is what is started; "": this program, also if its file was replaced meanwhile.
	Program string
	// Env is added to the environment.
	Env []string
}

// Part is a process that serves.
type Part struct {
	Ready // what it said

	name  string
	log   string
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
	err   error // valid once ended is closed
}

// stopLimit is how long a part may take to end in order.
const stopLimit = 10 * time.Second

// Start starts a part and returns once it has said that it is ready. The context bounds starting
// alone.
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
	defer func() { _ = log.Close() }() // the child has it
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

// listen takes the first line that the part says, and waits for its end.
func (p *Part) listen(stdout io.Reader, said chan<- []byte) {
	defer close(p.ended)
	lines := bufio.NewReader(stdout)
	line, _ := lines.ReadBytes('\n') // an early end shows as a line that is none
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

// lastWords is the last line of the log, if there is one.
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

// PID is its process.
func (p *Part) PID() int { return p.cmd.Process.Pid }

// Log is the file in which it logs.
func (p *Part) Log() string { return p.log }

// Ended is closed when the process is gone.
func (p *Part) Ended() <-chan struct{} { return p.ended }

// Pause makes it stand still, as a machine that stalls does.
func (p *Part) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (p *Part) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Part) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// Kill ends it at once, and returns when it is gone.
func (p *Part) Kill() error {
	err := p.cmd.Process.Kill()
	<-p.ended
	_ = p.stdin.Close() // it is not read
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Stop ends it in order, paused or not, and returns when it is gone.
func (p *Part) Stop() error {
	_ = p.stdin.Close() // that is the order to end
	_ = p.Resume()      // it may have ended
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
