package evidence

import (
	"fmt"
	"testing"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// The memory that is kept for a group counts as what it is, whether it has more slots or more
// instances, and however it has grown.
func TestRoomThatGrows(t *testing.T) {
	e := &Evidence{rooms: map[string]room{}}
	c := cache.NewContent()
	c.Slots["web"] = map[int]store.Versioned[store.Slot]{}
	grow := func(slots, instances int) {
		for n := range slots {
			c.Slots["web"][n] = store.Versioned[store.Slot]{}
		}
		for len(c.ByGroup["web"]) < instances {
			c.ByGroup["web"] = append(c.ByGroup["web"], fmt.Sprintf("web-%d", len(c.ByGroup["web"])))
		}
		e.roomOf(c, "web")
		want := 0
		for _, r := range e.rooms {
			want += r.size()
		}
		if e.roomed != want {
			t.Fatalf("with %d slots and %d instances: room for %d counts as %d", slots, instances, want, e.roomed)
		}
	}
	for n := range 100 {
		grow(100, n)
	}
	grow(200, 100)
	grow(maxRoom+1, 100) // too large to keep
	if len(e.rooms) > 0 {
		t.Errorf("room for %d is kept", e.roomed)
	}
}
