package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// rests reports whether no instance is wanted: the group is stopped, or was never started.
func (a awaited) rests() bool { return a.spec.Stopped || a.spec.Unstarted }

// goal returns the awaited state.
func (w *waiting) goal(now time.Time) string {
	follows := w.spec.Scale != nil && !w.spec.Scale.Advises()
	switch {
	case w.spec.Deleting:
		return "the group gone, with all its instances"
	case w.rests():
		return "no instance left"
	case follows && !w.spec.HeldAt(nil, now):
		return "as many as its load asks for running on " + w.template
	default:
		return fmt.Sprintf("%d running on %s", w.spec.SizeAt(nil, now), w.template)
	}
}

// waitState is the present state of a wait.
type waitState struct {
	text   string // progress
	rest   string // work that continues although the wait is over
	over   bool
	err    error
	events []store.JournalEntry // messages since the last call of assess
}

// assess judges the present state of the wait.
func (w *waiting) assess(now time.Time) waitState {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.judge(now)
	g.events, w.events = w.events, nil
	return g
}

func (w *waiting) judge(now time.Time) waitState {
	name := w.spec.Name
	if st := &w.status; w.spec.Scale != nil && st.Accepted != nil && st.AcceptedRevision >= w.since {
		w.spec.Size = st.Accepted.Size // load may have chosen another one meanwhile
	}
	switch {
	case w.broken != nil:
		return waitState{text: fmt.Sprintf("%s: etcd is unreachable (%s)", name, joined(w.broken))}
	case !w.known:
		return waitState{text: name + ": reading"}
	case w.spec.Deleting && w.gone():
		return waitState{over: true, text: name + " is gone", rest: w.onDemand()}
	case w.current() != w.since && w.back != nil:
		return w.rolledBack()
	case w.current() != w.since:
		return waitState{over: true, err: failureRun(Conflict, "leasehold group show "+name,
			"group %s: %s; that change stands, and the awaited state may never be reached", name,
			describeConflict(w.since, w.current()))}
	case w.status.Invalid != nil && w.status.Invalid.Revision == w.since:
		return waitState{over: true, err: failureRun(Failed, "leasehold group edit "+name,
			"group %s: the spec of revision %d was not accepted: %s", name, w.since, w.status.Invalid.Why)}
	case len(w.leaders) == 0:
		return waitState{text: name + ": no coordinator is running, waiting for one (leasehold coordinator)"}
	case w.status.AcceptedRevision < w.since:
		return waitState{text: fmt.Sprintf("%s: waiting for the coordinator to accept revision %d", name, w.since)}
	case w.spec.Paused:
		return waitState{over: true, err: failureRun(Failed, "leasehold group resume "+name,
			"group %s is paused: no work is done in it", name)}
	case w.spec.Deleting || w.rests():
		return w.emptying()
	default:
		return w.progress(now)
	}
}

// rolledBack describes that the coordinator has ended the awaited change (ROLL-5).
func (w *waiting) rolledBack() waitState {
	e, name := w.back, w.spec.Name
	left := reason.Left{Secrets: e.Effect.Names, Beside: true}
	remedies := story.Inspect("leasehold explain " + name).Or(story.Inspect("leasehold group history " + name))
	return waitState{over: true, err: failureWith(Failed, remedies,
		"group %s: the coordinator has rolled %s back to %s (auto_rollback): %s; %s", name, w.template, e.Effect.Name,
		reason.OneLine(reason.Text(e.Cause, e.Why)), left)}
}

// rollsBack reports whether the coordinator is about to roll the halted roll back.
func (w *waiting) rollsBack(now time.Time) bool {
	good := w.status.LastGood
	if w.rollHalted() == "" || !w.spec.Rollout.AutoRollback || good == nil || good.Template == w.template ||
		w.static != 0 {
		w.halted = time.Time{}
		return false
	}
	if w.halted.IsZero() {
		w.halted = now
	}
	return now.Sub(w.halted) < rollbackWithin
}

// gone reports whether the group is deleted: the leader removes spec and status together, once no
// counted instance is left.
func (w *waiting) gone() bool { return w.current() == 0 && w.status.Accepted == nil }

// emptying describes what is left of a group that wants no instances, and what it waits for.
func (w *waiting) emptying() waitState {
	var left []string
	phases := map[store.Phase]int{}
	for _, id := range slices.Sorted(maps.Keys(w.instances)) {
		if i := w.instances[id]; i.Managed {
			left = append(left, id)
			phases[i.Phase]++
		}
	}
	g := waitState{
		text: fmt.Sprintf("%s has %s left", w.spec.Name, counted(len(left), "instance", "instances")),
		over: len(left) == 0 && !w.spec.Deleting,
	}
	for _, p := range store.Phases {
		if phases[p] > 0 {
			g.text += fmt.Sprintf(", %d %s", phases[p], p)
		}
	}
	switch held := w.held(); {
	case len(left) > 0 && held != "":
		g.text += held
	case len(left) > 0:
		g.text += " | " + someOf(left)
	case g.over:
		g.rest = w.onDemand()
	}
	return g
}

// onDemand lists the instances that stay although their group rests or is gone: those created on
// demand (REC-2).
func (w *waiting) onDemand() string {
	var stay []string
	for _, id := range slices.Sorted(maps.Keys(w.instances)) {
		if i := w.instances[id]; !i.Managed && i.Phase != store.Deleting {
			stay = append(stay, id)
		}
	}
	if len(stay) == 0 {
		return ""
	}
	return "; created on demand, and left alone: " + someOf(stay)
}

// held describes the first blocked action, and why it is blocked.
func (w *waiting) held() string {
	if len(w.status.Blocked) == 0 {
		return ""
	}
	b := w.status.Blocked[0]
	text := fmt.Sprintf(" | held: %s %s: %s", b.Rule, reason.What(&b), reason.Why(&b))
	if until := reason.Until(&b); until != "" {
		text += "; until " + until
	}
	return text
}

// progress compares the slots with the spec.
func (w *waiting) progress(now time.Time) waitState {
	c := countSlots(w.spec, w.template, w.instances, w.reports)
	g := waitState{text: fmt.Sprintf("%s %d/%d running on %s", w.spec.Name, c.running, w.spec.Size, w.template)}
	if c.leaving > 0 {
		g.rest = fmt.Sprintf("; %s still being deleted", counted(c.leaving, "more is", "more are"))
	}
	if len(c.outdated) > 0 {
		g.text += fmt.Sprintf(", %d outdated", len(c.outdated))
	}
	switch {
	case c.missing == 0 && c.surplus == 0 && len(c.outdated) == 0 && w.rolled():
		g.over = true
	case w.rollsBack(now):
		g.text += " | the roll has stopped, and auto_rollback brings " + w.status.LastGood.Template + " back"
	case w.rollHalted() != "":
		g.over = true
		g.err = failureWith(Failed, w.remedies("leasehold group rollback"),
			"group %s: the roll to %s is stuck at %d of %d: %s", w.spec.Name, w.template, w.status.Rollout.Done,
			w.status.Rollout.Total, w.rollHalted())
	case w.awaitsPromotion():
		g.over = true
		g.err = failureRun(Awaits, "leasehold group promote "+w.spec.Name,
			"group %s: %d of %d on %s: the canaries are healthy, and the roll waits for a promotion", w.spec.Name,
			w.status.Rollout.Done, w.status.Rollout.Total, w.template)
	case w.givenUp(now):
		g.over = true
		g.err = failureWith(Failed, w.remedies("leasehold group retry"),
			"group %s: stuck at %d of %d: each slot that is not healthy is given up (FLAP-3)%s", w.spec.Name, c.running,
			w.spec.Size, w.held())
	case c.missing == 0 && c.surplus == 0 && w.spec.Rollout.Strategy == store.StrategyOpportunistic:
		g.over, g.err = true, w.opportunistic(c)
	}
	if len(c.underway) > 0 {
		g.text += " | " + someOf(c.underway)
	}
	if !g.over || g.err != nil { // a reached goal waits for nothing
		g.text += w.held()
	}
	if r := w.status.Rollout; r != nil && r.Stalls != nil && !g.over {
		g.text += " | stalls in " + story.Ends(*r.Stalls, now)
	}
	return g
}

// remedies are to look into a group that is stuck, or to run the command for it.
func (w *waiting) remedies(command string) story.Remedies {
	return story.Inspect("leasehold explain " + w.spec.Name).Or(story.Run(command + " " + w.spec.Name))
}

// rolled reports whether no roll to the awaited template is in progress: an agent that was sent a
// change may not have confirmed it yet.
func (w *waiting) rolled() bool {
	r := w.status.Rollout
	return r == nil || r.Template != w.template || r.Done >= r.Total
}

// rollHalted returns why the awaited roll is stuck; "" if it is not, or has not begun.
func (w *waiting) rollHalted() string {
	if r := w.status.Rollout; r == nil || r.Template != w.template || r.Relaunch < w.spec.Relaunch.Number {
		return ""
	}
	if r := story.Of(w.status).Roll; r.Halted() {
		return r.Why
	}
	return ""
}

// awaitsPromotion reports whether the awaited roll goes no further without an operator: its
// canaries are healthy, and no time promotes them (ROLL-5).
func (w *waiting) awaitsPromotion() bool {
	r := w.status.Rollout
	return r != nil && r.Template == w.template && r.Relaunch >= w.spec.Relaunch.Number && r.Promoted == "" &&
		slices.ContainsFunc(w.status.Blocked, func(b store.Blocked) bool {
			return b.Kind == store.BlockedByCanary && b.Of.For == 0 && b.Of.Count >= b.Of.Limit
		})
}

// givenUp reports whether nothing more happens without an operator (REC-11).
func (w *waiting) givenUp(now time.Time) bool {
	switch {
	case w.status.State != store.GroupErrored:
		w.errored = time.Time{}
	case w.errored.IsZero():
		w.errored = now
	}
	return !w.errored.IsZero() && now.Sub(w.errored) >= erroredFor
}

// opportunistic explains that outdated instances are not replaced for the change alone.
func (w *waiting) opportunistic(c slotCount) error {
	next := "leasehold instance replace " + c.outdated[0]
	if len(c.outdated) > 1 {
		next += ", and so on for each of them"
	}
	return failure(Failed, next,
		"group %s: the spec is in force, but %d of %s outdated (%s), and rollout.strategy opportunistic "+
			"replaces none for that alone",
		w.spec.Name, len(c.outdated), instancesAre(w.spec.Size, len(c.outdated)), someOf(c.outdated))
}

func someOf(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}
