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

// Rollbacks of two operators' changes may arrive together. A wait reports the one of its own
// change; if there is none, another operator's change stands in its place.
//
// proves ROLL-5
func TestWaitReportsTheRollbackOfItsOwnChange(t *testing.T) {
	const own, other = 10, 12 // revisions of the specs
	rollback := func(of store.Revision, to, why string) store.JournalEntry {
		e := store.JournalEntry{
			Schema: 1, At: time.Now(), Rule: "ROLL-5", Group: "web", Why: why,
			Effect: store.Effect{Kind: store.EffectRollBack, Name: to},
		}
		if of > 0 {
			e.Facts = []store.Fact{{Kind: store.FactSpec, Name: "web", Rev: of}, {Kind: store.FactGoodSpec, Rev: 4}}
		}
		return e
	}
	ours, theirs := rollback(own, "t1", "ours failed"), rollback(other, "t3", "theirs failed")
	for name, c := range map[string]struct {
		entries []store.JournalEntry
		code    Code
		says    string
	}{
		"both":                 {[]store.JournalEntry{ours, theirs}, Failed, " back to t1 (auto_rollback): ours failed"},
		"of theirs":            {[]store.JournalEntry{theirs}, Conflict, "that change stands"},
		"by an earlier leader": {[]store.JournalEntry{rollback(0, "t1", "ours failed")}, Failed, " back to t1"},
	} {
		t.Run(name, func(t *testing.T) {
			waitWorld(t, func(w *world) {
				g := webGroup(1)
				g.Rollout.AutoRollback = true
				w.put(store.KindGroups, "web", g)
				r := w.start("group scale web 2 --wait")
				w.put(store.KindStatus, "web", outdatedWorldAt(w, own))
				for _, e := range c.entries {
					e.At = time.Now()
					w.put(store.KindEvents, strings.TrimPrefix(w.keys.Event(e.At, e.Why), w.keys.Of(store.KindEvents)), e)
				}
				w.put(store.KindGroups, "web", g)
				r.expect(c.code, c.says)
			})
		})
	}
}
