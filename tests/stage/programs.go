package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/leasehold/leasehold/tests/programs"
)

// Programs are the programs of a stage, built once for many.
type Programs struct {
	dir          string
	replacements []Replacement
	wrongClock   func() error // builds once a cast whose wall clock can be set
}

// Replacement replaces the text of a source file before programs are built.
type Replacement struct {
	File string // absolute path
	Text []byte
}

// Build builds them, with replacements of source if there are any: that is how a deliberate fault
// gets into the product. The caller must remove them.
func Build(replacements ...Replacement) (*Programs, error) {
	dir, err := os.MkdirTemp("", "leasehold-stage-bin-")
	if err != nil {
		return nil, err
	}
	p := &Programs{dir: dir, replacements: replacements}
	p.wrongClock = sync.OnceValue(p.buildWrongClock)
	if len(replacements) == 0 {
		err = programs.Build(dir, programs.Leasehold, programs.Cast)
	} else {
		err = errors.Join(p.build("leasehold", programs.Leasehold), p.build("cast", programs.Cast))
	}
	if err != nil {
		return nil, errors.Join(err, p.Remove())
	}
	return p, nil
}

// BuildAll builds into a directory what stages without replacements need, for many packages of
// tests.
func BuildAll(dir string) error {
	p := &Programs{dir: dir}
	return errors.Join(programs.Build(dir, programs.Leasehold, programs.Cast), p.buildWrongClock())
}

// Built are programs that another process has built, and will remove.
func Built(dir string) *Programs {
	p := &Programs{dir: dir}
	p.wrongClock = func() error {
		if _, err := os.Stat(p.Path(wrongClock)); err != nil {
			return fmt.Errorf("the clock of these programs cannot be set: %w", err)
		}
		return nil
	}
	return p
}

// wrongClock is the name of the cast whose wall clock can be set.
const wrongClock = "cast-wrong-clock"

// Make builds one more program into the same directory.
func (p *Programs) Make(name, from string, flags ...string) error {
	return p.build(name, from, flags...)
}

// Remove removes the programs.
func (p *Programs) Remove() error { return os.RemoveAll(p.dir) }

// Dir is their directory.
func (p *Programs) Dir() string { return p.dir }

// Path returns the path of a program.
func (p *Programs) Path(name string) string { return filepath.Join(p.dir, name) }

// WrongClock returns a cast whose wall clock can be set, built on the first call.
func (p *Programs) WrongClock() (path string, err error) {
	return p.Path(wrongClock), p.wrongClock()
}

// build builds a program without the race detector, even if these tests have it: the programs are
// tested as they are shipped, and a thousand agents have to fit.
func (p *Programs) build(name, from string, flags ...string) error {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-o", p.Path(name)}
	if len(p.replacements) > 0 {
		overlay, err := p.overlay(name, p.replacements)
		if err != nil {
			return err
		}
		args = append(args, "-overlay", overlay)
	}
	args = append(args, flags...)
	cmd := exec.Command("go", append(args, from)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return nil
}

// overlay writes the files for go build -overlay.
func (p *Programs) overlay(program string, replacements []Replacement) (string, error) {
	dir := p.Path(program + ".overlay")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	replace := make(map[string]string, len(replacements))
	for i, r := range replacements {
		if _, twice := replace[r.File]; twice {
			return "", fmt.Errorf("build %s: %s is replaced twice", program, r.File)
		}
		replace[r.File] = filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(r.File)))
		if err := os.WriteFile(replace[r.File], r.Text, 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, text, 0o600)
}

// buildWrongClock builds a cast whose wall clock can be set, and whose connections can come from an
// address of its own. It is the cast with two functions of its own in places that Go's runtime and
// package net keep for their own use, which the linker refuses unless it is told not to.
func (p *Programs) buildWrongClock() error {
	if len(p.replacements) == 0 {
		if there, err := programs.Link(p.Path(wrongClock), wrongClock); there || err != nil {
			return err
		}
	}
	return p.build(wrongClock, programs.Cast, "-tags", "wrongclock", "-ldflags", "-checklinkname=0")
}
