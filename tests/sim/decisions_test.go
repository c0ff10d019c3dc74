package sim_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
)

var (
	decisionsFlag = flag.String("decisions", "",
		"write the decisions of all worlds to this file, to compare two versions of the leader")
	updateFlag = flag.Bool("update", false, "rewrite testdata/decisions.txt")
)

// decision is one action of a leader.
type decision struct {
	at                    time.Duration
	rule, group, instance string
	effect                string // its fields: other words for the same decision change no digest
}

func (tr *trial) keepDecision(at time.Time, a *plan.Action) {
	if tr.plot.decisions && !a.NoJournal {
		effect, err := json.Marshal(a.Effect)
		if err != nil {
			panic(err)
		}
		tr.decisions = append(tr.decisions, decision{at.Sub(sim.Epoch), a.Rule, a.Group, a.Instance, string(effect)})
	}
}

// writeDecisions writes the decisions of a world, one a line: seed, time, rule, group, instance and
// effect.
func (tr *trial) writeDecisions(w io.Writer) {
	for _, d := range tr.decisions {
		_, _ = fmt.Fprintf(w, "%d %s %s %s %s %s\n", tr.plot.seed, d.at, d.rule, d.group, d.instance, d.effect)
	}
	_, _ = fmt.Fprintf(w, "%d ends after %s, failed %q\n", tr.plot.seed, tr.w.Elapsed(), tr.failed)
}

// decisionDigest is one line: seed, number of decisions, and their digest.
func (tr *trial) decisionDigest() string {
	digest := fnv.New64a()
	tr.writeDecisions(digest)
	return fmt.Sprintf("seed %d  %d decisions  %016x\n", tr.plot.seed, len(tr.decisions), digest.Sum64())
}
