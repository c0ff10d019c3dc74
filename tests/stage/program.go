package stage

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Program is a process of a scenario. Its standard input is a pipe from us: when we end, however
// that comes, it ends too.
type Program struct {
	name   string
	cmd    *exec.Cmd
	orders io.WriteCloser
	log    string        // the file with what it says
	ended  chan struct{} // closed when it has ended
}

// start starts a program with its output in a log file.
func (s *Stage) start(name, path string, args ...string) *Program {
	s.T.Helper()
	p := &Program{name: name, log: filepath.Join(s.Dir, name+".log"), ended: make(chan struct{})}
	file, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.T.Fatal(err)
	}
	defer file.Close() // the program has its own descriptor
	p.cmd = exec.Command(path, args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = s.Dir, file, file
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Dir, "TMPDIR=" + s.Dir, "GOTRACEBACK=all"}
	if s.plan.Narrow {
		p.cmd.Env = append(p.cmd.Env, "GOMAXPROCS=1")
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must reach only the test
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		s.T.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		s.T.Fatalf("start %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // its log says how it ended
		close(p.ended)
	}()
	s.programs = append(s.programs, p)
	return p
}

// cast starts a part of the cast.
func (s *Stage) cast(name string, args ...string) *Program {
	s.T.Helper()
	return s.start(name, s.castProgram(), args...)
}

func (s *Stage) castProgram() string {
	if s.plan.WrongClocks {
		return s.plan.Programs.Path("cast-wrong-clock")
	}
	return s.plan.Programs.Path("cast")
}

// AwaitReady waits until a program has reported that it is ready.
func (s *Stage) AwaitReady(p *Program) {
	s.T.Helper()
	s.Await(p.name+" being ready", func() bool {
		if p.HasEnded() {
			s.T.Fatalf("%s ended: %s", p.name, p.Said())
		}
		return strings.Contains(p.Said(), "ready\n")
	})
}

// Said returns its output so far.
func (p *Program) Said() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// signal sends a signal. It is no error if the program has ended.
func (p *Program) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

// Freeze stops a program with SIGSTOP.
func (p *Program) Freeze() { p.signal(syscall.SIGSTOP) }

// Thaw resumes it.
func (p *Program) Thaw() { p.signal(syscall.SIGCONT) }

// Terminate sends SIGTERM.
func (p *Program) Terminate() { p.signal(syscall.SIGTERM) }

// Ended is closed when the program has ended.
func (p *Program) Ended() <-chan struct{} { return p.ended }

// PID is its process ID.
func (p *Program) PID() int { return p.cmd.Process.Pid }

// Kill kills a program and waits for its end.
func (p *Program) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// HasEnded reports whether it has ended.
func (p *Program) HasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// SetClock sets its wall clock wrong by so much.
func (p *Program) SetClock(by time.Duration) error {
	_, err := fmt.Fprintf(p.orders, "clock %d\n", int64(by/time.Second))
	return err
}
