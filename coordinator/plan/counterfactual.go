package plan

import (
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// number returns how many there are of something, as one would.
func number(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// counterfactual is what would have prevented a decision: every entry of the journal tells it.
func counterfactual(rule string, verdict store.Verdict) store.Counterfactual {
	if c, ok := without[rule]; ok {
		return c
	}
	switch verdict {
	case store.Lost:
		return store.UnlessReported
	case store.Unhealthy:
		return store.UnlessChecksPassed
	case store.Dead:
		return store.UnlessListedRunning
	case store.Stuck:
		return store.UnlessReady
	default:
		return ""
	}
}

// without are those of rules whose decisions rest on more than a verdict.
var without = map[string]store.Counterfactual{
	"HEAL-6":  store.UnlessDown,
	"HEAL-8":  store.UnlessRoom,
	"HEAL-9":  store.UnlessSize,
	"HEAL-13": store.UnlessProvider,
	"REC-3":   store.UnlessFilled,
	"REC-7":   store.UnlessKept,
	"REC-8":   store.UnlessAdopted,
	"REC-11":  store.UnlessStarted,
	"REC-12":  store.UnlessEndedBadly,
	"REC-16":  store.UnlessOrdered,
	"REC-17":  store.UnlessUneven,
	"ROLL-1":  store.UnlessStrategy,
	"ROLL-2":  store.UnlessStrategy,
	"ROLL-4":  store.UnlessProgress,
	"FLAP-3":  store.UnlessSteady,
	"FLAP-5":  store.UnlessTemplateWorks,
	"EXP-1":   store.UnlessYounger,
	"SPOT-2":  store.UnlessNoticed,
	"SPOT-3":  store.UnlessYounger,
	"DRAIN-1": store.UnlessDrained,
	"DRAIN-3": store.UnlessEvacuated,
	"SAFE-2":  store.UnlessManyLost,
	"SAFE-15": store.UnlessDamaged,
	"SAFE-12": store.UnlessUnrecorded,
}
