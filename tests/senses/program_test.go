package senses

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

// program is a process of a scenario. Its standard input is a pipe from us: when we end, however that comes, it ends too.
type program struct {
	name   string
	cmd    *exec.Cmd
	orders io.WriteCloser
	log    string        // the file with what it says
	ended  chan struct{} // closed when it has
}

// start starts a program that writes what it says into a file.
func (s *stage) start(name, path string, args ...string) *program {
	s.t.Helper()
	p := &program{name: name, log: filepath.Join(s.dir, name+".log"), ended: make(chan struct{})}
	file, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close() // the program has it by then
	p.cmd = exec.Command(path, args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = s.dir, file, file
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + s.dir, "GOTRACEBACK=all"}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for us alone
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		s.t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in its log, and in what comes of it
		close(p.ended)
	}()
	s.programs = append(s.programs, p)
	return p
}

// cast starts a part of the cast.
func (s *stage) cast(name string, args ...string) *program {
	s.t.Helper()
	path := bin("cast")
	if s.plan.wrongClocks {
		path = bin("cast-wrong-clock")
	}
	return s.start(name, path, args...)
}

// says waits until a program has said that it is ready.
func (s *stage) awaitReady(p *program) {
	s.t.Helper()
	s.await(p.name+" being ready", func() bool {
		if p.hasEnded() {
			s.t.Fatalf("%s ended: %s", p.name, p.said())
		}
		return strings.Contains(p.said(), "ready\n")
	})
}

func (p *program) said() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// signal sends a signal. A program that has ended is no error.
func (p *program) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

// freeze and thaw stop a program and have it go on.
func (p *program) freeze() { p.signal(syscall.SIGSTOP) }
func (p *program) thaw()   { p.signal(syscall.SIGCONT) }

// kill ends a program at once and waits for that.
func (p *program) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

func (p *program) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// setClock makes its wall clock wrong by so much.
func (p *program) setClock(by time.Duration) error {
	_, err := fmt.Fprintf(p.orders, "clock %d\n", int64(by/time.Second))
	return err
}
