package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/leasehold/leasehold/tests/harness"
)

// program is a started program.
type program struct {
	*harness.Process
	stdout, stderr harness.Output
	looked         bool // after its end nothing of it was left
}

// groupIsGone reports whether all processes of a program that has ended are gone.
func (p *program) groupIsGone() bool { return errors.Is(syscall.Kill(-p.PID(), 0), syscall.ESRCH) }

// launch starts a program. The caller must make sure that it ends.
func launch(name string, cmd *exec.Cmd) (*program, error) {
	p := &program{}
	cmd.Stdout, cmd.Stderr = &p.stdout, &p.stderr
	entry := make(chan string, 1)
	var err error
	p.Process, err = harness.Start(name, cmd, func() { fmt.Fprint(undertaker, "ended "+<-entry) })
	if err != nil {
		return nil, err
	}
	started := fmt.Sprintf("program %d\n", p.PID())
	fmt.Fprint(undertaker, started)
	entry <- started
	return p, nil
}

// keep writes the program's output to a file.
func (p *program) keep(dir string, number int) error {
	head := "$ " + strings.Join(p.Args(), " ") + "\n"
	file := filepath.Join(dir, fmt.Sprintf("%02d-%s", number, p.Name))
	if err := os.WriteFile(file+".stdout", []byte(head+p.stdout.String()), 0o600); err != nil {
		return err
	}
	return os.WriteFile(file+".stderr", []byte(head+p.stderr.String()), 0o600)
}
