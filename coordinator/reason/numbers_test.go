package reason

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// disagreements are forms that do not agree with their number: one with a plural, and two with a
// singular.
var disagreements = []*regexp.Regexp{
	regexp.MustCompile(`\b1 (?:\w+ )?(?:instances|slots|machines|canaries|failures|times|connections|agents)\b`),
	regexp.MustCompile(`\b1 (?:of \d+ )?(?:\w+ ){0,5}(?:are|have|fail|were|wait|come)\b`),
	regexp.MustCompile(`\b2 (?:wanted )?(?:instance|slot|machine|failure|time|connection|agent)\b`),
}

// Every sentence agrees with its numbers; testdata/numbers.txt has those that name one.
func TestSentencesAgreeWithTheirNumbers(t *testing.T) {
	var got strings.Builder
	check := func(what, text string) {
		t.Helper()
		if strings.ContainsAny(text, "12") && !strings.HasSuffix(got.String(), text+"\n") {
			got.WriteString(what + ": " + text + "\n")
		}
		for _, wrong := range disagreements {
			if found := wrong.FindString(text); found != "" {
				t.Errorf("%s: %q in %q", what, found, text)
			}
		}
	}
	for count := 1; count <= 2; count++ {
		for limit := count; limit <= 2; limit++ {
			at := " with " + strconv.Itoa(count) + " of " + strconv.Itoa(limit)
			for _, kind := range store.CauseKinds {
				c := store.Cause{
					Kind: kind, By: "ada", Other: "web-b", Name: "name", Count: count, Limit: limit,
					For: store.Duration(3e9), Text: "its words",
					Load: &store.CauseNumbers{Numbers: []store.ScaleNumber{{Metric: "cpu", Fresh: count, Of: limit}}},
				}
				if kind == store.CauseSmaller {
					c.Name = SlotOldest
				}
				if kind == store.CauseManyLostInShard {
					c.Name = "3" // a storm of the shard concerns two groups or more
				}
				check(string(kind)+at, Short(c))
			}
			for _, kind := range []store.EffectKind{ // those with numbers or names
				store.EffectAdoptedInto, store.EffectDrillMachines, store.EffectSlotWaits, store.EffectSlotsRestart,
				store.EffectSize, store.EffectSizeAdvised, store.EffectJoins, store.EffectLeaves, store.EffectLeavesRestart,
				store.EffectPutBack, store.EffectTakenOut,
			} {
				e := store.Effect{
					Kind: kind, Name: "name", Instance: "web-b", Zone: "a", Count: count, Limit: limit,
					Names: strings.Fields("front back")[:count],
				}
				check(string(kind)+at, Effect(e))
			}
			for _, kind := range store.BlockedKinds {
				for _, flag := range []bool{false, true} {
					b := store.Blocked{Kind: kind, Instance: "web-a", Work: store.WorkRoll, Of: store.BlockedFacts{
						Group: "web", Other: "web-b", Name: "ada", Text: "the text", Count: count, Limit: limit, Flag: flag,
						Expansion: count, ExpansionUsed: limit, Down: count, DownUsed: limit, Creations: count, Removals: count,
						Restarts: count, Zone: "a", To: "b", Balancer: store.BalancerConnections,
					}}
					check(string(kind)+at, What(&b)+": "+Why(&b)+"; until "+Until(&b))
				}
			}
		}
	}
	const file = "testdata/numbers.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != got.String() {
		t.Errorf("%s says otherwise (%v); go test -update writes it", file, err)
	}
}
