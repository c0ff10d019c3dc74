//go:build nightly

package faults

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/tests/faults/mutants"
	"github.com/leasehold/leasehold/tests/stage"
)

var (
	huntFlag = flag.String("mutants", "call-before-record",
		"the mutants to hunt, with commas in between; all: every one")
	mostFlag = flag.Int("most", 12, "how many runs a mutant may survive before it counts as not caught")
	keepFlag = flag.String("keep", "", "where to keep what the hunted runs said and left; none: nothing is kept")
)

// Each deliberate fault is put into the product, and runs are played that favour the troubles that
// should expose it, until one fails: by the judge, or because it does not end well. The run that
// caught it is played once more without the fault, and passes.
//
// Each run is a process of its own, so that a failure there, of whatever kind, is what is hoped for
// here. A hunt for all takes hours (make mutants). One that every run catches is hunted whenever
// these tests run: a cluster, a history or a judge that notice nothing any more would be noticed.
func TestMutants(t *testing.T) {
	t.Parallel()
	_, err := built.WrongClock() // for runs without a mutant
	must(t, err)
	var table sync.Map
	t.Cleanup(func() { tellHunt(t, &table) })
	for _, name := range names(*huntFlag) {
		if _, known := mutants.Named(name); !known && name != "all" {
			t.Errorf("there is no mutant %s", name)
		}
	}
	for _, m := range mutants.All() {
		if *huntFlag == "all" && m.Harmless != "" || *huntFlag != "all" && !slices.Contains(names(*huntFlag), m.Name) {
			continue // one that is named is hunted all the same
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			table.Store(m.Name, hunt(t, m))
		})
	}
}

// caught is how a hunt went.
type caught struct {
	runs    int    // that it took; 0: it was not caught
	by      string // the first rule of the judge that it broke, or what else went wrong
	what    string
	control string // what the same run said without the mutant
}

// mutated are the programs with a mistake in them.
func mutated(t *testing.T, m mutants.Mutant) *stage.Programs {
	t.Helper()
	programs, err := mutants.Build(m)
	must(t, err)
	t.Cleanup(func() { must(t, programs.Remove()) })
	_, err = programs.WrongClock()
	must(t, err)
	return programs
}

func hunt(t *testing.T, m mutants.Mutant) caught {
	t.Helper()
	programs := mutated(t, m)
	runs := *mostFlag
	if m.Scenario != "" {
		runs = min(runs, 3) // they are much the same
	}
	for n := 1; n <= runs; n++ {
		said, failed := playedApart(t, programs, m, n)
		if !failed {
			t.Logf("run %d: survived", n)
			continue
		}
		c := caught{runs: n, control: "clean"}
		c.by, c.what = whatFailed(said)
		t.Logf("run %d: %s: %s", n, c.by, c.what)
		if said, failed := playedApart(t, built, m, n); failed {
			by, what := whatFailed(said)
			c.control = by + ": " + what
			t.Errorf("without the mutant the same run fails as well:\n%s", said)
		}
		return c
	}
	t.Errorf("%s was not caught in %d runs: %s", m.Name, runs, m.What)
	return caught{}
}

// playedApart plays run n of a hunt, in a process of its own.
func playedApart(t *testing.T, with *stage.Programs, m mutants.Mutant, n int) (said string, failed bool) {
	t.Helper()
	// Sockets have short names: a directory of the test's would not do.
	dir, err := os.MkdirTemp("", "hunt-") //nolint:usetesting // see above
	must(t, err)
	if *keepFlag == "" {
		defer func() { must(t, os.RemoveAll(dir)) }()
	}
	args := []string{"-test.run", "^TestSeeds$", "-seed", fmt.Sprint(n)}
	switch {
	case m.Scenario != "":
		args = []string{"-test.run", "^" + m.Scenario + "$"}
	case len(m.Likely) == 0:
		args = append(args, "-troubles", "0")
	default:
		args = append(args, troublesOf(n), strings.Join(m.Likely, ","))
	}
	if *serversFlag {
		args = append(args, "-servers")
	}
	args = append(args, "-test.count", "1", "-test.v", "-test.timeout", "15m", "-programs", with.Dir())
	ctx, cancel := context.WithTimeout(t.Context(), 16*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("play a run: %v", err)
	}
	said = string(out)
	if err == nil && !strings.Contains(said, "\n--- PASS: ") {
		t.Fatalf("nothing was played:\n%s", said)
	}
	if *keepFlag != "" {
		must(t, os.MkdirAll(*keepFlag, 0o700))
		kind := map[bool]string{true: "control", false: "run"}[with == built]
		must(t, os.WriteFile(filepath.Join(*keepFlag, fmt.Sprintf("%s.%s.%d", m.Name, kind, n)), []byte(dir+"\n"+said),
			0o600))
	}
	return said, err != nil
}

// troublesOf has every second run consist of nothing but likely troubles, and the others half of
// them: troubles help each other, and hide each other.
func troublesOf(run int) string {
	if run%2 == 1 {
		return "-only"
	}
	return "-often"
}

var (
	firstViolation = regexp.MustCompile(`(?m)^\s*1\. ([A-Z]+-[0-9]+) at \S+: (.*)$`)
	failure        = regexp.MustCompile(
		`(?m)^\s+\w+\.go:[0-9]+: (.*(?:without success|after all troubles were over: |broke down|could not be undone|not looked yet|it still does).*)$`)
)

// whatFailed tells the first thing that went wrong in a run.
func whatFailed(said string) (by, what string) {
	if v := firstViolation.FindStringSubmatch(said); v != nil {
		return v[1], v[2]
	}
	if f := failure.FindStringSubmatch(said); f != nil {
		return "the run", f[1]
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return "the run", strings.Join(lines[max(0, len(lines)-5):], " | ")
}

func tellHunt(t *testing.T, table *sync.Map) {
	var b strings.Builder
	fmt.Fprintf(&b, "| Fault | Runs | Caught by | Without it |\n|---|---|---|---|\n")
	for _, m := range mutants.All() {
		found, ok := table.Load(m.Name)
		if !ok {
			if *huntFlag == "all" {
				fmt.Fprintf(&b, "| `%s` | not hunted | %s | |\n", m.Name, m.Harmless)
			}
			continue
		}
		c, _ := found.(caught)
		runs := "not caught"
		if c.runs > 0 {
			runs = fmt.Sprint(c.runs)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, runs, strings.TrimSpace(cmp.Or(c.by, "-")+" "+c.what),
			cmp.Or(c.control, "-"))
	}
	t.Logf("\n%s", b.String())
}
