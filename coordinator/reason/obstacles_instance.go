package reason

import (
	"cmp"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

const protect = "leasehold instance protect "

func unprotect(b *store.Blocked) string { return protect + b.Instance + " --off" }

// instanceObstacles concern what is known of an instance, its slot and its workload.
var instanceObstacles = map[store.BlockedKind]obstacle{
	store.BlockedByProtectedShare: {
		why:   always("all instances that could be replaced for it are protected, or their slots flap"),
		until: always(protect + "--off"),
	},
	store.BlockedByProtectedZone: {
		why: func(b *store.Blocked) string {
			return "all instances in zone " + b.Of.Zone + " are protected, or their slots flap"
		},
		until: always(protect + "--off"),
	},
	store.BlockedByProtectedRest: {
		why:   always("the instances that are left are protected"),
		until: always(protect + "--off"),
	},
	store.BlockedByProtection: {
		why: func(b *store.Blocked) string {
			if b.Of.Name != "" {
				return also("it is protected by "+b.Of.Name, ": ", b.Of.Text)
			}
			return "it is protected"
		},
		until: func(b *store.Blocked) string {
			if b.Of.Opens.IsZero() {
				return unprotect(b)
			}
			return b.Of.Opens.UTC().Format(time.RFC3339) + ", or " + unprotect(b)
		},
		command: unprotect,
	},
	store.BlockedByHealProtection: {
		why:     func(b *store.Blocked) string { return "it is protected from healing, and " + cause(&b.Of) },
		command: unprotect,
	},
	store.BlockedByHealPolicy: {
		why:     func(b *store.Blocked) string { return "heal.policy is none, and " + cause(&b.Of) },
		command: forInstance("leasehold instance replace "),
	},
	store.BlockedByAgent: {
		why:   func(b *store.Blocked) string { return "its agent cannot be reached now: " + cause(&b.Of) },
		until: always("its agent reports, or it is judged lost"),
	},
	store.BlockedByDrain: {
		why: func(b *store.Blocked) string { return "it drains: " + cause(&b.Of) },
		until: func(b *store.Blocked) string {
			first := "another instance is healthy in its place"
			if b.Of.Flag {
				first = "its hook ends"
			}
			return fmt.Sprintf("%s, %s is over, or leasehold instance drained %s", first, b.Of.For, b.Instance)
		},
	},
	store.BlockedByBusy: {
		why: always("its workload is busy, as far as is known"),
		until: func(b *store.Blocked) string {
			return fmt.Sprintf("it is idle, or busy.timeout %s is over at %s", b.Of.For,
				b.Of.Opens.UTC().Format(time.RFC3339))
		},
	},
	store.BlockedByChecks: {
		why:   textOf,
		until: orAfter("it passes its checks", ", or fails after %s"),
	},
	store.BlockedByChecksGivenUp: {
		why: func(b *store.Blocked) string {
			return fmt.Sprintf("%s; it is not healed, because slot %d is given up: %s", b.Of.Text, b.Of.Slot,
				cmp.Or(Short(b.Of.Cause), b.Of.Name))
		},
		until: forGroup("it passes its checks, or " + groupRetry),
	},
	store.BlockedByFlapping: {
		why: func(b *store.Blocked) string {
			return fmt.Sprintf("slot %d flaps: %s", b.Of.Slot, Number(b.Of.Count, "failure"))
		},
		until: waited,
	},
	store.BlockedByGivenUpSlot: {
		why: func(b *store.Blocked) string {
			return fmt.Sprintf("slot %d is given up: %s", b.Of.Slot, cause(&b.Of))
		},
		command: forGroup(groupRetry),
	},
	store.BlockedByStartup: {
		why:   otherIs(" works, but not yet for startup_duration"),
		until: otherIs(" has worked for startup_duration"),
	},
	store.BlockedByOnDemand: {
		why:     func(b *store.Blocked) string { return cause(&b.Of) + "; instances on demand are not replaced" },
		command: forInstance("leasehold instance delete "),
	},
	store.BlockedByNewDoom: {
		why: func(b *store.Blocked) string {
			return cause(&b.Of) + ", although it was created only now to replace " + b.Of.Other
		},
		until: func(b *store.Blocked) string {
			return fmt.Sprintf("it is %s old (flap.min_delay); check what sends the notice: spot.source", b.Of.For)
		},
	},
}
