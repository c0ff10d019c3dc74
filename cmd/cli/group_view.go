package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// view is a group as a row of a table.
type view struct {
	mark   string // "!" needs attention, "~" work in progress, " " all is well
	state  string
	health string
	run    string // running / size
	now    string // what is not as it should be, or under way
	since  time.Time
}

// leaving says whether the group is being deleted, by what is in force or by what was asked for
// since. That is shown whatever else is wrong with it.
func (g group) leaving() bool {
	st := g.Status.Record
	return st.State == store.GroupDeleting || st.Accepted != nil && st.Accepted.Deleting || !g.gone() && g.Bad == nil &&
		g.Spec.Deleting
}

// viewOf says how a group is from what its leader last said of it.
func viewOf(g group) view {
	v := standing(g)
	if g.leaving() {
		v.state = string(store.GroupDeleting)
	}
	return v
}

// standing is how a group is, deletion aside.
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
	now := activity(st)
	switch {
	case st.State == store.GroupRefused:
		v.mark, v.health, v.run = "!", "-", "-"
		now = append([]string{refusal(g)}, now...)
	case g.gone() && !g.leaving():
		v.mark, now = "!", append([]string{"spec is gone"}, now...)
	case !g.gone() && (g.Bad != nil || st.Invalid != nil):
		v.mark, now = "!", append([]string{"spec not in force"}, now...)
	case len(blockedProblems(st)) > 0 || st.State == store.GroupErrored || st.Errored > 0 || stormy(st) ||
		halted(st) != "":
		v.mark = "!"
	case rests(st.State) && len(now) == 0:
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

// unstick takes the stuck ones out of the phases in which an instance can be stuck: they are
// counted by their verdict. How many are stuck in which of these phases the status does not say;
// with both, those in checking are taken first.
func unstick(phases map[store.Phase]int, stuck int) {
	for _, p := range []store.Phase{store.Checking, store.Booting} {
		taken := min(phases[p], stuck)
		if taken > 0 {
			phases[p] -= taken
			stuck -= taken
		}
	}
}

// activity says what is under way: a storm, what is not simply running, verdicts first, a roll, and
// what is blocked.
func activity(st store.Status) []string {
	var now []string
	if storm := stormNow(st); storm != "" {
		now = append(now, storm)
	}
	var verdicts []store.Verdict
	for v, n := range st.Verdicts {
		if n > 0 && v != store.Live && v != store.Unborn {
			verdicts = append(verdicts, v)
		}
	}
	slices.Sort(verdicts)
	for _, v := range verdicts {
		now = append(now, fmt.Sprintf("%d %s", st.Verdicts[v], v))
	}
	phases := maps.Clone(st.Phases)
	unstick(phases, st.Verdicts[store.Stuck])
	for _, p := range store.Phases {
		if n := phases[p]; n > 0 && p != store.Running && p != store.Finished {
			now = append(now, fmt.Sprintf("%d %s", n, p))
		}
	}
	if roll := rollNow(st); roll != "" {
		now = append(now, roll)
	} else if st.Outdated > 0 {
		now = append(now, fmt.Sprintf("%d outdated", st.Outdated))
	}
	if st.Flapping > 0 {
		now = append(now, counted(st.Flapping, "slot", "slots")+" flapping")
	}
	if st.Errored > 0 {
		now = append(now, counted(st.Errored, "slot", "slots")+" errored")
	}
	var rules []string
	for _, b := range blockedProblems(st) {
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
