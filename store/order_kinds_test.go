package store_test

import (
	"slices"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// An order that is repeated has the ID that it had before, also after an upgrade: it is carried out
// once. Others have IDs of their own.
func TestIDsOfOrdersThatMayBeRepeated(t *testing.T) {
	id := store.OnceID("ann", "k1")
	if want := "once-2efd9ff006a666c0b1431747af301283"; id != want {
		t.Errorf("the ID is %s, and releases before have %s", id, want)
	}
	for giver, key := range map[string]string{"ann": "k2", "bob": "k1", "annk": "1"} {
		if other := store.OnceID(giver, key); other == id {
			t.Errorf("%s with %s has the ID of another order", giver, key)
		}
	}
	for id, want := range map[string]bool{id: true, "": false, "r-once-1": false, "0123456789abcdef": false} {
		if store.IsOnce(id) != want {
			t.Errorf("%q may be repeated: %t", id, !want)
		}
	}
}

// Each kind of drill that a group's file can name can be ordered, and no other order is a drill.
//
// proves DAY-6
func TestOrdersOfDrills(t *testing.T) {
	drills := map[store.RequestKind]string{
		store.RequestDrill: "machine", store.RequestDrillAgent: "agent", store.RequestDrillWorkload: "workload",
	}
	var ordered []string
	for _, kind := range declaredKinds(t)["RequestKind"] {
		got := store.RequestKind(kind).Drill()
		if got != drills[store.RequestKind(kind)] {
			t.Errorf("%s orders the drill %q", kind, got)
		}
		if got != "" {
			ordered = append(ordered, got)
		}
	}
	slices.Sort(ordered)
	if want := slices.Sorted(slices.Values(store.DrillKinds)); !slices.Equal(ordered, want) {
		t.Errorf("drills of kinds %q can be ordered, want %q", ordered, want)
	}
}
