package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// An order to retry goes through all failing slots, in parts that a transaction can hold, and keeps
// no slot from being filled meanwhile.
//
// proves FLAP-3, REC-16
func TestRetryOfManySlots(t *testing.T) {
	for _, slots := range []int{1, 49, 50, 120} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = slots + 1 })
		for n := range slots {
			w.put(w.keys.Slot(w.group, n), store.Slot{
				Schema: store.Schema, Group: w.group, Number: n, Failures: []store.Failure{{At: w.now.Add(-time.Minute)}},
			})
			w.place(fmt.Sprintf("i%d", n), n, store.Running)
		}
		w.order(store.RequestRetry, "")
		filled := false
		for range 5 {
			_, done := w.step()
			for _, a := range done {
				filled = filled || a.To == store.Pending
			}
		}
		left := 0
		for n := range slots {
			if len(read[store.Slot](w, w.keys.Slot(w.group, n)).Record.Failures) > 0 {
				left++
			}
		}
		if pending := read[store.Request](w, w.keys.Request("r")).Present(); pending || left > 0 || !filled {
			t.Errorf("%d slots: %d still have failures, the order is pending: %t, the empty slot is filled: %t", slots, left,
				pending, filled)
		}
	}
}
