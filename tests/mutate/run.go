package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// lived reports whether the tests passed with the mutant.
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

// test is one test function of the package, or one subtest of a function that takes long.
type test struct {
	name    string
	sub     string        // "" for the whole function
	cost    time.Duration // of a processor
	reaches map[int]bool
}

// long is what a test function may take before its subtests are run one by one.
const long = 500 * time.Millisecond

// build compiles the tests of the package in a folder together with all mutants of another, or of
// itself.
func build(src *source, changed map[string][]byte, temp, from string) (*binary, error) {
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
	b := &binary{dir: from, temp: temp, path: filepath.Join(temp, "mutants.test")}
	compile := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", b.path, ".")
	compile.Dir = from
	if out, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the mutants: %w\n%s", err, out)
	}
	return b, nil
}

// survey runs each chosen test by itself without a mutant: what it costs, which places it reaches,
// whether it passes.
func (b *binary) survey(chosen *regexp.Regexp, progress func(done, all int, name string)) error {
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
	names := slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool { return !chosen.MatchString(name) })
	for i, name := range names {
		progress(i, len(names), name)
		t, subs, passed, err := b.look(test{name: name})
		if err != nil {
			return err
		}
		if !passed {
			b.failing = append(b.failing, name)
			continue
		}
		if t.cost < long || len(subs) < 2 {
			b.tests = append(b.tests, t)
			continue
		}
		for i, sub := range subs {
			if !chosen.MatchString(name + "/" + sub) {
				continue
			}
			if i%20 == 19 {
				progress(i, len(subs), name+"/"+sub)
			}
			t, _, passed, err := b.look(test{name: name, sub: sub})
			if err != nil {
				return err
			}
			if passed {
				b.tests = append(b.tests, t)
			} else {
				b.failing = append(b.failing, name+"/"+sub)
			}
		}
	}
	slices.SortStableFunc(b.tests, func(x, y test) int { return cmp.Compare(x.cost, y.cost) })
	return nil
}

// subtest is a line of a verbose run that tells of a subtest; one whose name has a slash in it
// cannot be run by itself.
var subtest = regexp.MustCompile(`(?m)^    --- (?:PASS|FAIL|SKIP): [^/\s]+/(\S+) \(`)

// look runs a test without a mutant: what it costs and reaches, which subtests it has, and whether
// it passes.
func (b *binary) look(t test) (_ test, subs []string, passed bool, err error) {
	trace := filepath.Join(b.temp, "trace")
	_ = os.Remove(trace)
	result, cost, out := b.run(pattern([]test{t}), 0, trace, time.Hour)
	t.cost, t.reaches = cost, map[int]bool{}
	reached, err := os.ReadFile(trace)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return t, nil, false, err
	}
	for _, line := range strings.Fields(string(reached)) {
		id, err := strconv.Atoi(line)
		if err != nil {
			return t, nil, false, fmt.Errorf("read what %s reaches: %w", t.name, err)
		}
		t.reaches[id] = true
	}
	for _, m := range subtest.FindAllSubmatch(out, -1) {
		if bytes.ContainsRune(m[1], '/') {
			return t, nil, result.lived(), nil
		}
		subs = append(subs, string(m[1]))
	}
	return t, subs, result.lived(), nil
}

// pattern selects tests, which are whole functions or subtests of one function.
func pattern(tests []test) string {
	var names, subs []string
	for _, t := range tests {
		names = append(names, t.name)
		if t.sub != "" {
			subs = append(subs, regexp.QuoteMeta(t.sub))
		}
	}
	if len(subs) > 0 {
		return "^" + names[0] + "$/^(" + strings.Join(subs, "|") + ")$"
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// batch is tests that one process runs.
type batch struct {
	tests []test
	cost  time.Duration
}

// batches are the tests that reach a mutant, the cheap ones first.
func (b *binary) batches(m mutant) []batch {
	var full []batch
	open := map[string]batch{} // "" for whole functions, or the function whose subtests it has
	for _, t := range b.tests {
		if !t.reaches[m.id] {
			continue
		}
		of := ""
		if t.sub != "" {
			of = t.name
		}
		one := open[of]
		one.tests, one.cost = append(one.tests, t), one.cost+t.cost
		open[of] = one
		if one.cost > time.Second {
			full = append(full, one)
			delete(open, of)
		}
	}
	for _, of := range slices.Sorted(maps.Keys(open)) {
		full = append(full, open[of])
	}
	slices.SortStableFunc(full, func(x, y batch) int { return cmp.Compare(x.tests[0].cost, y.tests[0].cost) })
	return full
}

// try runs the tests that reach a mutant.
func (b *binary) try(m mutant) outcome {
	batches := b.batches(m)
	if len(batches) == 0 {
		return unreached
	}
	for _, batch := range batches {
		// What a mutant may take is measured in processor time, so that a busy machine makes no
		// difference.
		if result, _, _ := b.run(pattern(batch.tests), m.id, "", 3*time.Second+5*batch.cost); !result.lived() {
			return result
		}
	}
	return survived
}

// run runs tests with a mutant, or with none (0). The limit is one of processor time; by the clock
// it may take six times as long, which ends what waits for ever.
func (b *binary) run(tests string, id int, trace string, limit time.Duration) (outcome, time.Duration, []byte) {
	args := append([]string{
		"-test.run=" + tests, "-test.v=" + strconv.FormatBool(id == 0), "-test.failfast",
		"-test.timeout=" + (6 * limit).String(),
	}, b.flags...)
	// The limits keep a mutant that never ends from taking the machine with it: CPU seconds, and 6
	// GiB of addresses.
	script := fmt.Sprintf(`ulimit -t %d; ulimit -v 6291456; ulimit -c 0; exec "$@"`, int(limit.Seconds())+1)
	cmd := exec.Command("bash", append([]string{"-c", script, "bash", b.path}, args...)...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "LEASEHOLD_MUTANT="+strconv.Itoa(id),
		"LEASEHOLD_MUTANT_TRACE="+trace)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	cost := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	switch {
	case err == nil:
		return survived, cost, out.Bytes()
	case cmd.ProcessState.ExitCode() == -1, bytes.Contains(out.Bytes(), []byte("panic: test timed out")):
		return timedOut, cost, out.Bytes()
	default:
		return caught, cost, out.Bytes()
	}
}
