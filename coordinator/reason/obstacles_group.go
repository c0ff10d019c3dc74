package reason

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

const (
	releaseHold   = "leasehold release"
	repairShard   = "leasehold repair"
	groupRetry    = "leasehold group retry "
	groupEdit     = "leasehold group edit "
	groupPromote  = "leasehold group promote "
	groupRollback = "leasehold group rollback "
)

// shardObstacles concern the shard as a whole.
var shardObstacles = map[store.BlockedKind]obstacle{
	store.BlockedByHold: {
		why: func(b *store.Blocked) string {
			return fmt.Sprintf("the shard is on hold since %s by %s: %s", b.Of.Since.UTC().Format(time.RFC3339), b.Of.Name,
				b.Of.Text)
		},
		until:   always("the hold is released"),
		command: always(releaseHold),
	},
	store.BlockedByStaleState: {
		why: func(b *store.Blocked) string {
			return "a record that concerns every group is missing or cannot be read: " + cause(&b.Of)
		},
		command: always(repairShard),
	},
	store.BlockedByStorm: {
		why: func(b *store.Blocked) string { return fmt.Sprintf("a storm: %d of %d lost", b.Of.Count, b.Of.Limit) },
		until: func(b *store.Blocked) string {
			return fmt.Sprintf("losses stay few for %s, a probe of it succeeds, or leasehold group override-storm %s",
				b.Of.For, b.Of.Group)
		},
	},
	store.BlockedByStormEnd: {
		why:   always("the storm has just ended, and lost instances are replaced one after another"),
		until: func(b *store.Blocked) string { return "its turn comes within " + b.Of.For.String() },
	},
	store.BlockedByClocks: {
		why: func(b *store.Blocked) string {
			return fmt.Sprintf("the clocks of the coordinators differ by %s, and no window opens by a clock that may be wrong",
				b.Of.For)
		},
		until: always("they differ by less than 30s"),
	},
	store.BlockedByLimit: {
		why: func(b *store.Blocked) string {
			reached := fmt.Sprintf("%s %d is reached", b.Of.Name, b.Of.Limit)
			if b.Of.Count == 0 {
				return reached
			}
			return fmt.Sprintf("%s, and %s", reached, Counted(b.Of.Count,
				"slot without an instance comes first", "slots without an instance come first"))
		},
		until: always("an instance is gone, or the limit is raised: leasehold config set"),
	},
	store.BlockedBySharedBudget: {
		why: func(b *store.Blocked) string {
			if b.Of.Count == 0 {
				return fmt.Sprintf("budget_group %s allows none to be taken down", b.Of.Name)
			}
			return fmt.Sprintf("budget_group %s allows %d down at once, and %d %s: %s", b.Of.Name, b.Of.Limit, b.Of.Count,
				are(b.Of.Count), b.Of.Text)
		},
		until: func(b *store.Blocked) string {
			if b.Of.Limit == 0 {
				return "its limit is raised: leasehold config set budget_groups=" + b.Of.Name + ":1"
			}
			return "one of them is healthy again"
		},
	},
}

// groupObstacles concern a group as a whole.
var groupObstacles = map[store.BlockedKind]obstacle{
	store.BlockedByPause: {
		why: func(b *store.Blocked) string {
			return also("the group is paused", "; what was decided before waits too: ", decidedBefore(&b.Of))
		},
		command: forGroup("leasehold group resume "),
	},
	store.BlockedByDamage: {why: causeOf, command: always(repairShard)},
	store.BlockedByMissingList: {
		why: func(b *store.Blocked) string {
			return fmt.Sprintf("no leader has counted the group's records yet, and provider %s has not listed its machines "+
				"to the present one: until then it is not known whether records were lost", b.Of.Name)
		},
		until: func(b *store.Blocked) string { return "provider " + b.Of.Name + " lists its machines" },
	},
	store.BlockedNotStarted: {
		why:     always("the group was applied with --no-start"),
		command: forGroup("leasehold group start "),
	},
	store.BlockedByEvacuation: {
		why:   always("all zones of the group are evacuated"),
		until: func(b *store.Blocked) string { return strings.Join(returns(&b.Of), ", or ") },
		command: func(b *store.Blocked) string {
			if all := returns(&b.Of); len(all) == 1 {
				return all[0]
			}
			return ""
		},
	},
	store.BlockedByUnsettled: {
		why: func(b *store.Blocked) string {
			if b.Of.Flag {
				return "it may wait, and not all of the group is healthy and settled"
			}
			return "not all of the group is healthy and settled"
		},
		until: func(b *store.Blocked) string {
			return "the whole group is healthy and nothing drains" + graceOver(b)
		},
	},
	store.BlockedByBreaker: {
		why: func(b *store.Blocked) string {
			return fmt.Sprintf("%s, more than heal.max_unhealthy allows (%d): what they depend on may be broken",
				Counted(b.Of.Count, "instance fails its checks", "instances fail their checks"), b.Of.Limit)
		},
		until: orAfter("fewer of them fail", ", or it is the probe: one in %s"),
	},
	store.BlockedByWindow: {
		why: func(b *store.Blocked) string {
			if b.Of.Opens.IsZero() {
				return "no window of the group allows it"
			}
			return "no window that allows it is open"
		},
		until: opens,
	},
	store.BlockedByFreeze: {
		why:   func(b *store.Blocked) string { return also("a freeze of "+frozenBy(&b.Of), ": ", b.Of.Text) },
		until: opens,
	},
}

// opens says when planned work may begin again.
func opens(b *store.Blocked) string {
	if b.Of.Opens.IsZero() {
		return "its windows allow it: " + groupEdit + b.Of.Group
	}
	return b.Of.Opens.UTC().Format(time.RFC3339)
}
