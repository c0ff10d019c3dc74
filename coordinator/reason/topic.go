package reason

import (
	"strings"

	"github.com/leasehold/leasehold/store"
)

// Topic is what a reader already knows when work is blocked: the state of the group or shard that
// causes it.
type Topic string

// The topics. Blocked work without one is a problem of its own.
const (
	TopicNone       Topic = ""
	TopicHold       Topic = "hold"
	TopicStorm      Topic = "storm"
	TopicHaltedRoll Topic = "halted_roll"
	TopicGivenUp    Topic = "given_up"
	TopicSpread     Topic = "spread"
	TopicSpot       Topic = "spot"
	TopicDamage     Topic = "damage"
	TopicProvider   Topic = "provider"
	TopicBudget     Topic = "budget" // other instances use what this one needs
)

var topics = map[store.BlockedKind]Topic{
	store.BlockedByHold: TopicHold, store.BlockedByProvider: TopicProvider, store.BlockedByRefusal: TopicProvider,
	store.BlockedByOutage: TopicProvider,
	store.BlockedByStorm:  TopicStorm, store.BlockedByStormEnd: TopicStorm, store.BlockedByStormProbe: TopicStorm,
	store.BlockedByBlamedTemplate: TopicHaltedRoll,
	store.BlockedByGivenUpSlot:    TopicGivenUp, store.BlockedByChecksGivenUp: TopicGivenUp,
	store.BlockedByDamage: TopicDamage, store.BlockedByMissingList: TopicDamage,
	store.BlockedByBudget: TopicBudget, store.BlockedByMaxCreating: TopicBudget,
	store.BlockedByMaxDeleting: TopicBudget, store.BlockedByMaxUnavailable: TopicBudget,
	store.BlockedByMaxExpansion: TopicBudget, store.BlockedByReplacement: TopicBudget,
	store.BlockedByHealing: TopicBudget, store.BlockedByUnhealthy: TopicBudget, store.BlockedByAgent: TopicBudget,
	store.BlockedByConfirmations: TopicBudget, store.BlockedByUnprovedTemplate: TopicBudget,
	store.BlockedByUnsettled: TopicBudget, store.BlockedByNoSpot: TopicSpot,
	store.BlockedBySharedBudget: TopicBudget,
}

// olderTopics are the topics of entries from releases without kinds.
var olderTopics = map[string]Topic{
	"SAFE-12": TopicHold, "SAFE-2": TopicStorm, "FLAP-5": TopicHaltedRoll, "ROLL-4": TopicHaltedRoll,
	"FLAP-3": TopicGivenUp, "REC-17": TopicSpread, "SAFE-15": TopicDamage, "HEAL-12": TopicProvider,
	"HEAL-2": TopicBudget, "HEAL-3": TopicBudget, "HEAL-4": TopicBudget, "HEAL-7": TopicBudget, "HEAL-8": TopicBudget,
	"ROLL-1": TopicBudget, "ROLL-2": TopicBudget, "EXP-1": TopicBudget,
}

// TopicOf returns the topic of blocked work.
func TopicOf(b *store.Blocked) Topic {
	switch {
	case b.Kind == "":
		return olderTopics[b.Rule]
	case b.Work == store.WorkRebalance:
		return TopicSpread
	case b.Work == store.WorkToSpot || b.Work == store.WorkToOnDemand:
		return TopicSpot
	default:
		return topics[b.Kind]
	}
}

// HeldBy names what blocks work, in a word for metrics.
func HeldBy(b *store.Blocked) string {
	switch TopicOf(b) {
	case TopicStorm:
		return "storm"
	case TopicBudget:
		return "budget"
	case TopicProvider:
		return "provider"
	case TopicGivenUp, TopicHaltedRoll:
		return "flapping"
	case TopicHold:
		return "operator"
	default:
	}
	switch b.Kind {
	case store.BlockedByFlapping, store.BlockedByNewDoom:
		return "flapping"
	case store.BlockedByPause, store.BlockedNotStarted, store.BlockedByProtection, store.BlockedByHealProtection,
		store.BlockedByProtectedRest, store.BlockedByFreeze:
		return "operator"
	default:
		return "other"
	}
}

// TakesTurn reports whether the work only waits for its turn in a roll, a drain or an expiry, or
// until a call cannot be under way any more. That is intended, and no problem.
func TakesTurn(b *store.Blocked) bool {
	if b.Kind == "" {
		return inTurn(b.Rule)
	}
	return b.Turn
}

// Classify sets the fields of a Blocked that follow from its rule. The planner calls it.
func Classify(b *store.Blocked) {
	b.Turn = inTurn(b.Rule) || b.Kind == store.BlockedByEarlierCalls ||
		b.Work == store.WorkUpgrade && b.Kind == store.BlockedByUnsettled ||
		(b.Rule == "REC-17" || b.Rule == "SPOT-4") && b.Kind == store.BlockedByReplacement
}

func inTurn(rule string) bool {
	return rule == "ROLL-1" || rule == "ROLL-2" || rule == "DRAIN-1" || rule == "EXP-1" || rule == "ROLL-5" ||
		rule == "ROLL-6" || rule == "BUSY-1" || rule == "ROLL-8"
}

// OfGroup reports whether all work of the group is blocked.
func OfGroup(b *store.Blocked) bool {
	if b.Kind == "" {
		return b.Instance == "" && b.What == What(&store.Blocked{Work: store.WorkAll})
	}
	return b.Work == store.WorkAll
}

// Same reports whether two Blocked are the same work, blocked by the same rule.
func Same(a, b *store.Blocked) bool {
	return a.Rule == b.Rule && a.Instance == b.Instance && What(a) == What(b)
}

// Cause returns a Blocked without the instance that it is about: work that is blocked for the same
// reason compares equal. A text from a release without kinds may name the instance, and is compared
// as it is.
func Cause(b store.Blocked) store.Blocked {
	if b.Instance = ""; b.Kind != "" {
		b.What, b.Why, b.Until, b.Command = "", "", "", ""
	}
	return b
}

// NamesInstance reports whether What names the instance that the work is about.
func NamesInstance(b *store.Blocked) bool {
	other := *b
	other.Instance = "another instance"
	return What(b) != What(&other) || b.Kind == "" && strings.Contains(b.What, b.Instance)
}
