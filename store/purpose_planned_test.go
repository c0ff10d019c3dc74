package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Only an instance that leaves by plan is asked whether it is busy: what heals, follows a notice or
// an order does not wait.
//
// proves BUSY-1
func TestPurposesThatArePlanned(t *testing.T) {
	planned := []store.Purpose{
		store.PurposeRoll, store.PurposeAge, store.PurposeZones, store.PurposeShares, store.PurposeSize,
	}
	all := declaredKinds(t)["Purpose"]
	if len(all) < 10 {
		t.Errorf("only %d purposes were found", len(all))
	}
	for _, p := range append(all, "") {
		if want := slices.Contains(planned, store.Purpose(p)); store.Purpose(p).Planned() != want {
			t.Errorf("%q is planned: %t", p, !want)
		}
	}
}

// A release before wrote instances that drain without a record of the drain: the rule says why.
func TestWhyAnInstanceWithoutARecordOfItsDrainLeaves(t *testing.T) {
	rec := store.Instance{Phase: store.Draining, Last: store.Decision{Rule: "HEAL-8"}}
	if got := rec.LeavesBecause(); got != store.PurposeRoom {
		t.Errorf("it leaves for %q", got)
	}
}

// A failure is a part of a drill from a minute before the order on, since clocks differ, and an
// instance without a drill has none.
//
// proves DAY-6
func TestFromWhenOnAFailureIsOfADrill(t *testing.T) {
	rec := store.Instance{Drill: &store.Drill{Request: "r", At: noon}}
	for after, want := range map[time.Duration]bool{
		-75 * time.Second: false, -time.Minute: false, -time.Minute + 1: true,
	} {
		if got := rec.Drilled(noon.Add(after)); got != want {
			t.Errorf("%s after its order it is drilled: %t", after, got)
		}
	}
	if (&store.Instance{}).Drilled(noon) {
		t.Error("an instance is drilled without an order")
	}
}
