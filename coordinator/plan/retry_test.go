package plan

import (
	"fmt"
	"slices"
	"strings"
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

// A roll that an analysis has stopped goes on by an order to retry, also where slots have failures.
// Until then no promotion is accepted.
//
// proves ROLL-5, REC-16
func TestRetryOfAStoppedRoll(t *testing.T) {
	for _, failures := range []bool{false, true} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) {
			g.Size, g.Rollout.Canary = 3, 1
			g.Rollout.Analysis = []store.Analysis{{From: "errors", Max: new(0.1)}}
		})
		for n, id := range []string{"a", "b", "c"} {
			w.place(id, n, store.Running, outdated)
		}
		w.step()
		st := read[store.Status](w, w.keys.Status(w.group)).Record
		if st.Rollout == nil {
			t.Fatal("no roll")
		}
		st.Rollout.Failed, st.Rollout.Blamed = true, "analysis errors: it is 1"
		st.Rollout.Canary, st.Rollout.Promoted = 1, ""
		w.put(w.keys.Status(w.group), st)
		if failures {
			w.put(w.keys.Slot(w.group, 1), store.Slot{
				Schema: store.Schema, Group: w.group, Number: 1, Failures: []store.Failure{{At: w.now.Add(-time.Minute)}},
			})
		}
		w.order(store.RequestPromote, "")
		_, done := w.step()
		if !slices.ContainsFunc(done, func(a Action) bool {
			return a.Kind == store.EntryRefusal && strings.HasPrefix(a.Why, "its roll has stopped: analysis errors: it is 1")
		}) {
			t.Errorf("failures %t: the promotion is not refused", failures)
		}
		w.order(store.RequestRetry, "")
		for range 3 {
			w.step()
		}
		r := read[store.Status](w, w.keys.Status(w.group)).Record.Rollout
		left := len(read[store.Slot](w, w.keys.Slot(w.group, 1)).Record.Failures)
		if r == nil || r.Failed || r.Blamed != "" || left > 0 || read[store.Request](w, w.keys.Request("r")).Present() {
			t.Errorf("failures %t: %d are left, and the roll is %+v", failures, left, r)
		}
	}
}
