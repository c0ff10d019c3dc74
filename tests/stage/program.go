package stage

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/leasehold/leasehold/tests/harness"
)

// Program is a process of a scenario. Its standard input is a pipe from the test, so it ends when
// the test ends in any way.
type Program struct {
	*harness.Process
	orders io.WriteCloser
	log    string // the file with its output
}

// start starts a program with its output in a log file.
func (s *Stage) start(name, path string, args ...string) *Program {
	s.T.Helper()
	p, err := s.startProgram(name, path, args...)
	if err != nil {
		s.T.Fatal(err)
	}
	return p
}

func (s *Stage) startProgram(name, path string, args ...string) (*Program, error) {
	p := &Program{log: filepath.Join(s.Dir, name+".log")}
	cmd := exec.Command(path, args...)
	cmd.Dir = s.Dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Dir, "TMPDIR=" + s.Dir, "GOTRACEBACK=all"}
	if s.plan.Narrow {
		cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	}
	var err error
	if p.orders, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.Process, err = harness.StartLogged(name, p.log, cmd); err != nil {
		return nil, err
	}
	s.starting.Lock()
	defer s.starting.Unlock()
	s.programs = append(s.programs, p)
	return p, nil
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
	s.Await(p.Name+" being ready", func() bool {
		if p.HasEnded() {
			s.T.Fatalf("%s ended: %s", p.Name, p.Said())
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

// SetClock sets its wall clock wrong by so much.
func (p *Program) SetClock(by time.Duration) error {
	_, err := fmt.Fprintf(p.orders, "clock %d\n", int64(by/time.Second))
	return err
}
