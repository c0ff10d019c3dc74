package cli

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// stormNow describes the storm in a word or two.
func stormNow(on story.Group) string {
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
func rollNow(on story.Group) string {
	if on.Roll == nil {
		return ""
	}
	how := map[story.RollState]string{
		story.Rolling: "rolling", story.Stalled: "roll STALLED", story.Stopped: "roll STOPPED",
	}[on.Roll.State]
	return fmt.Sprintf("%s %s %d/%d", how, on.Roll.Template, on.Roll.Done, on.Roll.Total)
}

// ends formats the end of a timer, relative to now.
func ends(t store.Timer, now time.Time) string { return output.Span(t.Start.Add(t.For.D()).Sub(now)) }

// nowLines describes what is in progress in a group, one line each.
func nowLines(st store.Status, slots []store.Versioned[store.Slot], now time.Time) []string {
	var lines []string
	on := story.Of(st)
	if s := st.Storm; s != nil {
		lines = append(lines, "storm: "+stormLine(*s, now))
	}
	if r := st.Rollout; r != nil {
		line := fmt.Sprintf("roll: %d of %d on %s", r.Done, r.Total, r.Template)
		if r.Relaunch > 0 {
			line += fmt.Sprintf(", relaunch %d", r.Relaunch)
		}
		line += fmt.Sprintf(", begun %s ago, last progress %s ago", output.Age(now, r.Since),
			output.Age(now, r.Progress))
		if r.Stalls != nil && !on.Roll.Halted() {
			line += ", stalls in " + ends(*r.Stalls, now)
		}
		lines = append(lines, line)
	}
	if r := st.Rollout; r != nil && r.Fallback != "" {
		why := "until an instance on " + r.Template + " is healthy"
		if r.Blamed != "" {
			why = "since " + r.Template + " is blamed"
		}
		lines = append(lines, fmt.Sprintf("other instances are created from %s, the last good template, %s (ROLL-9)",
			r.Fallback, why))
	} else if r != nil && r.FallbackUnusable != "" {
		lines = append(lines, "the last good template can no longer be used: "+output.OneLine(r.FallbackUnusable))
	}
	if st.Uneven != "" {
		lines = append(lines, "zones: uneven: "+st.Uneven+" (REC-17)")
	}
	if s := st.Shares; s != nil {
		lines = append(lines, sharesLine(s))
	}
	if r := st.Rebalance; r != nil && r.Wait != nil {
		lines = append(lines, fmt.Sprintf("rebalance: %d withdrawn, the next in %s at the earliest: %s", r.Withdrawn,
			ends(*r.Wait, now), output.OneLine(r.Why)))
	}
	for _, v := range slots {
		if line := slotState(v.Record, now); line != "" {
			lines = append(lines, fmt.Sprintf("slot %d: %s", v.Record.Number, line))
		}
	}
	for _, b := range on.Turns {
		lines = append(lines, fmt.Sprintf("in turn: %s %s: %s; until %s", b.Rule, output.OneLine(reason.What(&b)),
			output.OneLine(reason.Why(&b)), output.OneLine(orDash(reason.Until(&b)))))
	}
	if g := st.LastGood; g != nil {
		lines = append(lines, fmt.Sprintf("last good: template %s of revision %d, %s ago", g.Template, g.Revision,
			output.Age(now, g.At)))
	}
	return lines
}

// stormLine describes the extent of a storm and what it waits for.
func stormLine(s store.Storm, now time.Time) string {
	line := fmt.Sprintf("%d of %d lost, since %s", s.Lost, s.Of, output.Age(now, s.Since))
	if s.Shard {
		line += ", across the shard"
	}
	if s.Ended != "" {
		line += "; over: " + output.OneLine(s.Ended)
		if s.By != "" {
			line += ", by " + s.By
		}
		if s.Resume != nil {
			line += "; the remaining lost instances are replaced gradually in the next " + ends(*s.Resume, now)
		}
		return line
	}
	line += "; lost instances are not replaced, dead ones are"
	if s.Calm != nil {
		line += "; ends in " + ends(*s.Calm, now) + " if few are lost"
	}
	switch {
	case s.Probe != "":
		line += "; a probe replacement: " + s.Probe
	case s.Next != nil:
		line += "; a probe replacement in " + ends(*s.Next, now)
	}
	return line
}

// slotState reports that a slot is flapping or given up; "" if neither.
func slotState(s store.Slot, now time.Time) string {
	failures := counted(len(s.Failures), "failure", "failures")
	switch {
	case s.Errored != "":
		return "errored: " + output.OneLine(s.Errored)
	case s.Flapping > 0 && s.Retry == nil:
		return "flapping: " + failures
	case s.Retry != nil && !s.Retry.Start.Add(s.Retry.For.D()).After(now):
		return fmt.Sprintf("flapping: %s, tried again now", failures)
	case s.Retry != nil:
		return fmt.Sprintf("flapping: %s, tried again in %s", failures, ends(*s.Retry, now))
	default:
		return ""
	}
}

// nowProblems returns what is in progress in a group and needs an operator's attention.
func nowProblems(g group, on story.Group, now time.Time) []problem {
	var found []problem
	st := g.Status.Record
	if on.Storm != nil {
		found = append(found, problem{
			About: g.Name, Rule: "SAFE-2", What: "storm: " + stormLine(*st.Storm, now),
			Next: fmt.Sprintf("leasehold explain %s | leasehold group override-storm %s", g.Name, g.Name), looks: 1,
		})
	}
	if r := on.Roll; r.Halted() && r.State == story.Stopped {
		found = append(found, problem{
			About: g.Name, Rule: "FLAP-5",
			What: fmt.Sprintf("the roll to %s has stopped at %d of %d: %s", r.Template, r.Done, r.Total, r.Why),
			Next: fmt.Sprintf("leasehold group rollback %s | leasehold group apply -f FILE", g.Name),
		})
	} else if r.Halted() {
		found = append(found, problem{
			About: g.Name, Rule: "ROLL-4",
			What: fmt.Sprintf("the roll to %s is stalled at %d of %d: %s", r.Template, r.Done, r.Total, r.Why),
			Next: fmt.Sprintf("leasehold explain %s | leasehold group rollback %s", g.Name, g.Name), looks: 1,
		})
	}
	if st.Uneven != "" {
		found = append(found, unevenProblem(g.Name, st))
	}
	if st.Shares != nil && st.Shares.Fallback > 0 {
		found = append(found, fallbackProblem(g.Name, st, now))
	}
	if on.Errored > 0 {
		found = append(found, problem{
			About: g.Name, Rule: "FLAP-3",
			What: counted(on.Errored, "slot is", "slots are") + " given up after too many failures: no more retries",
			Next: fmt.Sprintf("leasehold explain %s | leasehold group retry %s", g.Name, g.Name), looks: 1,
		})
	}
	return found
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
func fallbackProblem(group string, st store.Status, now time.Time) problem {
	s := st.Shares
	p := problem{
		About: group, Rule: "SPOT-4", What: counted(s.Fallback, "instance is", "instances are") + " on demand because there was no spot capacity",
		Next: "leasehold explain " + group,
	}
	if s.Why != "" {
		p.What += ": " + output.OneLine(s.Why)
	}
	if s.Wait != nil {
		p.What += "; spot is tried again in " + ends(*s.Wait, now)
	}
	return p
}

// unevenProblem describes how a group is spread over the zones, and why that is not corrected now.
func unevenProblem(group string, st store.Status) problem {
	p := problem{
		About: group, Rule: "REC-17", What: "the instances are spread unevenly over the zones: " + st.Uneven,
		Next: "leasehold explain " + group, looks: 1,
	}
	if st.Accepted == nil || st.Accepted.Spread != store.SpreadEven {
		p.What += "; running instances are not moved (spread: at_creation)"
		p.Next, p.looks = "leasehold group edit "+group+", for spread: even", 0
	}
	for _, b := range st.Blocked {
		if reason.TopicOf(&b) == reason.TopicSpread {
			p.What += fmt.Sprintf("; %s: %s; until %s", output.OneLine(reason.What(&b)),
				output.OneLine(reason.Why(&b)), output.OneLine(reason.Until(&b)))
		}
	}
	return p
}
