package reason

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// rollObstacles delay a roll, an upgrade of agents, or work that waits for one of them.
var rollObstacles = map[store.BlockedKind]obstacle{
	store.BlockedByRoll: {why: always("the roll comes first"), until: always("the roll is complete")},
	store.BlockedByUnprovedTemplate: {
		why: func(b *store.Blocked) string {
			return "it may wait, and the roll to " + b.Of.Name + " replaces it too"
		},
		until: func(b *store.Blocked) string {
			return b.Of.Name + " is proved by a healthy instance, or the roll ends"
		},
	},
	store.BlockedByConfirmations: {
		why: func(b *store.Blocked) string {
			return Number(b.Of.Count, "instance") + " still to confirm the last update"
		},
		until: always("one of them confirms it"),
	},
	store.BlockedByBlamedTemplate: {
		why: func(b *store.Blocked) string { return blamed(&b.Of) },
		until: func(b *store.Blocked) string {
			return "another template: " + groupRollback + b.Of.Group + ", or " + groupRetry + b.Of.Group
		},
	},
	store.BlockedByCanary: {
		why: func(b *store.Blocked) string {
			if b.Of.Count < b.Of.Limit {
				return fmt.Sprintf("%d of %s %s healthy", b.Of.Count, Counted(b.Of.Limit, "canary", "canaries"),
					areOf(b.Of.Count, b.Of.Limit))
			}
			return canaries(b.Of.Limit) + " healthy, and the roll waits"
		},
		until: func(b *store.Blocked) string {
			promote := groupPromote + b.Of.Group
			if b.Of.For == 0 {
				return promote
			}
			return fmt.Sprintf("they have been healthy for %s%s, or %s", b.Of.For, graceOver(b), promote)
		},
		command: forGroup(groupPromote),
	},
	store.BlockedByBake: {
		why: func(b *store.Blocked) string { return "zone " + b.Of.Zone + " is done, and the roll waits" },
		until: func(b *store.Blocked) string {
			return fmt.Sprintf("it has been healthy for %s%s", b.Of.For, graceOver(b))
		},
	},
	store.BlockedByAnalysis: {
		why:   func(b *store.Blocked) string { return fmt.Sprintf("analysis %s: %s", b.Of.Name, b.Of.Text) },
		until: always("its source answers within the bounds of rollout.analysis"),
	},
	store.BlockedByOutage: {
		why: func(b *store.Blocked) string {
			return fmt.Sprintf("provider %s fails since %s: %s", b.Of.Name, b.Of.Since.UTC().Format(time.RFC3339), b.Of.Text)
		},
		until: forGroup("the provider works again (this time is no stall), or " + groupRollback),
	},
	store.BlockedByNoRelease: {
		why: func(b *store.Blocked) string {
			if b.Of.Name == store.AgentAuto {
				return "no coordinator serves a signed agent"
			}
			return "no coordinator serves a signed agent of " + b.Of.Name
		},
		until: always("one is run with --downloads and --agents, and the agent and its .sig are in that directory"),
	},
	store.BlockedByOldCoordinator: {
		why: func(b *store.Blocked) string {
			return fmt.Sprintf("coordinator %s is of %s, and coordinators come before agents of %s", b.Of.Other, b.Of.Text,
				b.Of.Name)
		},
		until: otherIs(" is upgraded"),
	},
	store.BlockedByUpgradeStopped: {
		why: func(b *store.Blocked) string {
			return fmt.Sprintf("%s did not come to %s: %s", b.Of.Other, b.Of.Name, b.Of.Text)
		},
		until: func(b *store.Blocked) string {
			return "agent.version names another version, or " + groupRetry + b.Of.Group
		},
		command: forGroup(groupRetry),
	},
}

// graceOver adds when the grace ends that a wait may not end before.
func graceOver(b *store.Blocked) string {
	if b.Of.Opens.IsZero() {
		return ""
	}
	return ", not before " + b.Of.Opens.UTC().Format(time.RFC3339) + ", when a grace ends (SAFE-1)"
}
