package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
		err = errors.Join(p.build("leasehold", programs.Leasehold, nil), p.build("cast", programs.Cast, nil))
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
	return p.build(name, from, nil, flags...)
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
// tested as they are shipped, and a thousand agents have to fit. It may replace more source than
// the others.
func (p *Programs) build(name, from string, more []Replacement, flags ...string) error {
	overlay, err := p.overlay(name, slices.Concat(p.replacements, more))
	if err != nil {
		return err
	}
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-overlay", overlay, "-o", p.Path(name)}, flags...)
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
// address of its own. It uses the standard library with one addition to time.Now, and one to net's
// Dialer.
func (p *Programs) buildWrongClock() error {
	if len(p.replacements) == 0 {
		if there, err := programs.Link(p.Path(wrongClock), wrongClock); there || err != nil {
			return err
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find Go: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src")
	clock, err := insert(filepath.Join(source, "time", "time.go"), `(?m)^func Now\(\) Time \{\n\tsec, nsec, mono := [a-zA-Z]+\(\)\n`, "\tsec += wallOffset.Load()\n", `
var wallOffset atomic.Int64

//go:linkname setWallOffset
func setWallOffset(seconds int64) { wallOffset.Store(seconds) }
`)
	if err != nil {
		return err
	}
	dial, err := insert(filepath.Join(source, "net", "dial.go"), `(?m)^func \(d \*Dialer\) DialContext\(ctx context.Context, network, address string\) \(Conn, error\) \{\n`, `
	if from := dialSource.Load(); from != nil && d.LocalAddr == nil && len(network) >= 3 && network[:3] == "tcp" {
		own := *d
		own.LocalAddr = from
		d = &own
	}
`, `
var dialSource atomic.Pointer[TCPAddr]

//go:linkname setDialSource
func setDialSource(ip IP) { dialSource.Store(&TCPAddr{IP: ip}) }
`)
	if err != nil {
		return err
	}
	return p.build(wrongClock, programs.Cast, []Replacement{clock, dial}, "-tags", "wrongclock")
}

// insert adds statements at the only place of a standard library file that matches, and
// declarations, which use sync/atomic and linkname, at its end.
func insert(file, place, statements, declarations string) (Replacement, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Replacement{}, fmt.Errorf("read Go's own source: %w", err)
	}
	at := regexp.MustCompile(place).FindAllIndex(text, -1)
	if len(at) != 1 {
		return Replacement{},
			fmt.Errorf("%s of the standard library has changed: adapt the pattern to it:%s", file, statements)
	}
	changed := slices.Concat(text[:at[0][1]], []byte(statements), text[at[0][1]:], []byte(declarations))
	imports := "import (\n\t\"sync/atomic\"\n"
	if !strings.Contains(string(text), "\t_ \"unsafe\"") {
		imports += "\t_ \"unsafe\" // for linkname\n"
	}
	return Replacement{File: file, Text: []byte(strings.Replace(string(changed), "import (\n", imports, 1))}, nil
}
