package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// said is the output of a program so far.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// program is a started program, in a process group of its own.
type program struct {
	name           string
	args           []string
	stdout, stderr said
	cmd            *exec.Cmd
	ended          chan struct{} // closed when it has ended
	code           int           // its exit code, -1 if a signal ended it; once ended is closed
}

// launch starts a program. The caller must make sure that it ends.
func launch(name string, cmd *exec.Cmd) (*program, error) {
	p := &program{name: name, args: cmd.Args, cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.stdout, &p.stderr
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.WaitDelay = 10 * time.Second // for children that inherited its output
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	entry := fmt.Sprintf("program %d\n", cmd.Process.Pid)
	fmt.Fprint(undertaker, entry)
	go func() {
		_ = cmd.Wait() // the exit code says everything
		p.code = cmd.ProcessState.ExitCode()
		fmt.Fprint(undertaker, "ended "+entry)
		close(p.ended)
	}()
	return p, nil
}

// signal sends a signal to the program alone, not to its group. It is no error if the program has
// ended.
func (p *program) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

// kill kills the program and its whole group, and waits for that.
func (p *program) kill() {
	select {
	case <-p.ended:
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.ended
	}
}

func (p *program) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// keep writes the program's output to a file.
func (p *program) keep(dir string, number int) error {
	head := "$ " + strings.Join(p.args, " ") + "\n"
	file := filepath.Join(dir, fmt.Sprintf("%02d-%s", number, p.name))
	if err := os.WriteFile(file+".stdout", []byte(head+p.stdout.String()), 0o600); err != nil {
		return err
	}
	return os.WriteFile(file+".stderr", []byte(head+p.stderr.String()), 0o600)
}
