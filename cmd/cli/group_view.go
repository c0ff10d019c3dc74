package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// view is a group as a row of a table.
type view struct {
	mark   string // "!" needs attention, "~" work in progress, " " all is well
	state  string
	health string
	run    string // running / size
	now    string // what is wrong, or in progress
	since  time.Time
}

// leaving reports whether the group is being deleted, by the spec in force or by a later one. That
// is shown whatever else is wrong with it.
func (g group) leaving() bool {
	st := g.Status.Record
	return st.State == store.GroupDeleting || st.Accepted != nil && st.Accepted.Deleting || !g.gone() && g.Bad == nil &&
		g.Spec.Deleting
}

// viewOf describes a group from its status.
func viewOf(g group) view {
	v := standing(g)
	if g.leaving() {
		v.state = string(store.GroupDeleting)
	}
	return v
}

// standing describes a group, apart from deletion.
func standing(g group) view {
	if g.StatusBad != nil {
		return view{mark: "!", state: "-", health: "-", run: "-", now: "its status cannot be read"}
	}
	if !g.Status.Present() {
		v := view{
			mark: "~", state: "new", health: "-", run: fmt.Sprintf("-/%d", g.Spec.Size),
			now: "no coordinator has accepted it yet",
		}
		if g.Bad != nil {
			v.mark, v.run, v.now = "!", "-", "spec cannot be used"
		}
		return v
	}
	st := g.Status.Record
	v := view{
		mark: " ", state: string(st.State), health: fmt.Sprintf("%d%%", st.Health), since: st.Since,
		run: fmt.Sprintf("%d/-", st.Phases[store.Running]),
	}
	if st.Accepted != nil {
		v.run = fmt.Sprintf("%d/%d", st.Phases[store.Running], st.Accepted.Size)
	}
	on := story.Of(st)
	now := activity(on)
	switch {
	case st.State == store.GroupRefused:
		v.mark, v.health, v.run = "!", "-", "-"
		now = append([]string{refusal(g)}, now...)
	case g.gone() && !g.leaving():
		v.mark, now = "!", append([]string{"spec is gone"}, now...)
	case !g.gone() && (g.Bad != nil || st.Invalid != nil):
		v.mark, now = "!", append([]string{"spec not in force"}, now...)
	case on.NeedsAttention() || st.State == store.GroupErrored:
		v.mark = "!"
	case on.Rests && len(now) == 0:
	case !st.OK || len(now) > 0:
		v.mark = "~"
	}
	if n := st.Phases[store.Finished]; n > 0 { // as it should be, and yet they are not among those that run
		now = append(now, fmt.Sprintf("%d finished", n))
	}
	judged := st.Invalid != nil && st.Invalid.Revision == g.revision()
	if !g.gone() && st.AcceptedRevision < g.revision() && !judged && g.Bad == nil {
		now = append([]string{"spec not seen yet"}, now...)
		if v.mark == " " {
			v.mark = "~"
		}
	}
	if v.now = strings.Join(now, ", "); v.now == "" {
		v.now = "-"
	}
	return v
}

// refusal is why a group has no spec in force.
func refusal(g group) string {
	if g.gone() {
		return "spec is gone"
	}
	return "spec refused"
}

// activity returns what is in progress: a storm, instances that are not simply running, a roll, and
// what is blocked.
func activity(on story.Group) []string {
	var now []string
	if storm := stormNow(on); storm != "" {
		now = append(now, storm)
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
	if on.Flapping > 0 {
		now = append(now, counted(on.Flapping, "slot", "slots")+" flapping")
	}
	if on.Errored > 0 {
		now = append(now, counted(on.Errored, "slot", "slots")+" errored")
	}
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
