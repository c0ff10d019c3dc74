package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// loadKinds are changes of the instances' load, of external metrics, and of what is known of them
// (AUTO-1).
func loadKinds() []Kind {
	return []Kind{
		{"load", "", "The load of a group becomes another.", readLoad},
		{"no_load", "", "Agents report no load.", readNoLoad},
		{"number", "", "A number from outside becomes another.", readNumber},
		{"no_number", "from", "A source of numbers from outside does not answer.", readNoNumber},
	}
}

func readLoad(f *fields) (text, time.Duration, func(*stage) string) {
	group := f.groupField("")
	metrics := []struct {
		name, doc string
		most      int
	}{
		{store.MetricCPU, "Percent of a machine that the instances need together: 250 is two and a half machines.", 1e8},
		{store.MetricNetwork, "Megabytes per second that the instances send together.", 1e8},
		{store.MetricMemory, "Percent of its memory that each instance needs.", 100},
	}
	to := map[string]float64{}
	var changes []string
	for _, m := range metrics {
		n := f.number(m.name, 0, 0, m.most, m.doc)
		f.asked[len(f.asked)-1].Default = "as it was"
		if f.has(m.name) {
			to[m.name] = float64(n)
			changes = append(changes, fmt.Sprintf("%s %d", m.name, n))
		}
	}
	over := f.length("over", "0s", 0, longest, "How long it takes to become that, in a straight line.")
	what := fmt.Sprintf("load of %s becomes %s", group, strings.Join(changes, ", "))
	if over > 0 {
		what += " within " + words(over)
	}
	return says(what), 0, func(st *stage) string {
		st.w.Follow(group)
		st.w.SetLoad(group, to, over)
		return ""
	}
}

func readNoLoad(f *fields) (text, time.Duration, func(*stage) string) {
	t := f.target("agent", "agents")
	d := f.lasting("Then they report it again.")
	return text{target: &t, after: " report no load"}, d, func(st *stage) string {
		return st.each(t, present, func(id string) {
			st.w.Unmeasured(id, true)
			st.later(d, func() { st.w.Unmeasured(id, false) })
		})
	}
}

// LoadOutcome says how the size of a group followed its load.
type LoadOutcome struct {
	Below    float64 `json:"below_target_seconds"` // time in which each instance had more load than the target and its tolerance
	Machines float64 `json:"machine_minutes"`
	Over     int     `json:"overshoot"`              // the largest number of instances beyond the need, just after growing
	Outside  bool    `json:"from_outside,omitempty"` // an external metric asks for instances, so the need is unknown
	Changes  int     `json:"size_changes"`
	Turns    int     `json:"size_turns"` // changes of direction
}

func loadOutcome(w *sim.World, group string) *LoadOutcome {
	l, there := w.LoadOf(group)
	if !there {
		return nil
	}
	return &LoadOutcome{
		Below: seconds(l.Below), Machines: l.Machines.Minutes(), Over: l.Over, Outside: l.Outside, Changes: l.Changes,
		Turns: l.Turns,
	}
}

// loadWorst is the worst of all groups, for each figure.
func (res *Result) loadWorst() (worst LoadOutcome) {
	for _, g := range res.Groups {
		if l := g.Load; l != nil {
			worst.Below, worst.Over = max(worst.Below, l.Below), max(worst.Over, l.Over)
			worst.Changes, worst.Turns = max(worst.Changes, l.Changes), max(worst.Turns, l.Turns)
		}
	}
	return worst
}
