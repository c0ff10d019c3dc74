package reason

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

var update = flag.Bool("update", false, "rewrite testdata")

// facts has every field set.
var facts = store.BlockedFacts{
	Group: "web", Other: "web-1-b", Phase: store.Booting, Slot: 3, Zone: "a", To: "b", Name: "ada", Count: 2, Limit: 5,
	For: store.Duration(time.Minute), Since: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC), Expansion: 1,
	ExpansionUsed: 1, Down: 2, DownUsed: 2, Text: "the text",
	Opens: time.Date(2025, 1, 3, 22, 0, 0, 0, time.UTC),
}

// TestBlocked renders every kind of blocked work: why, and what frees it (testdata/blocked.txt).
func TestBlocked(t *testing.T) {
	var got strings.Builder
	for _, kind := range store.BlockedKinds {
		b := store.Blocked{Rule: "HEAL-2", Instance: "web-1-a", Kind: kind, Work: store.WorkReplace, Of: facts}
		Fill(&b)
		if b.Why == "" || b.What != "replacement of web-1-a" {
			t.Errorf("%s: what %q, why %q", kind, b.What, b.Why)
		}
		fmt.Fprintf(&got, "%s\n", kind)
		for _, text := range []string{b.Why, "until " + b.Until, "command " + b.Command} {
			if text != "until " && text != "command " {
				fmt.Fprintf(&got, "    %s\n", text)
			}
		}
		text, err := json.Marshal(b)
		var back store.Blocked
		if err != nil || json.Unmarshal(text, &back) != nil || back != b {
			t.Errorf("%s: %+v comes back as %+v (%v)", kind, b, back, err)
		}
	}
	const file = "testdata/blocked.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != got.String() {
		t.Errorf("%s says otherwise (%v; go test -update writes it):\n%s", file, err, got.String())
	}
}

// An instance that leaves a load balancer tells how many of its connections are left.
func TestConnectionsThatAreLeft(t *testing.T) {
	for count, want := range map[int]string{
		1:  "it leaves load balancer web, with 1 connection left",
		20: "it leaves load balancer web, with at most 20 connections left",
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
		store.WorkUpgrade:    "the upgrade of agents",
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

// Why a template is blamed, a slot is given up or a pause holds work is shown by fields, and by the
// text alone where a release before wrote no fields.
//
// proves REC-15
func TestReasonsInFields(t *testing.T) {
	fails := store.Cause{Kind: store.CauseTemplateFails, Name: "t2", Count: 3, Limit: 2}
	why := Short(fails)
	for _, test := range []struct {
		kind store.BlockedKind
		of   store.BlockedFacts
		want string
	}{
		{store.BlockedByBlamedTemplate, store.BlockedFacts{Text: "as it was written"}, "as it was written"},
		{store.BlockedByBlamedTemplate, store.BlockedFacts{Cause: fails}, why},
		{
			store.BlockedByBlamedTemplate,
			store.BlockedFacts{Cause: fails, Name: "t1"},
			why + "; whatever else is created is made from t1 (ROLL-9)",
		},
		{
			store.BlockedByBlamedTemplate,
			store.BlockedFacts{Cause: fails, Text: "no image"},
			why + "; the last good template can no longer be used: no image",
		},
		{store.BlockedByPause, store.BlockedFacts{}, "the group is paused"},
		{
			store.BlockedByPause,
			store.BlockedFacts{Creations: 2, Restarts: 1},
			"the group is paused; what was decided before waits too: 2 creations, 1 restart",
		},
		{
			store.BlockedByPause,
			store.BlockedFacts{Text: "1 removal"},
			"the group is paused; what was decided before waits too: 1 removal",
		},
		{
			store.BlockedByGivenUpSlot,
			store.BlockedFacts{Slot: 1, Cause: store.Cause{Kind: store.CauseManyFailures, Count: 4, Limit: 3}},
			"slot 1 is given up: 4 failures, more than flap.give_up_after 3",
		},
		{store.BlockedByGivenUpSlot, store.BlockedFacts{Slot: 1, Text: "often"}, "slot 1 is given up: often"},
		{
			store.BlockedByChecksGivenUp,
			store.BlockedFacts{Slot: 1, Text: "checks 0/1", Cause: store.Cause{Kind: store.CauseFlapsLong, For: 1e9}},
			"checks 0/1; it is not healed, because slot 1 is given up: it has flapped for 1s",
		},
		{
			store.BlockedByChecksGivenUp,
			store.BlockedFacts{Slot: 1, Text: "checks 0/1", Name: "often"},
			"checks 0/1; it is not healed, because slot 1 is given up: often",
		},
		{
			store.BlockedByWithdrawal,
			store.BlockedFacts{Cause: store.Cause{Kind: store.CauseFullZoneEven, Name: "a"}},
			"the last one was withdrawn: zone a has no room, and it was made to even the zones",
		},
	} {
		if got := Why(&store.Blocked{Kind: test.kind, Of: test.of}); got != test.want {
			t.Errorf("%s: got\n%s, want\n%s", test.kind, got, test.want)
		}
	}
}
