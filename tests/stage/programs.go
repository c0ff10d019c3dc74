package stage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// The packages of the programs.
const (
	leaseholdPackage = "github.com/leasehold/leasehold/cmd/leasehold"
	castPackage      = "github.com/leasehold/leasehold/tests/stage/cast"
)

// Programs are those of a stage, built once for many.
type Programs struct {
	dir        string
	wrongClock func() error // builds, once, a cast whose wall clock can be set
}

// Build builds them. They are to be removed.
func Build() (*Programs, error) {
	dir, err := os.MkdirTemp("", "leasehold-stage-bin-")
	if err != nil {
		return nil, err
	}
	p := &Programs{dir: dir}
	p.wrongClock = sync.OnceValue(p.buildWrongClock)
	if err := errors.Join(p.build("leasehold", leaseholdPackage), p.build("cast", castPackage)); err != nil {
		return nil, errors.Join(err, p.Remove())
	}
	return p, nil
}

// Remove removes them.
func (p *Programs) Remove() error { return os.RemoveAll(p.dir) }

// Path is where a program is.
func (p *Programs) Path(name string) string { return filepath.Join(p.dir, name) }

// build makes a program without the race detector, even if these tests have it: it is the programs that are tested, as they are
// shipped, and a thousand agents have to fit.
func (p *Programs) build(name, from string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", p.Path(name)}, flags...)
	cmd := exec.Command("go", append(args, from)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return nil
}

// buildWrongClock builds a cast whose wall clock can be set. It is that of the standard library with one addition to time.Now.
func (p *Programs) buildWrongClock() error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find Go: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return fmt.Errorf("read Go's clock: %w", err)
	}
	reading := regexp.MustCompile(`(?m)^func Now\(\) Time \{\n\tsec, nsec, mono := [a-zA-Z]+\(\)\n`)
	if len(reading.FindAll(source, -1)) != 1 {
		return errors.New("time.Now of the standard library is not as it was: see what it has become, and where the wall clock can be moved in it")
	}
	source = reading.ReplaceAll(source, []byte("$0\tsec += wallOffset.Load()\n"))
	source = []byte(strings.Replace(string(source), "\t_ \"unsafe\"", "\t\"sync/atomic\"\n\t_ \"unsafe\"", 1))
	source = append(source, `
var wallOffset atomic.Int64

//go:linkname setWallOffset
func setWallOffset(seconds int64) { wallOffset.Store(seconds) }
`...)
	changed, overlay := p.Path("time.go"), p.Path("overlay.json")
	err = errors.Join(
		os.WriteFile(changed, source, 0o600),
		os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace": {%q: %q}}`, original, changed), 0o600),
	)
	if err != nil {
		return err
	}
	return p.build("cast-wrong-clock", castPackage, "-tags", "wrongclock", "-overlay", overlay)
}
