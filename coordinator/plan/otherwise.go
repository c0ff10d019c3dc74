package plan

import (
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// number says how many there are of something, as one would.
func number(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// otherwise says what would have kept a decision from being made: every journal entry tells it.
func otherwise(rule string, verdict store.Verdict) string {
	if s, ok := without[rule]; ok {
		return s
	}
	switch verdict {
	case store.Lost:
		return "kept, had its agent reported before"
	case store.Unhealthy:
		return "left alone, had its checks passed before its turn came"
	case store.Dead:
		return "kept, had the provider said that it runs"
	case store.Stuck:
		return "left alone, had it got ready in time"
	default:
		return ""
	}
}

// without says so for rules whose decisions rest on more than a verdict.
var without = map[string]string{
	"HEAL-6":  "both kept, had the original not recovered",
	"HEAL-8":  "kept, had nobody failed, or had there been room for both",
	"HEAL-9":  "kept, had size not been lowered, or were it protected",
	"HEAL-13": "waited for longer, had the provider not failed for so long",
	"REC-3":   "not made, were the slot filled, its wait not over, or a budget used up",
	"REC-7":   "kept, as long as nobody asked for the group's deletion",
	"REC-8":   "kept, had its agent said hello or an operator adopted it, or were it not known that nobody wants it",
	"REC-11":  "kept, as long as the group is not stopped",
	"REC-12":  "replaced, had its workload ended otherwise",
	"REC-16":  "nothing, without the order",
	"REC-17":  "kept, were the zones even, or spread at_creation",
	"ROLL-1":  "kept as it is under the strategy opportunistic, or were it protected",
	"ROLL-2":  "kept as it is under the strategy opportunistic, or were it protected",
	"ROLL-4":  "still going, had one more instance got healthy",
	"FLAP-3":  "tried again, had it stayed healthy for flap.reset once",
	"FLAP-5":  "going on, had one instance on the new template got healthy",
	"EXP-1":   "kept, were it younger or protected",
	"SPOT-2":  "kept, had there been no notice",
	"SPOT-3":  "kept, were it younger or protected",
	"DRAIN-1": "draining still, had its hook not ended, nobody acknowledged it and its time not been over",
	"DRAIN-3": "kept, were it not to be emptied",
	"SAFE-2":  "replaced one after the other, had fewer been lost at once",
	"SAFE-15": "going on, had at most one record been damaged",
	"SAFE-12": "going on, had there been fewer machines that nobody recorded",
}
