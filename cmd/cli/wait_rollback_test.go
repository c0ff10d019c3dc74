package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A wait whose change the coordinator rolls back says so, and advises no rollback. Where none
// follows, it advises one.
//
// proves ROLL-5
func TestWaitForARollThatIsRolledBack(t *testing.T) {
	for _, back := range []bool{true, false} {
		waitWorld(t, func(w *world) {
			g := webGroup(1)
			g.Rollout.AutoRollback = true
			w.put(store.KindGroups, "web", g)
			r := w.start("group scale web 2 --wait")
			st := outdatedWorldAt(w, 10)
			st.Rollout.Blamed = "two of two failed"
			st.LastGood = &store.GoodSpec{Revision: 4, Template: "t1"}
			w.put(store.KindStatus, "web", st)
			if !back {
				r.expect(Failed, "is stuck at 1 of 2", "next: leasehold explain web; or leasehold group rollback web")
				return
			}
			<-time.After(rollbackWithin / 2)
			now := time.Now()
			key := strings.TrimPrefix(w.keys.Event(now, "back"), w.keys.Of(store.KindEvents))
			w.put(store.KindEvents, key, store.JournalEntry{
				Schema: 1, At: now, Rule: "ROLL-5", Group: "web", Why: "two of two failed",
				Effect: store.Effect{Kind: store.EffectRollBack, Name: "t1", Names: []string{"db"}},
			})
			w.put(store.KindGroups, "web", g)
			r.expect(Failed, " back to t1 (auto_rollback): two of two failed; not brought back: what the workloads have "+
				"written, and the values of secrets (db)", "next: leasehold explain web; or leasehold group history web")
			if strings.Contains(r.err.String(), "leasehold group rollback") {
				t.Errorf("it advises a rollback that has happened: %s", r.err.String())
			}
		})
	}
}
