package sim_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
)

var decisionsFlag = flag.String("decisions", "",
	"write the decisions of all worlds to this file, to compare two versions of the leader")

// decision is one action of a leader.
type decision struct {
	at                    time.Duration
	rule, group, instance string
	what                  string
}

func (tr *trial) keepDecision(at time.Time, a *plan.Action) {
	if *decisionsFlag != "" && !a.NoJournal {
		tr.decisions = append(tr.decisions, decision{at.Sub(sim.Epoch), a.Rule, a.Group, a.Instance, a.What})
	}
}

// TestDecisions writes the decisions of many worlds to a file, one a line: seed, time, rule, group,
// instance and what was done. Run it before and after a change of the leader that must not change
// behaviour, and compare the files.
func TestDecisions(t *testing.T) {
	worlds := 2
	path := *decisionsFlag
	if path == "" {
		path = t.TempDir() + "/decisions"
	} else {
		worlds = *worldsFlag
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := bufio.NewWriter(f)
	for seed := *firstFlag; seed < *firstFlag+uint64(worlds); seed++ {
		tr := play(plot{seed: seed, steps: *stepsFlag})
		for _, d := range tr.decisions {
			_, _ = fmt.Fprintf(out, "%d %s %s %s %s %s\n", seed, d.at, d.rule, d.group, d.instance, d.what)
		}
		_, _ = fmt.Fprintf(out, "%d ends after %s, digest %x, failed %q\n", seed, tr.w.Elapsed(), tr.digest.Sum64(),
			tr.failed)
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
}
