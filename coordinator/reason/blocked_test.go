package reason

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// facts has every field set.
var facts = store.BlockedFacts{
	Group: "web", Other: "web-1-b", Phase: store.Booting, Slot: 3, Zone: "a", To: "b", Name: "ada", Count: 2, Limit: 5,
	For: store.Duration(time.Minute), Since: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC), Expansion: 1,
	ExpansionUsed: 1, Down: 2, DownUsed: 2, Text: "the text",
	Opens: time.Date(2025, 1, 3, 22, 0, 0, 0, time.UTC),
}

// TestBlocked renders every kind of blocked work: why, and what frees it.
func TestBlocked(t *testing.T) {
	want := map[store.BlockedKind]string{
		store.BlockedByHold:             "the shard is on hold since 2025-01-02T03:04:05Z by ada: the text | the hold is released | leasehold release",
		store.BlockedByPause:            "the group is paused; what was decided before waits too: the text | leasehold group resume web | leasehold group resume web",
		store.BlockedByStaleState:       "a record that concerns every group is missing or cannot be read: the text | leasehold repair | leasehold repair",
		store.BlockedByDamage:           "the text | leasehold repair | leasehold repair",
		store.BlockedByMissingList:      "no leader has counted the group's records yet, and provider ada has not listed its machines to the present one: until then it is not known whether records were lost | provider ada lists its machines | ",
		store.BlockedNotStarted:         "the group was applied with --no-start | leasehold group start web | leasehold group start web",
		store.BlockedByEvacuation:       "all zones of the group are evacuated | leasehold evacuate ada --end | leasehold evacuate ada --end",
		store.BlockedByMaxCreating:      "max_creating is used up | web-1-b has made room | ",
		store.BlockedByMaxDeleting:      "max_deleting is used up | a deletion in progress ends | ",
		store.BlockedByBudget:           "max_expansion 1 (1 in use) and max_unavailable 2 (2 in use) are used up | web-1-b has made room | ",
		store.BlockedByMaxUnavailable:   "max_unavailable 5 is used up | another instance is healthy | ",
		store.BlockedByMaxExpansion:     "max_expansion 5 is used up | another replacement is complete | ",
		store.BlockedByNoExpansion:      "the text; its replacement comes first, and max_expansion is 0 | max_expansion is raised | ",
		store.BlockedByCapacity:         "there are 2 machines, and size and max_expansion allow 5 | one of the leaving instances is gone | ",
		store.BlockedByReplacement:      "the text, and its replacement web-1-b is booting | web-1-b passes all checks | ",
		store.BlockedByHealing:          "web-1-b has to be healed first, and waits for room | web-1-b is being healed | ",
		store.BlockedByUnhealthy:        "2 slots without a healthy instance, and healing comes first | they are healed | ",
		store.BlockedByScaleHealing:     "the replacement web-1-b is in progress | web-1-b is healthy or withdrawn | ",
		store.BlockedByRoll:             "the roll comes first | the roll is complete | ",
		store.BlockedByUnprovedTemplate: "it may wait, and the roll to ada replaces it too | ada is proved by a healthy instance, or the roll ends | ",
		store.BlockedByUnsettled:        "not all of the group is healthy and settled | the whole group is healthy and nothing drains | ",
		store.BlockedByWithdrawal:       "the last one was withdrawn: the text | its wait of 1m0s is over | ",
		store.BlockedByNoSpot:           "there was no spot capacity for 2 instances: the text | its wait of 1m0s is over | ",
		store.BlockedByProtectedShare:   "all instances that could be replaced for it are protected, or their slots flap | leasehold instance protect --off | ",
		store.BlockedByFullZone:         "zone b has no room | the provider is asked again for a machine there | ",
		store.BlockedByProtectedZone:    "all instances in zone a are protected, or their slots flap | leasehold instance protect --off | ",
		store.BlockedByProtection:       "it is protected | leasehold instance protect web-1-a --off | leasehold instance protect web-1-a --off",
		store.BlockedByHealProtection:   "it is protected from healing, and the text | leasehold instance protect web-1-a --off | leasehold instance protect web-1-a --off",
		store.BlockedByProtectedRest:    "the instances that are left are protected | leasehold instance protect --off | ",
		store.BlockedByHealPolicy:       "heal.policy is none, and the text | leasehold instance replace web-1-a | leasehold instance replace web-1-a",
		store.BlockedByAgent:            "its agent cannot be reached now: the text | its agent reports, or it is judged lost | ",
		store.BlockedByConfirmations:    "2 instances still to confirm the last update | one of them confirms it | ",
		store.BlockedByBlamedTemplate:   "the text | another template: leasehold group rollback web, or leasehold group retry web | ",
		store.BlockedByDrain:            "it drains: the text | another instance is healthy in its place, 1m0s is over, or leasehold instance drained web-1-a | ",
		store.BlockedByChecks:           "the text | it passes its checks, or fails after 1m0s | ",
		store.BlockedByChecksGivenUp:    "the text; it is not healed, because slot 3 is given up: ada | it passes its checks, or leasehold group retry web | ",
		store.BlockedByProvider:         "the text | the provider is asked again | ",
		store.BlockedByCopies:           "the provider lists 2 machines more with its tags, which none of our calls made: the text | the tags are taken off what is not the instance, or the machine is removed at the provider | ",
		store.BlockedByBreaker:          "2 instances fail their checks, more than heal.max_unhealthy allows (5): what they depend on may be broken | fewer of them fail, or it is the probe: one in 1m0s | ",
		store.BlockedByCanary:           "2 of 5 canaries are healthy | they have been healthy for 1m0s, or leasehold group promote web | leasehold group promote web",
		store.BlockedByBake:             "zone a is done, and the roll waits | it has been healthy for 1m0s | ",
		store.BlockedByWindow:           "no window that allows it is open | 2025-01-03T22:00:00Z | ",
		store.BlockedByFreeze:           "a freeze of the shard by ada: the text | 2025-01-03T22:00:00Z | ",
		store.BlockedByClocks:           "the clocks of the coordinators differ by 1m0s, and no window opens by a clock that may be wrong | they differ by less than 30s | ",
		store.BlockedByLimit:            "ada 5 is reached, and 2 slots without an instance come first | an instance is gone, or the limit is raised: leasehold config set | ",
		store.BlockedByRefusal:          "provider ada: the text (2 machines wait) | the provider accepts one: it is asked with one machine every 20s | ",
		store.BlockedByEarlierCalls:     "an earlier call may still create its machine | that call has timed out and a list shows no machine | ",
		store.BlockedByAgentStop:        "its machine was set up by hand, and its agent has not confirmed yet that the workload has stopped | the agent confirms it, or an operator says that the machine is gone | leasehold instance delete --gone web-1-a",
		store.BlockedByFlapping:         "slot 3 flaps: 2 failures | its wait of 1m0s is over | ",
		store.BlockedByGivenUpSlot:      "slot 3 is given up: the text | leasehold group retry web | leasehold group retry web",
		store.BlockedByStartup:          "web-1-b works, but not yet for startup_duration | web-1-b has worked for startup_duration | ",
		store.BlockedByOnDemand:         "the text; instances on demand are not replaced | leasehold instance delete web-1-a | leasehold instance delete web-1-a",
		store.BlockedByNewDoom:          "the text, although it was created only now to replace web-1-b | it is 1m0s old (flap.min_delay); check what sends the notice: spot.source | ",
		store.BlockedByStorm:            "a storm: 2 of 5 lost | losses stay few for 1m0s, a probe of it succeeds, or leasehold group override-storm web | ",
		store.BlockedByStormEnd:         "the storm has just ended, and lost instances are replaced one after another | its turn comes within 1m0s | ",
		store.BlockedByOpening:          "it is healthy, and load balancer ada has not confirmed it: the text | the load balancer sends it traffic, or 1m0s is over | ",
		store.BlockedByTraffic:          "it leaves load balancer ada: the text | its last connection ends, or 1m0s is over | ",
		store.BlockedByBalancer:         "load balancer ada has to do its part first: the text | the load balancer answers | ",
		store.BlockedByStormProbe:       "a probe in a storm makes the replacement first, and max_expansion is used up | web-1-b has made room | ",
	}
	for _, kind := range store.BlockedKinds {
		b := store.Blocked{Rule: "HEAL-2", Instance: "web-1-a", Kind: kind, Work: store.WorkReplace, Of: facts}
		Fill(&b)
		if got := strings.Join([]string{b.Why, b.Until, b.Command}, " | "); got != want[kind] {
			t.Errorf("%s:\ngot  %s\nwant %s", kind, got, want[kind])
		}
		if b.What != "replacement of web-1-a" {
			t.Errorf("%s: what: %s", kind, b.What)
		}
		text, err := json.Marshal(b)
		var back store.Blocked
		if err != nil || json.Unmarshal(text, &back) != nil || back != b {
			t.Errorf("%s: %+v comes back as %+v (%v)", kind, b, back, err)
		}
	}
	if len(want) != len(store.BlockedKinds) {
		t.Errorf("%d kinds, %d rendered", len(store.BlockedKinds), len(want))
	}
}

// An instance that leaves a load balancer tells how many of its connections are left.
func TestConnectionsThatAreLeft(t *testing.T) {
	for count, want := range map[int]string{
		1: "it leaves load balancer web, with 1 connection left", 20: "it leaves load balancer web, with at most 20 connections left",
	} {
		b := store.Blocked{
			Rule: "DRAIN-1", Instance: "web-1-a", Kind: store.BlockedByTraffic, Work: store.WorkDelete,
			Of: store.BlockedFacts{Name: "web", Flag: true, Count: count, For: store.Duration(time.Minute)},
		}
		if Fill(&b); b.Why != want {
			t.Errorf("%d: %s, want %s", count, b.Why, want)
		}
	}
}

// TestWork renders every kind of work.
func TestWork(t *testing.T) {
	want := map[store.Work]string{
		store.WorkAll: "all changes", store.WorkInstance: "all work on web-1-a", store.WorkSlot: "all work on slot 3",
		store.WorkCreateAll: "creation of all instances", store.WorkCreateMissing: "creation of the missing instances",
		store.WorkCreateRemaining: "creation of the other missing instances", store.WorkFill: "filling slot 3",
		store.WorkRemove: "removal of web-1-a", store.WorkReplace: "replacement of web-1-a",
		store.WorkUpdate: "update of web-1-a", store.WorkRestart: "restart of web-1-a",
		store.WorkExpire: "expiry of web-1-a", store.WorkWithdraw: "withdrawal of web-1-a",
		store.WorkDelete: "deletion of web-1-a", store.WorkForget: "removal of the record of web-1-a",
		store.WorkHealth: "health of web-1-a", store.WorkPhase: "booting of web-1-a",
		store.WorkScaleDown: "scale-down", store.WorkScaleDownWell: "scale-down by a healthy instance",
		store.WorkRoll: "the roll", store.WorkRebalance: "rebalance from zone a to zone b",
		store.WorkToSpot:     "the return of an instance to spot",
		store.WorkToOnDemand: "the move of a spot instance to on demand",
		store.WorkMore:       "2 more",
	}
	for _, work := range store.Works {
		if got := What(&store.Blocked{Instance: "web-1-a", Work: work, Of: facts}); got != want[work] {
			t.Errorf("%s: got %q, want %q", work, got, want[work])
		}
	}
}

// TestOlderRecords shows what a release without kinds wrote, as it is.
func TestOlderRecords(t *testing.T) {
	old := store.Blocked{Rule: "HEAL-2", What: "what", Why: "why", Until: "until"}
	b := old
	if Fill(&b); b != old {
		t.Errorf("rendered as %+v", b)
	}
	if text, err := json.Marshal(old); err != nil || strings.Contains(string(text), "kind") ||
		strings.Contains(string(text), `"of"`) {
		t.Errorf("empty fields are written: %s (%v)", text, err)
	}
}

// TestTopics checks that the topic of what a release without kinds wrote is the topic of the kind
// which the planner writes for it today.
func TestTopics(t *testing.T) {
	for _, b := range []store.Blocked{
		{Rule: "SAFE-12", Kind: store.BlockedByHold},
		{Rule: "SAFE-2", Kind: store.BlockedByStorm},
		{Rule: "FLAP-5", Kind: store.BlockedByBlamedTemplate},
		{Rule: "FLAP-3", Kind: store.BlockedByGivenUpSlot},
		{Rule: "REC-17", Kind: store.BlockedByRoll, Work: store.WorkRebalance},
		{Rule: "SAFE-15", Kind: store.BlockedByDamage},
		{Rule: "HEAL-12", Kind: store.BlockedByProvider},
		{Rule: "HEAL-2", Kind: store.BlockedByBudget},
		{Rule: "ROLL-1", Kind: store.BlockedByBudget},
		{Rule: "EXP-1", Kind: store.BlockedByMaxExpansion},
		{Rule: "REC-13", Kind: store.BlockedByProtection},
		{Rule: "DRAIN-1", Kind: store.BlockedByDrain},
	} {
		older := store.Blocked{Rule: b.Rule}
		Classify(&b)
		if TopicOf(&b) != TopicOf(&older) || TakesTurn(&b) != TakesTurn(&older) {
			t.Errorf("%s: topic %q, turn %t; a record without kinds: %q, %t", b.Rule, TopicOf(&b), TakesTurn(&b),
				TopicOf(&older), TakesTurn(&older))
		}
	}
}
