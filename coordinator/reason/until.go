package reason

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Until is what frees the work; "" if nothing is known to.
func Until(b *store.Blocked) string {
	of := &b.Of
	switch b.Kind {
	case store.BlockedByHold:
		return "the hold is released"
	case store.BlockedByMissingList:
		return "provider " + of.Name + " lists its machines"
	case store.BlockedByProtection:
		if of.Opens.IsZero() {
			return Command(b)
		}
		return of.Opens.UTC().Format(time.RFC3339) + ", or " + Command(b)
	case store.BlockedByPause, store.BlockedByStaleState, store.BlockedByDamage, store.BlockedNotStarted,
		store.BlockedByHealProtection, store.BlockedByHealPolicy, store.BlockedByGivenUpSlot, store.BlockedByOnDemand:
		return Command(b)
	case store.BlockedByEvacuation:
		return strings.Join(returns(of), ", or ")
	case store.BlockedByMaxCreating:
		if of.Other != "" {
			return of.Other + " has made room"
		}
		return "an instance that is starting has started"
	case store.BlockedByMaxDeleting:
		return "a deletion in progress ends"
	case store.BlockedByBudget, store.BlockedByStormProbe:
		switch {
		case of.Expansion == 0 && of.Down == 0:
			return "one of them is raised"
		case of.Other != "":
			return of.Other + " has made room"
		}
		return "another replacement is complete"
	case store.BlockedByMaxUnavailable:
		return "another instance is healthy"
	case store.BlockedByMaxExpansion:
		return "another replacement is complete"
	case store.BlockedByNoExpansion:
		return "max_expansion is raised"
	case store.BlockedByCapacity:
		return "one of the leaving instances is gone"
	case store.BlockedByReplacement:
		return of.Other + " passes all checks"
	case store.BlockedByHealing:
		return of.Other + " is being healed"
	case store.BlockedByUnhealthy:
		if of.Flag {
			return "they pass their checks, or leasehold instance replace"
		}
		return "they are healed"
	case store.BlockedByScaleHealing:
		return of.Other + " is healthy or withdrawn"
	case store.BlockedByRoll:
		return "the roll is complete"
	case store.BlockedByUnprovedTemplate:
		return of.Name + " is proved by a healthy instance, or the roll ends"
	case store.BlockedByUnsettled:
		return "the whole group is healthy and nothing drains"
	case store.BlockedByWithdrawal, store.BlockedByFlapping, store.BlockedByNoSpot:
		if of.For == 0 {
			return "its wait is over"
		}
		return fmt.Sprintf("its wait of %s is over", of.For)
	case store.BlockedByFullZone:
		return "the provider is asked again for a machine there"
	case store.BlockedByProtectedZone, store.BlockedByProtectedShare, store.BlockedByProtectedRest:
		return "leasehold instance protect --off"
	case store.BlockedByAgent:
		return "its agent reports, or it is judged lost"
	case store.BlockedByConfirmations:
		return "one of them confirms it"
	case store.BlockedByBlamedTemplate:
		return "another template: leasehold group rollback " + of.Group + ", or leasehold group retry " + of.Group
	case store.BlockedByDrain:
		first := "another instance is healthy in its place"
		if of.Flag {
			first = "its hook ends"
		}
		return fmt.Sprintf("%s, %s is over, or leasehold instance drained %s", first, of.For, b.Instance)
	case store.BlockedByChecks:
		if of.For > 0 {
			return fmt.Sprintf("it passes its checks, or fails after %s", of.For)
		}
		return "it passes its checks"
	case store.BlockedByChecksGivenUp:
		return "it passes its checks, or leasehold group retry " + of.Group
	case store.BlockedByProvider:
		if of.Flag {
			return "the group or the provider's file is corrected; the provider is asked again meanwhile"
		}
		return "the provider is asked again"
	case store.BlockedByBreaker:
		if of.For > 0 {
			return fmt.Sprintf("fewer of them fail, or it is the probe: one in %s", of.For)
		}
		return "fewer of them fail"
	case store.BlockedByCanary:
		if of.For == 0 {
			return Command(b)
		}
		return fmt.Sprintf("they have been healthy for %s, or %s", of.For, Command(b))
	case store.BlockedByBake:
		return fmt.Sprintf("it has been healthy for %s", of.For)
	case store.BlockedByWindow, store.BlockedByFreeze:
		if of.Opens.IsZero() {
			return "its windows allow it: leasehold group edit " + of.Group
		}
		return of.Opens.UTC().Format(time.RFC3339)
	case store.BlockedByNoRelease:
		return "one is run with --downloads, and the agent and its .sig beside it"
	case store.BlockedByOldCoordinator:
		return of.Other + " is upgraded"
	case store.BlockedByUpgradeStopped:
		return "agent.version names another version, or " + Command(b)
	case store.BlockedByBusy:
		return fmt.Sprintf("it is idle, or busy.timeout %s is over at %s", of.For, of.Opens.UTC().Format(time.RFC3339))
	case store.BlockedByClocks:
		return "they differ by less than 30s"
	case store.BlockedByLimit:
		return "an instance is gone, or the limit is raised: leasehold config set"
	case store.BlockedByAnalysis:
		return "its source answers within the bounds of rollout.analysis"
	case store.BlockedBySharedBudget:
		if of.Limit == 0 {
			return "its limit is raised: leasehold config set budget_groups=" + of.Name + ":1"
		}
		return "one of them is healthy again"
	case store.BlockedByRefusal:
		return "the provider accepts one: it is asked with one machine every 20s"
	case store.BlockedByCopies:
		return "the tags are taken off what is not the instance, or the machine is removed at the provider"
	case store.BlockedByEarlierCalls:
		return "that call has timed out and a list shows no machine"
	case store.BlockedByAgentStop:
		return "the agent confirms it, or an operator says that the machine is gone"
	case store.BlockedByStartup:
		return of.Other + " has worked for startup_duration"
	case store.BlockedByNewDoom:
		return fmt.Sprintf("it is %s old (flap.min_delay); check what sends the notice: spot.source", of.For)
	case store.BlockedByStorm:
		return fmt.Sprintf("losses stay few for %s, a probe of it succeeds, or leasehold group override-storm %s", of.For,
			of.Group)
	case store.BlockedByStormEnd:
		return "its turn comes within " + of.For.String()
	case store.BlockedByOpening:
		if of.For > 0 {
			return fmt.Sprintf("the load balancer sends it traffic, or %s is over", of.For)
		}
		return "the load balancer sends it traffic"
	case store.BlockedByTraffic:
		if of.For > 0 {
			return fmt.Sprintf("its last connection ends, or %s is over", of.For)
		}
		return "its last connection ends"
	case store.BlockedByBalancer:
		return "the load balancer answers"
	default:
		return b.Until
	}
}
