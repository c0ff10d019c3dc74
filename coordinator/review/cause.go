package review

import "github.com/leasehold/leasehold/store"

// Why slots are not served, and machines made.
const (
	Died       = "machine died"
	Silent     = "agent silent"
	Failing    = "checks failed"
	NotHealthy = "never healthy"
	Change     = "change"
	Age        = "age"
	Order      = "order"
	Notice     = "notice or evacuation"
	Rebalance  = "rebalancing"
	Capacity   = "kind of capacity"
	Growth     = "first instance of a slot"
	Drill      = "drill"
	Earlier    = "before the span"
	Other      = "other"
)

// whyOf returns why an entry was made, for a sum.
func whyOf(e *store.JournalEntry) string {
	switch e.Verdict {
	case store.Dead:
		return Died
	case store.Lost:
		return Silent
	case store.Unhealthy:
		return Failing
	case store.Stuck:
		return NotHealthy
	default: // the entry is not about a failure by verdict
	}
	switch e.Cause.Kind {
	case store.CauseDead, store.CauseDown, store.CauseDownStreamOpen, store.CauseDownFenced, store.CauseDownLeaseEnded,
		store.CauseGone, store.CauseUnlisted, store.CauseUnlistedNow, store.CauseUnknown:
		return Died
	case store.CauseNoReturn, store.CauseLeaseEnded:
		return Silent
	case store.CauseUnhealthy, store.CauseWorkloadEnded, store.CauseRebooted, store.CauseCalledDown,
		store.CauseOtherBoot, store.CauseOtherBootListed, store.CauseBootUnordered:
		return Failing
	case store.CauseNeverHealthy, store.CauseNeverRegistered, store.CauseNotMade, store.CauseNotOpened:
		return NotHealthy
	case store.CauseOutdated, store.CauseUnwanted, store.CauseRollStopped, store.CauseObsolete:
		return Change
	case store.CauseAge:
		return Age
	case store.CauseOrder, store.CauseAdopted:
		return Order
	case store.CauseNotice, store.CauseEmptied, store.CauseEvacuated:
		return Notice
	case store.CauseEven, store.CauseUneven, store.CauseFullZone, store.CauseFullZoneEven:
		return Rebalance
	case store.CauseShares, store.CauseTooManySpot, store.CauseTooFewSpot, store.CauseNoSpot, store.CauseNoSpotServes:
		return Capacity
	case store.CauseUnfilled:
		return Growth
	default:
		return Other
	}
}

// endsSlot reports whether an instance leaves because its slot is no longer wanted.
func endsSlot(e *store.JournalEntry) bool {
	switch e.Cause.Kind {
	case store.CauseSmaller, store.CauseGroupEnds, store.CauseTaskDone, store.CauseExitZero:
		return true
	default:
		return e.To == store.Finished
	}
}
