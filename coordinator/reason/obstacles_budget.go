package reason

import (
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// budgetObstacles are exhausted budgets, and instances whose work comes first.
var budgetObstacles = map[store.BlockedKind]obstacle{
	store.BlockedByMaxCreating: {
		why: always("max_creating is used up"),
		until: func(b *store.Blocked) string {
			if b.Of.Other != "" {
				return b.Of.Other + " has made room"
			}
			return "an instance that is starting has started"
		},
	},
	store.BlockedByMaxDeleting: {why: always("max_deleting is used up"), until: always("a deletion in progress ends")},
	store.BlockedByBudget: {
		why: func(b *store.Blocked) string {
			of := &b.Of
			if of.Expansion == 0 && of.Down == 0 {
				return "max_expansion and max_unavailable are 0: only dead instances are healed"
			}
			return fmt.Sprintf("max_expansion %d (%d in use) and max_unavailable %d (%d in use) are used up", of.Expansion,
				of.ExpansionUsed, of.Down, of.DownUsed)
		},
		until: budgetFree,
	},
	store.BlockedByStormProbe: {
		why:   always("a probe in a storm makes the replacement first, and max_expansion is used up"),
		until: budgetFree,
	},
	store.BlockedByMaxUnavailable: {
		why:   func(b *store.Blocked) string { return fmt.Sprintf("max_unavailable %d is used up", b.Of.Limit) },
		until: always("another instance is healthy"),
	},
	store.BlockedByMaxExpansion: {
		why:   func(b *store.Blocked) string { return fmt.Sprintf("max_expansion %d is used up", b.Of.Limit) },
		until: always("another replacement is complete"),
	},
	store.BlockedByNoExpansion: {
		why: func(b *store.Blocked) string {
			return before(cause(&b.Of), "; ", "its replacement comes first, and max_expansion is 0")
		},
		until: always("max_expansion is raised"),
	},
	store.BlockedByCapacity: {
		why: func(b *store.Blocked) string {
			return fmt.Sprintf("there %s %s, and size and max_expansion allow %d", are(b.Of.Count),
				Number(b.Of.Count, "machine"), b.Of.Limit)
		},
		until: always("one of the leaving instances is gone"),
	},
	store.BlockedByReplacement: {
		why: func(b *store.Blocked) string {
			return before(cause(&b.Of), ", and ", fmt.Sprintf("its replacement %s is %s", b.Of.Other, b.Of.Phase))
		},
		until: otherIs(" passes all checks"),
	},
	store.BlockedByHealing: {
		why:   otherIs(" comes first, and waits for room"),
		until: otherIs(" is being healed or replaced"),
	},
	store.BlockedByUnhealthy: {
		why: func(b *store.Blocked) string {
			why := Number(b.Of.Count, "slot") + " without a healthy instance"
			if !b.Of.Flag {
				why += ", and healing comes first"
			}
			return why
		},
		until: func(b *store.Blocked) string {
			if b.Of.Flag {
				return "they pass their checks, or leasehold instance replace"
			}
			return "they are healed"
		},
	},
	store.BlockedByScaleHealing: {
		why:   func(b *store.Blocked) string { return "the replacement " + b.Of.Other + " is in progress" },
		until: otherIs(" is healthy or withdrawn"),
	},
	store.BlockedByWithdrawal: {
		why:   func(b *store.Blocked) string { return "the last one was withdrawn: " + cause(&b.Of) },
		until: waited,
	},
	store.BlockedByFullZone: {
		why:   func(b *store.Blocked) string { return "zone " + b.Of.To + " has no room" },
		until: always("the provider is asked again for a machine there"),
	},
	store.BlockedByNoSpot: {
		why: func(b *store.Blocked) string {
			return fmt.Sprintf("there was no spot capacity for %s: %s", Number(b.Of.Count, "instance"), b.Of.Text)
		},
		until: waited,
	},
}

// budgetFree says when there is room for a replacement.
func budgetFree(b *store.Blocked) string {
	switch of := &b.Of; {
	case of.Expansion == 0 && of.Down == 0:
		return "one of them is raised"
	case of.Other != "":
		return of.Other + " has made room"
	}
	return "another replacement is complete"
}
