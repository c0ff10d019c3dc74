//go:build nightly

package sim_test

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// TestDecisions compares a digest of the decisions in some worlds with the one that is checked in:
// a change of the planner or the leader that must not change behaviour changes none. After a change
// that does, rewrite the digests with -update. To see which decisions differ, run it before and
// after with -decisions FILE, and compare the files.
func TestDecisions(t *testing.T) {
	if path := *decisionsFlag; path != "" {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		out := bufio.NewWriter(f)
		for seed := *firstFlag; seed < *firstFlag+uint64(*worldsFlag); seed++ {
			play(plot{seed: seed, steps: *stepsFlag, decisions: true}).writeDecisions(out)
		}
		if err := out.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	const golden, worlds, steps = "testdata/decisions.txt", 30, 500
	var got strings.Builder
	for seed := uint64(1); seed <= worlds; seed++ {
		got.WriteString(play(plot{seed: seed, steps: steps, decisions: true}).decisionDigest())
	}
	if *updateFlag {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	before := strings.Split(string(want), "\n")
	for i, line := range strings.Split(got.String(), "\n") {
		if i >= len(before) || line != before[i] {
			t.Errorf("other decisions than before: got %q", line)
		}
	}
}
