package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// stormNow describes the storm in a word or two.
func stormNow(on Group) string {
	switch {
	case on.Aftermath != nil:
		return "storm over, resuming"
	case on.Storm == nil:
		return ""
	case on.Storm.Shard:
		return "STORM of the shard: held"
	default:
		return "STORM: held"
	}
}

// rollNow describes the roll in a word or two.
func rollNow(on Group) string {
	if on.Roll == nil {
		return ""
	}
	how := map[RollState]string{
		Rolling: "rolling", Stalled: "roll STALLED", Stopped: "roll STOPPED",
	}[on.Roll.State]
	if on.Roll.State == Rolling && on.Roll.Canary > 0 && on.Roll.Promoted == "" {
		return fmt.Sprintf("canary %s %d/%d", on.Roll.Template, min(on.Roll.Done, on.Roll.Canary), on.Roll.Canary)
	}
	return fmt.Sprintf("%s %s %d/%d", how, on.Roll.Template, on.Roll.Done, on.Roll.Total)
}

// agentsNow describes an upgrade of agents in progress in a word or two.
func agentsNow(w *store.AgentWave) string {
	if w == nil || w.Done >= w.Of || w.Stopped != "" {
		return ""
	}
	return fmt.Sprintf("agents %s %d/%d", reason.OneLine(w.Version), w.Done, w.Of)
}

// Ends formats the end of a timer, relative to now.
func Ends(t store.Timer, now time.Time) string { return reason.Span(t.End().Sub(now)) }

// NowLines describes what is in progress in a group, one line each.
func NowLines(st store.Status, slots []store.Versioned[store.Slot], now time.Time) []string {
	var lines []string
	on := Of(st)
	if s := st.Storm; s != nil {
		lines = append(lines, "storm: "+stormLine(*s, now))
	}
	if b := st.Breaker; b != nil {
		lines = append(lines, breakerLine(b, now))
	}
	if st.Scale != nil && st.Accepted != nil && st.Accepted.Scale != nil {
		lines = append(lines, scaleLine(st, now))
	}
	if r := st.Rollout; r != nil {
		lines = append(lines, rollLine(r, on.Roll.Halted(), now))
		lines = append(lines, stageLines(r, now)...)
		if line := fallbackLine(r); line != "" {
			lines = append(lines, line)
		}
	}
	if w := st.Agents; w != nil {
		lines = append(lines, agentsLine(w, st, now))
	}
	if st.Uneven != "" {
		lines = append(lines, "zones: uneven: "+st.Uneven+" (REC-17)")
	}
	if s := st.Shares; s != nil {
		lines = append(lines, sharesLine(s))
	}
	if r := st.Rebalance; r != nil && r.Wait != nil {
		lines = append(lines, fmt.Sprintf("rebalance: %d withdrawn, the next in %s at the earliest: %s", r.Withdrawn,
			Ends(*r.Wait, now), reason.OneLine(reason.Text(r.Cause, r.Why))))
	}
	for _, v := range slots {
		if line := SlotState(v.Record, now); line != "" {
			lines = append(lines, fmt.Sprintf("slot %d: %s", v.Record.Number, line))
		}
	}
	for _, b := range on.Turns {
		lines = append(lines, fmt.Sprintf("in turn: %s %s: %s; until %s", b.Rule, reason.OneLine(reason.What(&b)),
			reason.OneLine(reason.Why(&b)), reason.OneLine(dashed(reason.Until(&b)))))
	}
	if g := st.LastGood; g != nil {
		lines = append(lines, fmt.Sprintf("last good: template %s of revision %d, %s ago", g.Template, g.Revision,
			reason.Age(now, g.At)))
	}
	return lines
}

// RollProves describes what a roll waits to see before it goes on, and for how long; "" if it does
// not wait.
func RollProves(r store.Rollout, now time.Time) string {
	at := r.RestsTo()
	if at.IsZero() {
		return ""
	}
	what := "its canaries are"
	if r.Zone != "" {
		what = "zone " + r.Zone + " is"
	}
	return fmt.Sprintf(": %s to stay healthy for another %s", what, reason.Span(at.Sub(now)))
}

// breakerLine describes that so many fail their checks that none is healed for it.
func breakerLine(b *store.Breaker, now time.Time) string {
	line := fmt.Sprintf("breaker: %s (heal.max_unhealthy %d), for %s: none is healed for that",
		reason.Counted(b.Count, "fails its checks", "fail their checks"), b.Limit, reason.Age(now, b.Since))
	if b.Probe != "" {
		line += "; a probe: " + b.Probe
	}
	if b.NextProbe != nil {
		line += "; the next probe in " + Ends(*b.NextProbe, now)
	}
	return line + " (ROLL-7)"
}

// rollLine describes the progress of a roll.
func rollLine(r *store.Rollout, halted bool, now time.Time) string {
	line := fmt.Sprintf("roll: %d of %d on %s", r.Done, r.Total, r.Template)
	if r.Relaunch > 0 {
		line += fmt.Sprintf(", relaunch %d", r.Relaunch)
	}
	line += fmt.Sprintf(", begun %s ago, last progress %s ago", reason.Age(now, r.Since), reason.Age(now, r.Progress))
	if r.Stalls != nil && !halted {
		line += ", stalls in " + Ends(*r.Stalls, now)
	}
	return line
}

// fallbackLine describes which template instances outside a roll get; "": the new one.
func fallbackLine(r *store.Rollout) string {
	switch {
	case r.Fallback == "" && r.FallbackUnusable == "":
		return ""
	case r.Fallback == "":
		return "the last good template can no longer be used: " + reason.OneLine(r.FallbackUnusable)
	}
	why := "until an instance on " + r.Template + " is healthy"
	if r.Canary > 0 {
		why = "until its canaries are promoted"
	}
	if r.Blamed != "" {
		why = "since " + r.Template + " is blamed"
	}
	return fmt.Sprintf("other instances are created from %s, the last good template, %s (ROLL-9)", r.Fallback, why)
}

// agentsLine describes an upgrade of agents.
func agentsLine(w *store.AgentWave, st store.Status, now time.Time) string {
	line := fmt.Sprintf("agents: %d of %d of %s, begun %s ago", w.Done, w.Of, reason.OneLine(w.Version),
		reason.Age(now, w.Since))
	switch {
	case w.Stopped != "":
		line += ", stopped by " + w.Stopped
	case w.Done < w.Of:
		line += "; " + waveGoesOn("", st)
	}
	return line + " (PROV-7)"
}

// stageLines describes how far a roll may go, one line each.
func stageLines(r *store.Rollout, now time.Time) (lines []string) {
	var slots []string
	for _, n := range r.Canaries {
		slots = append(slots, fmt.Sprint(n))
	}
	rests := ""
	if at := r.RestsTo(); !at.IsZero() {
		rests = ", goes on in " + reason.Span(at.Sub(now))
		if !r.GraceUntil.IsZero() {
			rests += ", when a grace ends (SAFE-1),"
		}
		rests += " if all stay healthy"
	}
	switch {
	case r.Canary > 0 && r.Promoted != "":
		lines = append(lines, "canaries: promoted: "+reason.OneLine(reason.Text(r.PromotedCause, r.Promoted))+" (ROLL-5)")
	case r.Canary > 0 && len(slots) == 0:
		lines = append(lines, fmt.Sprintf("canaries: 0 of %d (ROLL-5)", r.Canary))
	case r.Canary > 0:
		lines = append(lines, fmt.Sprintf("canaries: %d of %d, slot %s%s (ROLL-5)", len(slots), r.Canary,
			strings.Join(slots, ", "), rests))
	}
	if r.Zone != "" {
		lines = append(lines, "zone "+r.Zone+" of the roll"+rests+" (ROLL-8)")
	}
	if r.Back != "" {
		lines = append(lines, "rolled back from "+r.Back+" by the coordinator (ROLL-5)")
	}
	return lines
}

// stormLine describes the extent of a storm and what it waits for.
func stormLine(s store.Storm, now time.Time) string {
	line := fmt.Sprintf("%d of %d lost, for %s", s.Lost, s.Of, reason.Age(now, s.Since))
	if s.Shard {
		line += ", across the shard"
	}
	if s.Ended != "" {
		line += "; over: " + reason.OneLine(reason.Text(s.EndedCause, s.Ended))
		if s.Resume != nil {
			line += "; the remaining lost instances are replaced gradually in the next " + Ends(*s.Resume, now)
		}
		return line
	}
	line += "; lost instances are not replaced, dead ones are"
	if s.Calm != nil {
		line += "; ends in " + Ends(*s.Calm, now) + " if few are lost"
	}
	switch {
	case s.Probe != "":
		line += "; a probe replacement: " + s.Probe
	case s.NextProbe != nil:
		line += "; a probe replacement in " + Ends(*s.NextProbe, now)
	}
	return line
}

// SlotState reports that a slot is flapping or given up; "" if neither.
func SlotState(s store.Slot, now time.Time) string {
	failures := reason.Counted(len(s.Failures), "failure", "failures")
	switch {
	case s.Errored != "":
		return "errored: " + reason.OneLine(reason.Text(s.ErroredCause, s.Errored))
	case s.Flapping > 0 && s.Retry == nil:
		return "flapping: " + failures
	case s.Retry != nil && !s.Retry.End().After(now):
		return fmt.Sprintf("flapping: %s, tried again now", failures)
	case s.Retry != nil:
		return fmt.Sprintf("flapping: %s, tried again in %s", failures, Ends(*s.Retry, now))
	default:
		return ""
	}
}

// nowProblems returns what is in progress in a group and needs an operator's attention.
func nowProblems(g Known, on Group, now time.Time) []Problem {
	var found []Problem
	st := g.Status.Record
	if on.Storm != nil {
		found = append(found, Problem{
			About: g.Name, Rule: "SAFE-2", What: "storm: " + stormLine(*st.Storm, now),
			Remedies: Inspect("leasehold explain " + g.Name).Or(Run("leasehold group override-storm " + g.Name)),
		})
	}
	if r := on.Roll; r.Halted() && r.State == Stopped {
		found = append(found, Problem{
			About: g.Name, Rule: "FLAP-5",
			What:     fmt.Sprintf("the roll to %s has stopped at %d of %d: %s", r.Template, r.Done, r.Total, r.Why),
			Remedies: Run("leasehold group rollback " + g.Name).Or(Run("leasehold group apply -f FILE")),
		})
	} else if r.Halted() {
		what := fmt.Sprintf("the roll to %s is stalled at %d of %d: %s", r.Template, r.Done, r.Total, r.Why)
		waits := unhealthy(on.Blocked)
		if len(waits) > 0 {
			what += "; it waits for " + FewNames(waits)
		}
		found = append(found, Problem{
			About: g.Name, Rule: "ROLL-4", What: what, Instances: waits,
			Remedies: Inspect("leasehold explain " + g.Name).Or(Run("leasehold group rollback " + g.Name)),
		})
	}
	if p := scaleProblem(g.Name, st); p != nil {
		found = append(found, *p)
	}
	if st.Uneven != "" {
		found = append(found, unevenProblem(g.Name, st))
	}
	if st.Shares != nil && st.Shares.Fallback > 0 {
		found = append(found, fallbackProblem(g.Name, st, now))
	}
	if on.Errored > 0 {
		found = append(found, Problem{
			About: g.Name, Rule: "FLAP-3",
			What:     reason.Counted(on.Errored, "slot is", "slots are") + " given up after too many failures: no more retries",
			Remedies: Inspect("leasehold explain " + g.Name).Or(Run("leasehold group retry " + g.Name)),
		})
	}
	return found
}

// unhealthy are the instances whose checks have not passed yet, which a roll waits for.
func unhealthy(blocked []store.Blocked) (ids []string) {
	for _, b := range blocked {
		if b.Work == store.WorkHealth && b.Instance != "" && !slices.Contains(ids, b.Instance) {
			ids = append(ids, b.Instance)
		}
	}
	return ids
}

// sharesLine describes how a group is divided between spot machines and others.
func sharesLine(s *store.Shares) string {
	line := fmt.Sprintf("capacity: %d of %d wanted spot machines, %d on demand", s.Spot, s.Wanted, s.OnDemand)
	if s.Fallback > 0 {
		line += fmt.Sprintf(", %d of them because there was no spot capacity", s.Fallback)
	}
	return line + " (SPOT-4)"
}

// fallbackProblem describes that instances are on demand because there was no spot capacity.
func fallbackProblem(group string, st store.Status, now time.Time) Problem {
	s := st.Shares
	p := Problem{
		About: group, Rule: "SPOT-4", What: reason.Counted(s.Fallback, "instance is", "instances are") +
			" on demand because there was no spot capacity",
		Remedies: Inspect("leasehold explain " + group),
	}
	if s.Why != "" {
		p.What += ": " + reason.OneLine(s.Why)
	}
	if s.Wait != nil {
		p.What += "; spot is tried again in " + Ends(*s.Wait, now)
	}
	return p
}

// unevenProblem describes how a group is spread over the zones, and why that is not corrected now.
func unevenProblem(group string, st store.Status) Problem {
	p := Problem{
		About: group, Rule: "REC-17", What: "the instances are spread unevenly over the zones: " + st.Uneven,
		Remedies: Inspect("leasehold explain " + group),
	}
	if st.Accepted == nil || st.Accepted.Spread != store.SpreadEven {
		p.What += "; running instances are not moved (spread: at_creation)"
		p.Remedies = Advise("leasehold group edit " + group + ", for spread: even")
	}
	for _, b := range st.Blocked {
		if reason.TopicOf(&b) == reason.TopicSpread {
			p.What += fmt.Sprintf("; %s: %s; until %s", reason.OneLine(reason.What(&b)),
				reason.OneLine(reason.Why(&b)), reason.OneLine(reason.Until(&b)))
		}
	}
	return p
}
