package store_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What a release before has written says what it can: a rebalance is not taken for healing.
//
// proves REC-9, HEAL-8
func TestPurposeOfRecordsOfTheReleaseBefore(t *testing.T) {
	for want, rec := range map[store.Purpose]store.Instance{
		store.PurposeSize:   {},
		store.PurposeHeal:   {Replaces: "a"},
		store.PurposeZones:  {Replaces: "a", Rebalances: true},
		store.PurposeShares: {Replaces: "a", Rebalances: true, Converts: true},
		store.PurposeRoll:   {Replaces: "a", Purpose: store.PurposeRoll, Last: store.Decision{Rule: "SAFE-8"}},
	} {
		if got := rec.MadeFor(); got != want {
			t.Errorf("%+v was made for %s", rec, got)
		}
	}
	by := func(rule string) store.Decision { return store.Decision{Rule: rule} }
	for _, c := range []struct {
		want store.Purpose
		rec  store.Instance
	}{
		{"", store.Instance{}},
		{store.PurposeHeal, store.Instance{Drain: &store.Drain{Rule: "DET-7"}}},
		{store.PurposeRoom, store.Instance{Drain: &store.Drain{Rule: "HEAL-8"}}},
		{store.PurposeRoll, store.Instance{Drain: &store.Drain{Rule: "ROLL-1"}}},
		{store.PurposeOrder, store.Instance{Drain: &store.Drain{Rule: "HEAL-8"}, Leaves: store.PurposeOrder}},
		{store.PurposeRoom, store.Instance{Phase: store.Deleting, Last: by("HEAL-8")}},
		{store.PurposeRoll, store.Instance{Phase: store.Deleting, Last: by("ROLL-1")}},
		{"", store.Instance{Phase: store.Deleting, Last: by("SAFE-8")}},
		{"", store.Instance{Phase: store.Checking, Last: by("HEAL-8")}},
		{store.PurposeSpare, store.Instance{Phase: store.Deleting, Last: by("HEAL-8"), Leaves: store.PurposeSpare}},
		{store.PurposeHeal, store.Instance{
			Phase: store.Deleting, Last: by("HEAL-8"), Drain: &store.Drain{Rule: "DET-7"},
		}},
	} {
		if got := c.rec.LeavesBecause(); got != c.want {
			t.Errorf("%+v leaves for %q, want %q", c.rec, got, c.want)
		}
	}
	for want, v := range map[store.Purpose]store.Vacated{
		store.PurposeHeal:  {Instance: "a"},
		store.PurposeRoll:  {Instance: "a", Roll: true},
		store.PurposeOrder: {Instance: "a", Purpose: store.PurposeOrder},
	} {
		if got := v.For(); got != want {
			t.Errorf("%+v is for %s", v, got)
		}
	}
}

// proves DAY-6, SAFE-13
func TestADrillInTheFutureHidesNothing(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	rec := store.Instance{Drill: &store.Drill{Request: "r", At: at}}
	for after, want := range map[time.Duration]bool{
		-time.Hour: false, -30 * time.Second: true, 0: true, store.DrillTime - 1: true, store.DrillTime: false,
	} {
		if got := rec.Drilled(at.Add(after)); got != want {
			t.Errorf("%s after its order it is drilled: %t", after, got)
		}
	}
}
