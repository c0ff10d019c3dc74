package reason

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// Fill sets the text and the command of a Blocked from its fields.
func Fill(b *store.Blocked) {
	b.What, b.Why, b.Until, b.Command = What(b), Why(b), Until(b), Command(b)
}

// What names the work that is blocked.
func What(b *store.Blocked) string {
	of := &b.Of
	switch b.Work {
	case store.WorkAll:
		return "all changes"
	case store.WorkInstance:
		return "all work on " + b.Instance
	case store.WorkSlot:
		return fmt.Sprintf("all work on slot %d", of.Slot)
	case store.WorkCreateAll:
		return "creation of all instances"
	case store.WorkCreateMissing:
		return "creation of the missing instances"
	case store.WorkCreateRemaining:
		return "creation of the other missing instances"
	case store.WorkFill:
		return fmt.Sprintf("filling slot %d", of.Slot)
	case store.WorkRemove:
		return "removal of " + b.Instance
	case store.WorkReplace:
		return "replacement of " + b.Instance
	case store.WorkUpdate:
		return "update of " + b.Instance
	case store.WorkRestart:
		return "restart of " + b.Instance
	case store.WorkExpire:
		return "expiry of " + b.Instance
	case store.WorkWithdraw:
		return "withdrawal of " + b.Instance
	case store.WorkDelete:
		return "deletion of " + b.Instance
	case store.WorkForget:
		return "removal of the record of " + b.Instance
	case store.WorkHealth:
		if b.Kind == store.BlockedByOpening {
			return "traffic to " + b.Instance
		}
		return "health of " + b.Instance
	case store.WorkPhase:
		return string(of.Phase) + " of " + b.Instance
	case store.WorkScaleDown:
		return "scale-down"
	case store.WorkScaleDownWell:
		return "scale-down by a healthy instance"
	case store.WorkRoll:
		return "the roll"
	case store.WorkRebalance:
		return fmt.Sprintf("rebalance from zone %s to zone %s", of.Zone, of.To)
	case store.WorkToSpot:
		return "the return of an instance to spot"
	case store.WorkToOnDemand:
		return "the move of a spot instance to on demand"
	case store.WorkUpgrade:
		return "the upgrade of agents"
	case store.WorkMore:
		return fmt.Sprintf("%d more", of.Count)
	default:
		return b.What
	}
}

// Why says what blocks the work.
func Why(b *store.Blocked) string {
	if o := obstacles[b.Kind]; o.why != nil {
		return o.why(b)
	}
	return b.Why
}

// Until says what unblocks the work; "" if nothing is known to.
func Until(b *store.Blocked) string {
	switch o := obstacles[b.Kind]; {
	case o.until != nil:
		return o.until(b)
	case o.command != nil:
		return o.command(b)
	default:
		return b.Until
	}
}

// Command is the command that unblocks the work; "" if there is none, or several to choose from.
func Command(b *store.Blocked) string {
	if o := obstacles[b.Kind]; o.command != nil {
		return o.command(b)
	}
	return b.Command
}

// blamed says why a template is blamed, and what is used meanwhile. An earlier release wrote all of
// it as Text.
func blamed(of *store.BlockedFacts) string {
	text := Short(of.Cause)
	switch {
	case text == "":
		return of.Text
	case of.Name != "":
		return text + "; whatever else is created is made from " + of.Name + " (ROLL-9)"
	default:
		return also(text, "; the last good template can no longer be used: ", of.Text)
	}
}

// decidedBefore names the work that was decided before the group was paused. An earlier release
// wrote it as Text.
func decidedBefore(of *store.BlockedFacts) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, Number(n, what))
		}
	}
	add(of.Creations, "creation")
	add(of.Removals, "removal")
	add(of.Restarts, "restart")
	return cmp.Or(strings.Join(parts, ", "), of.Text)
}

// cause says why the instance goes, or how it is judged. An earlier release wrote that as text.
func cause(of *store.BlockedFacts) string {
	if text := Short(of.Cause); text != "" {
		return text
	}
	return of.Text
}

// returns lists the commands that end the evacuations of a group's zones.
func returns(of *store.BlockedFacts) []string {
	var all []string
	for zone := range strings.SplitSeq(of.Name, ",") {
		all = append(all, "leasehold evacuate "+zone+" --end")
	}
	return all
}

// before puts a text that may be empty before another one.
func before(text, separator, rest string) string {
	if text == "" {
		return rest
	}
	return text + separator + rest
}

// also puts a text that may be empty after another one.
func also(text, separator, more string) string {
	if more == "" {
		return text
	}
	return text + separator + more
}

// connections counts connections as the planner rounds them.
func connections(n int) string {
	if n > 10 {
		return fmt.Sprintf("at most %d connections", n)
	}
	return Number(n, "connection")
}

// machines counts the machines that wait.
func machines(n int) string { return Counted(n, "machine waits", "machines wait") }

// frozenBy says who ordered the freeze.
func frozenBy(of *store.BlockedFacts) string {
	if of.Name == "" {
		return "the group"
	}
	return "the shard by " + of.Name
}

func canaries(n int) string { return Counted(n, "canary is", "canaries are") }
