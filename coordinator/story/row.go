package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Row is a group as a row of a table.
type Row struct {
	Mark   string // "!" needs attention, "~" work in progress, " " otherwise
	State  string
	Health string
	Run    string // running / size
	Now    string // what is wrong, or in progress
	Since  time.Time
}

// Leaving reports whether the group is being deleted, by the spec in force or by a later one. That
// is shown even if something else is wrong with it.
func (g Known) Leaving() bool {
	st := g.Status.Record
	return st.State == store.GroupDeleting || st.Accepted != nil && st.Accepted.Deleting || !g.Gone() && g.Bad == nil &&
		g.Spec.Deleting
}

// RowOf describes a group from its status.
func RowOf(g Known) Row {
	v := describe(g)
	if g.Leaving() {
		v.State = string(store.GroupDeleting)
	}
	return v
}

// describe describes a group, apart from deletion.
func describe(g Known) Row {
	if g.StatusBad != nil {
		return Row{Mark: "!", State: "-", Health: "-", Run: "-", Now: "its status cannot be read"}
	}
	if !g.Status.Present() {
		v := Row{
			Mark: "~", State: "new", Health: "-", Run: fmt.Sprintf("-/%d", g.Spec.Size),
			Now: "no coordinator has accepted it yet",
		}
		if g.Bad != nil {
			v.Mark, v.Run, v.Now = "!", "-", "spec cannot be used"
		}
		return v
	}
	st := g.Status.Record
	v := Row{
		Mark: " ", State: string(st.State), Health: fmt.Sprintf("%d%%", st.Health), Since: st.Since,
		Run: fmt.Sprintf("%d/-", st.Phases[store.Running]),
	}
	if st.Accepted != nil {
		v.Run = fmt.Sprintf("%d/%d", st.Phases[store.Running], st.Accepted.Size)
	}
	on := Of(st)
	now := activity(on)
	if size := scaleNow(st); size != "" {
		now = append(now, size)
	}
	switch {
	case st.State == store.GroupRefused:
		v.Mark, v.Health, v.Run = "!", "-", "-"
		now = append([]string{refusal(g)}, now...)
	case g.Gone() && !g.Leaving():
		v.Mark, now = "!", append([]string{"spec is gone"}, now...)
	case !g.Gone() && (g.Bad != nil || st.Invalid != nil):
		v.Mark, now = "!", append([]string{"spec not in force"}, now...)
	case on.NeedsAttention() || st.State == store.GroupErrored:
		v.Mark = "!"
	case on.Rests && len(now) == 0:
	case !st.OK || len(now) > 0:
		v.Mark = "~"
	}
	if n := st.Phases[store.Finished]; n > 0 { // as configured, although they are not among the running instances
		now = append(now, fmt.Sprintf("%d finished", n))
	}
	judged := st.Invalid != nil && st.Invalid.Revision == g.Revision()
	if !g.Gone() && st.AcceptedRevision < g.Revision() && !judged && g.Bad == nil {
		now = append([]string{"spec not seen yet"}, now...)
		if v.Mark == " " {
			v.Mark = "~"
		}
	}
	if v.Now = strings.Join(now, ", "); v.Now == "" {
		v.Now = "-"
	}
	return v
}

// refusal returns why a group has no spec in force.
func refusal(g Known) string {
	if g.Gone() {
		return "spec is gone"
	}
	return "spec refused"
}

// activity returns what is in progress: a storm, instances that are not simply running, a roll, and
// what is blocked.
func activity(on Group) []string {
	var now []string
	if storm := stormNow(on); storm != "" {
		now = append(now, storm)
	}
	if on.Breaker != nil {
		now = append(now, "BREAKER: held")
	}
	for _, v := range on.Verdicts {
		now = append(now, fmt.Sprintf("%d %s", v.N, v.Verdict))
	}
	for _, p := range on.Phases {
		now = append(now, fmt.Sprintf("%d %s", p.N, p.Phase))
	}
	if roll := rollNow(on); roll != "" {
		now = append(now, roll)
	} else if on.Outdated > 0 {
		now = append(now, fmt.Sprintf("%d outdated", on.Outdated))
	}
	if agents := agentsNow(on.Agents); agents != "" {
		now = append(now, agents)
	}
	if on.Flapping > 0 {
		now = append(now, reason.Counted(on.Flapping, "slot", "slots")+" flapping")
	}
	if on.Errored > 0 {
		now = append(now, reason.Counted(on.Errored, "slot", "slots")+" errored")
	}
	now = append(now, turnsNow(on.Turns)...)
	var rules []string
	for _, b := range on.Blocked {
		if b.Rule != "" && !slices.Contains(rules, b.Rule) {
			rules = append(rules, b.Rule)
		}
	}
	slices.Sort(rules)
	for _, r := range rules {
		now = append(now, "held by "+r)
	}
	return now
}

// turnsNow says what planned work waits for, unless that is the turn of another instance.
func turnsNow(turns []store.Blocked) []string {
	opens, never, busy := time.Time{}, false, 0
	for i := range turns {
		switch b := &turns[i]; {
		case b.Kind == store.BlockedByBusy:
			busy++
		case b.Kind != store.BlockedByWindow && b.Kind != store.BlockedByFreeze:
		case b.Of.Opens.IsZero():
			never = true
		case opens.IsZero() || b.Of.Opens.Before(opens):
			opens = b.Of.Opens
		}
	}
	var now []string
	if !opens.IsZero() {
		now = append(now, "closed until "+opens.UTC().Format("01-02 15:04"))
	} else if never {
		now = append(now, "closed by its windows")
	}
	if busy > 0 {
		now = append(now, fmt.Sprintf("waits for %d busy", busy))
	}
	return now
}
