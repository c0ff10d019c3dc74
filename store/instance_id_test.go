package store_test

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// An instance's ID names its group and its slot; other IDs name nothing.
//
// proves SAFE-17
func TestPlaceOfAnID(t *testing.T) {
	for id, want := range map[string]struct {
		group    string
		slot     int
		onDemand bool
		known    bool
	}{
		"web-0-bcdfgh":    {"web", 0, false, true},
		"web-12-b":        {"web", 12, false, true},
		"my-web-3-bcdfgh": {"my-web", 3, false, true},
		"web-x-bcdfgh":    {"web", -1, true, true},
		"web-y-bcdfgh":    {known: false},
		"web-1e3-bcdfgh":  {known: false},
		"web-0-":          {known: false},
		"-0-bcdfgh":       {known: false},
		"0-bcdfgh":        {known: false},
		"x-bcdfgh":        {known: false},
		"-x-bcdfgh":       {known: false},
		"web":             {known: false},
		"":                {known: false},
		"-":               {known: false},
	} {
		group, slot, onDemand, known := store.PlaceOf(id)
		if known != want.known || onDemand != want.onDemand || known && (group != want.group || slot != want.slot) {
			t.Errorf("%q: %q, slot %d, on demand %t, known %t", id, group, slot, onDemand, known)
		}
	}
}
