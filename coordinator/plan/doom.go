package plan

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// doom is why an instance will end in any case. An empty rule means that it will not.
type doom struct {
	rule  string
	cause store.Cause
	by    time.Time // when it ends, if known
}

// doomOf reads a member's doom from its record, or from the evacuation of its zone, which applies
// to every instance there (DRAIN-3).
func (v *view) doomOf(m *member) doom {
	if r := m.Record.Doomed; r != nil {
		return doom{rule: r.Rule, cause: reason.Known(r.Cause, r.Why), by: v.ends(m.Due, store.TimerDoomed, r.Deadline)}
	}
	if gone := v.s.Shard.Record.Evacuated; len(gone) > 0 {
		if e, yes := gone[m.Record.Zone]; yes {
			return doom{
				rule: "DRAIN-3", cause: store.Cause{Kind: store.CauseEvacuated, Name: m.Record.Zone, By: e.By},
			}
		}
	}
	return doom{}
}

// noticed reports whether the provider has announced that it will take the machine away: the
// replacement waits for no budget (SPOT-2).
func (m *member) noticed() bool { return m.Record.Doomed != nil && m.Record.Doomed.Rule == "SPOT-2" }

// asMade is how soon after the agent's start a notice counts as having been there before the
// machine was.
const asMade = 10 * time.Second
