package reason

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Fill sets the text of a Blocked and its command from its fields.
func Fill(b *store.Blocked) {
	b.What, b.Why, b.Until, b.Command = What(b), Why(b), Until(b), Command(b)
}

// What is the work that is blocked.
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

// Why is what blocks the work.
func Why(b *store.Blocked) string {
	of := &b.Of
	switch b.Kind {
	case store.BlockedByHold:
		return fmt.Sprintf("the shard is on hold since %s by %s: %s", of.Since.UTC().Format(time.RFC3339), of.Name, of.Text)
	case store.BlockedByPause:
		return also("the group is paused", "; what was decided before waits too: ", decidedBefore(of))
	case store.BlockedByStaleState:
		return "a record that concerns every group is missing or cannot be read: " + cause(of)
	case store.BlockedByMissingList:
		return fmt.Sprintf("no leader has counted the group's records yet, and provider %s has not listed its machines to "+
			"the present one: until then it is not known whether records were lost", of.Name)
	case store.BlockedNotStarted:
		return "the group was applied with --no-start"
	case store.BlockedByEvacuation:
		return "all zones of the group are evacuated"
	case store.BlockedByMaxCreating:
		return "max_creating is used up"
	case store.BlockedByMaxDeleting:
		return "max_deleting is used up"
	case store.BlockedByBudget:
		if of.Expansion == 0 && of.Down == 0 {
			return "max_expansion and max_unavailable are 0: only dead instances are healed"
		}
		return fmt.Sprintf("max_expansion %d (%d in use) and max_unavailable %d (%d in use) are used up", of.Expansion,
			of.ExpansionUsed, of.Down, of.DownUsed)
	case store.BlockedByMaxUnavailable:
		return fmt.Sprintf("max_unavailable %d is used up", of.Limit)
	case store.BlockedByMaxExpansion:
		return fmt.Sprintf("max_expansion %d is used up", of.Limit)
	case store.BlockedByNoExpansion:
		return before(cause(of), "; ", "its replacement comes first, and max_expansion is 0")
	case store.BlockedByCapacity:
		return fmt.Sprintf("there are %d machines, and size and max_expansion allow %d", of.Count, of.Limit)
	case store.BlockedByReplacement:
		return before(cause(of), ", and ", fmt.Sprintf("its replacement %s is %s", of.Other, of.Phase))
	case store.BlockedByHealing:
		return of.Other + " has to be healed first, and waits for room"
	case store.BlockedByUnhealthy:
		why := number(of.Count, "slot") + " without a healthy instance"
		if !of.Flag {
			why += ", and healing comes first"
		}
		return why
	case store.BlockedByScaleHealing:
		return "the replacement " + of.Other + " is in progress"
	case store.BlockedByRoll:
		return "the roll comes first"
	case store.BlockedByUnprovedTemplate:
		return "it may wait, and the roll to " + of.Name + " replaces it too"
	case store.BlockedByUnsettled:
		if of.Flag {
			return "it may wait, and not all of the group is healthy and settled"
		}
		return "not all of the group is healthy and settled"
	case store.BlockedByWithdrawal:
		return "the last one was withdrawn: " + cause(of)
	case store.BlockedByFullZone:
		return "zone " + of.To + " has no room"
	case store.BlockedByNoSpot:
		return fmt.Sprintf("there was no spot capacity for %s: %s", number(of.Count, "instance"), of.Text)
	case store.BlockedByProtectedShare:
		return "all instances that could be replaced for it are protected, or their slots flap"
	case store.BlockedByProtectedZone:
		return "all instances in zone " + of.Zone + " are protected, or their slots flap"
	case store.BlockedByProtection:
		if of.Name != "" {
			return also("it is protected by "+of.Name, ": ", of.Text)
		}
		return "it is protected"
	case store.BlockedByHealProtection:
		return "it is protected from healing, and " + cause(of)
	case store.BlockedByProtectedRest:
		return "the instances that are left are protected"
	case store.BlockedByHealPolicy:
		return "heal.policy is none, and " + cause(of)
	case store.BlockedByAgent:
		return "its agent cannot be reached now: " + cause(of)
	case store.BlockedByConfirmations:
		return number(of.Count, "instance") + " still to confirm the last update"
	case store.BlockedByDrain:
		return "it drains: " + cause(of)
	case store.BlockedByChecksGivenUp:
		return fmt.Sprintf("%s; it is not healed, because slot %d is given up: %s", of.Text, of.Slot,
			cmp.Or(Short(of.Cause), of.Name))
	case store.BlockedByEarlierCalls:
		return "an earlier call may still create its machine"
	case store.BlockedByAgentStop:
		return "its machine was set up by hand, and its agent has not confirmed yet that the workload has stopped"
	case store.BlockedByFlapping:
		return fmt.Sprintf("slot %d flaps: %s", of.Slot, number(of.Count, "failure"))
	case store.BlockedByGivenUpSlot:
		return fmt.Sprintf("slot %d is given up: %s", of.Slot, cause(of))
	case store.BlockedByStartup:
		return of.Other + " works, but not yet for startup_duration"
	case store.BlockedByOnDemand:
		return cause(of) + "; instances on demand are not replaced"
	case store.BlockedByNewDoom:
		return cause(of) + ", although it was created only now to replace " + of.Other
	case store.BlockedByStorm:
		return fmt.Sprintf("a storm: %d of %d lost", of.Count, of.Limit)
	case store.BlockedByStormEnd:
		return "the storm has just ended, and lost instances are replaced one after another"
	case store.BlockedByStormProbe:
		return "a probe in a storm makes the replacement first, and max_expansion is used up"
	case store.BlockedByOpening:
		return fmt.Sprintf("it is healthy, and load balancer %s has not confirmed it: %s", of.Name, of.Text)
	case store.BlockedByTraffic:
		if of.Flag {
			return fmt.Sprintf("it leaves load balancer %s, with %s left", of.Name, connections(of.Count))
		}
		return fmt.Sprintf("it leaves load balancer %s: %s", of.Name, of.Text)
	case store.BlockedByBalancer:
		return fmt.Sprintf("load balancer %s has to do its part first: %s", of.Name, of.Text)
	case store.BlockedByBreaker:
		return fmt.Sprintf("%d instances fail their checks, more than heal.max_unhealthy allows (%d): what they depend on "+
			"may be broken", of.Count, of.Limit)
	case store.BlockedByCanary:
		if of.Count < of.Limit {
			return fmt.Sprintf("%d of %s healthy", of.Count, canaries(of.Limit))
		}
		return canaries(of.Limit) + " healthy, and the roll waits"
	case store.BlockedByBake:
		return "zone " + of.Zone + " is done, and the roll waits"
	case store.BlockedByWindow:
		if of.Opens.IsZero() {
			return "no window of the group allows it"
		}
		return "no window that allows it is open"
	case store.BlockedByFreeze:
		return also("a freeze of "+frozenBy(of), ": ", of.Text)
	case store.BlockedByNoRelease:
		if of.Name == store.AgentAuto {
			return "no coordinator serves a signed agent"
		}
		return "no coordinator serves a signed agent of " + of.Name
	case store.BlockedByOldCoordinator:
		return fmt.Sprintf("coordinator %s is of %s, and coordinators come before agents of %s", of.Other, of.Text, of.Name)
	case store.BlockedByUpgradeStopped:
		return fmt.Sprintf("%s did not come to %s: %s", of.Other, of.Name, of.Text)
	case store.BlockedByBusy:
		return "its workload is busy, as far as is known"
	case store.BlockedByClocks:
		return fmt.Sprintf(
			"the clocks of the coordinators differ by %s, and no window opens by a clock that may be wrong",
			of.For,
		)
	case store.BlockedByLimit:
		if of.Count > 0 {
			return fmt.Sprintf("%s %d is reached, and %s without an instance come first", of.Name, of.Limit,
				number(of.Count, "slot"))
		}
		return fmt.Sprintf("%s %d is reached", of.Name, of.Limit)
	case store.BlockedByAnalysis:
		return fmt.Sprintf("analysis %s: %s", of.Name, of.Text)
	case store.BlockedBySharedBudget:
		if of.Count == 0 {
			return fmt.Sprintf("budget_group %s allows none to be taken down", of.Name)
		}
		return fmt.Sprintf("budget_group %s allows %d down at once, and %d are: %s", of.Name, of.Limit, of.Count, of.Text)
	case store.BlockedByRefusal:
		return fmt.Sprintf("provider %s: %s (%s)", of.Name, of.Text, machines(of.Count))
	case store.BlockedByCopies:
		return fmt.Sprintf("the provider lists %s more with its tags, which none of our calls made: %s",
			number(of.Count, "machine"), of.Text)
	case store.BlockedByBlamedTemplate:
		return blamed(of)
	case store.BlockedByDamage:
		return cause(of)
	case store.BlockedByChecks, store.BlockedByProvider:
		return of.Text
	default:
		return b.Why
	}
}

// Command is the one command that frees the work; "" if there is none, or a choice of several.
func Command(b *store.Blocked) string {
	of := &b.Of
	switch b.Kind {
	case store.BlockedByHold:
		return "leasehold release"
	case store.BlockedByPause:
		return "leasehold group resume " + of.Group
	case store.BlockedByCanary:
		return "leasehold group promote " + of.Group
	case store.BlockedByStaleState, store.BlockedByDamage:
		return "leasehold repair"
	case store.BlockedNotStarted:
		return "leasehold group start " + of.Group
	case store.BlockedByEvacuation:
		if all := returns(of); len(all) == 1 {
			return all[0]
		}
		return ""
	case store.BlockedByProtection, store.BlockedByHealProtection:
		return "leasehold instance protect " + b.Instance + " --off"
	case store.BlockedByHealPolicy:
		return "leasehold instance replace " + b.Instance
	case store.BlockedByProvider:
		if of.Flag {
			return "leasehold group edit " + of.Group
		}
		return b.Command
	case store.BlockedByGivenUpSlot, store.BlockedByUpgradeStopped:
		return "leasehold group retry " + of.Group
	case store.BlockedByAgentStop:
		return "leasehold instance delete --gone " + b.Instance
	case store.BlockedByOnDemand:
		return "leasehold instance delete " + b.Instance
	default:
		return b.Command
	}
}

// blamed says why a template is blamed, and what is used meanwhile. The release before wrote all of
// it as Text.
func blamed(of *store.BlockedFacts) string {
	text := Short(of.Cause)
	switch {
	case text == "":
		return of.Text
	case of.Name != "":
		return text + "; whatever else is created is made from " + of.Name + " (ROLL-9)"
	default:
		return also(text, "; the last good template is of no use any more: ", of.Text)
	}
}

// decidedBefore is the work that was decided before the group was paused. A release before wrote it
// as Text.
func decidedBefore(of *store.BlockedFacts) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, number(n, what))
		}
	}
	add(of.Creations, "creation")
	add(of.Removals, "removal")
	add(of.Restarts, "restart")
	return cmp.Or(strings.Join(parts, ", "), of.Text)
}

// cause is why the instance goes, or how it is judged. A release before wrote that as text.
func cause(of *store.BlockedFacts) string {
	if text := Short(of.Cause); text != "" {
		return text
	}
	return of.Text
}

// returns are the commands that end the evacuations of a group's zones.
func returns(of *store.BlockedFacts) []string {
	var all []string
	for zone := range strings.SplitSeq(of.Name, ",") {
		all = append(all, "leasehold evacuate "+zone+" --end")
	}
	return all
}

// before puts a text that may be empty before another.
func before(text, separator, rest string) string {
	if text == "" {
		return rest
	}
	return text + separator + rest
}

// also puts a text that may be empty after another.
func also(text, separator, more string) string {
	if more == "" {
		return text
	}
	return text + separator + more
}

func number(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// connections counts them as the planner rounds them.
func connections(n int) string {
	if n > 10 {
		return fmt.Sprintf("at most %d connections", n)
	}
	return number(n, "connection")
}

// machines counts the machines that wait.
func machines(n int) string {
	if n == 1 {
		return "1 machine waits"
	}
	return fmt.Sprintf("%d machines wait", n)
}

// frozenBy says whose freeze it is.
func frozenBy(of *store.BlockedFacts) string {
	if of.Name == "" {
		return "the group"
	}
	return "the shard by " + of.Name
}

func canaries(n int) string {
	if n == 1 {
		return "1 canary is"
	}
	return fmt.Sprintf("%d canaries are", n)
}
