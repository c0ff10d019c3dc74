package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// outcome is what became of one mutant.
type outcome int

const (
	caught outcome = iota
	timedOut
	survived
	unreached // no test executes its place
)

func (o outcome) String() string {
	return [...]string{"caught", "timed out", "survived", "not reached"}[o]
}

// lived says whether the tests passed with the mutant.
func (o outcome) lived() bool { return o == survived || o == unreached }

// binary is the package's test binary with all mutants in it.
type binary struct {
	dir     string // of the package: tests run there
	temp    string
	path    string
	flags   []string
	tests   []test
	failing []string // tests that fail in this binary without any mutant: they count for nothing
}

// test is one test function of the package.
type test struct {
	name    string
	cost    time.Duration // of a processor
	reaches map[int]bool
}

// build compiles the tests of a package together with all its mutants.
func build(src *source, changed map[string][]byte, temp string) (*binary, error) {
	replace := map[string]string{}
	add := func(name string, text []byte) error {
		to := filepath.Join(temp, name)
		replace[filepath.Join(src.dir, name)] = to
		return os.WriteFile(to, text, 0o600)
	}
	for name, text := range changed {
		if err := add(name, text); err != nil {
			return nil, err
		}
	}
	if err := add(switchFile, []byte("package "+src.name+"\n"+switchSource)); err != nil {
		return nil, err
	}
	overlay := filepath.Join(temp, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return nil, err
	}
	b := &binary{dir: src.dir, temp: temp, path: filepath.Join(temp, "mutants.test")}
	compile := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", b.path, ".")
	compile.Dir = src.dir
	if out, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the mutants: %w\n%s", err, out)
	}
	return b, nil
}

// survey runs each test by itself without a mutant: what it costs, which places it reaches, whether it passes.
func (b *binary) survey(progress func(done, all int, name string)) error {
	// Properties draw the same examples in each run, and leave no files.
	rapid := []string{"-rapid.seed=1", "-rapid.nofailfile"}
	list := exec.Command(b.path, append([]string{"-test.list=^(Test|Fuzz|Example)"}, rapid...)...)
	list.Dir = b.dir
	out, err := list.Output()
	if err == nil {
		b.flags = rapid
	} else {
		list = exec.Command(b.path, "-test.list=^(Test|Fuzz|Example)")
		list.Dir = b.dir
		if out, err = list.Output(); err != nil {
			return fmt.Errorf("list the tests: %w", err)
		}
	}
	names := strings.Fields(string(out))
	trace := filepath.Join(b.temp, "trace")
	for i, name := range names {
		progress(i, len(names), name)
		_ = os.Remove(trace)
		result, cost := b.run(name, 0, trace, time.Hour)
		if result.lived() {
			reached, err := os.ReadFile(trace)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			t := test{name: name, cost: cost, reaches: map[int]bool{}}
			for _, line := range strings.Fields(string(reached)) {
				id, err := strconv.Atoi(line)
				if err != nil {
					return fmt.Errorf("read what %s reaches: %w", name, err)
				}
				t.reaches[id] = true
			}
			b.tests = append(b.tests, t)
		} else {
			b.failing = append(b.failing, name)
		}
	}
	slices.SortStableFunc(b.tests, func(x, y test) int { return cmp.Compare(x.cost, y.cost) })
	return nil
}

// try runs the tests that reach a mutant, the cheap ones first.
func (b *binary) try(m mutant) outcome {
	var batches [][]test
	var cost time.Duration
	for _, t := range b.tests {
		if !t.reaches[m.id] {
			continue
		}
		if len(batches) == 0 || cost > time.Second {
			batches, cost = append(batches, nil), 0
		}
		cost += t.cost
		batches[len(batches)-1] = append(batches[len(batches)-1], t)
	}
	if len(batches) == 0 {
		return unreached
	}
	for _, batch := range batches {
		var names []string
		var cost time.Duration
		for _, t := range batch {
			names, cost = append(names, t.name), cost+t.cost
		}
		// What a mutant may take is measured in processor time, so that a busy machine makes no difference.
		if result, _ := b.run(strings.Join(names, "|"), m.id, "", 3*time.Second+5*cost); !result.lived() {
			return result
		}
	}
	return survived
}

// run runs tests with a mutant, or with none (0). The limit is one of processor time; by the clock it may take six
// times as long, which ends what waits for ever.
func (b *binary) run(names string, id int, trace string, limit time.Duration) (outcome, time.Duration) {
	args := append([]string{"-test.run=^(" + names + ")$", "-test.failfast", "-test.timeout=" + (6 * limit).String()}, b.flags...)
	// The limits keep a mutant that never ends from taking the machine with it: CPU seconds, and 6 GiB of addresses.
	script := fmt.Sprintf(`ulimit -t %d; ulimit -v 6291456; ulimit -c 0; exec "$@"`, int(limit.Seconds())+1)
	cmd := exec.Command("bash", append([]string{"-c", script, "bash", b.path}, args...)...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "LEASEHOLD_MUTANT="+strconv.Itoa(id), "LEASEHOLD_MUTANT_TRACE="+trace)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	cost := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	switch {
	case err == nil:
		return survived, cost
	case cmd.ProcessState.ExitCode() == -1, bytes.Contains(out.Bytes(), []byte("panic: test timed out")):
		return timedOut, cost
	default:
		return caught, cost
	}
}
