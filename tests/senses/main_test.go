package senses

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// agents is how many there are in the great scenarios.
var agents = flag.Int("agents", usual, "how many agents the great scenarios have; all of those about many, if it is more than usual")

// atOnce is how many scenarios run at the same time: nearly all of their time they wait. When many began at once on a slow machine, agents would
// starve for as long as a lease lasts.
const atOnce = "5"

// built is the directory with the programs.
var built string

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", atOnce); err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "leasehold-senses-bin-")
	if err != nil {
		panic(err)
	}
	built = dir
	code := 1
	if err := errors.Join(build("leasehold", "../../cmd/leasehold"), build("cast", "./cast")); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// build makes a program without the race detector, even if these tests have it: it is the programs that are tested, as they are
// shipped, and a thousand agents have to fit.
func build(name, from string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", bin(name)}, flags...)
	cmd := exec.Command("go", append(args, from)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return nil
}

// bin is the path of a program.
func bin(name string) string { return filepath.Join(built, name) }

// wrongClock builds, once, a cast whose wall clock can be set. It is that of the standard library with one addition to time.Now.
var wrongClock = sync.OnceValue(func() error {
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
		return errors.New("Go's time.Now is not as it was: see what it has become, and where the wall clock can be moved in it")
	}
	source = reading.ReplaceAll(source, []byte("$0\tsec += wallOffset.Load()\n"))
	source = []byte(strings.Replace(string(source), "\t_ \"unsafe\"", "\t\"sync/atomic\"\n\t_ \"unsafe\"", 1))
	source = append(source, `
var wallOffset atomic.Int64

//go:linkname setWallOffset
func setWallOffset(seconds int64) { wallOffset.Store(seconds) }
`...)
	changed, overlay := filepath.Join(built, "time.go"), filepath.Join(built, "overlay.json")
	err = errors.Join(
		os.WriteFile(changed, source, 0o600),
		os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace": {%q: %q}}`, original, changed), 0o600),
	)
	if err != nil {
		return err
	}
	return build("cast-wrong-clock", "./cast", "-tags", "wrongclock", "-overlay", overlay)
})
