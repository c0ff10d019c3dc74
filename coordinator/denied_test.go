package coordinator_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/store"
)

// denying is a store that denies writes while its user has lost the right to them.
type denying struct {
	store.Store
	denies *atomic.Bool
}

func (d denying) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	if d.denies.Load() {
		return 0, fmt.Errorf("commit: %w", store.ErrDenied)
	}
	return d.Store.Commit(ctx, txn)
}

// While etcd denies the coordinators' writes, agents whose streams break cannot return, and their
// leases end. Once writes are allowed again, they have time to return before any is judged lost.
//
// proves SAFE-1, SAFE-5
func TestAgentsCanReturnWhenEtcdAllowsWritesAgain(t *testing.T) {
	for _, denied := range []time.Duration{time.Minute, 2 * time.Minute, 5*time.Minute + 7*time.Second} {
		t.Run(denied.String(), func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				var denies atomic.Bool
				w.start("one", func(_ *coordinator.Config, deps *coordinator.Deps) {
					deps.Store = denying{deps.Store, &denies}
				})
				w.leads(time.Second, "one")
				w.apply(w.group("web", 2))
				ids := w.up(2)
				w.pass(10 * time.Minute)
				denies.Store(true)
				w.cutOff(ids...)
				w.pass(6 * time.Second) // their streams end with the next report
				for _, id := range ids {
					w.setMood(id, mood{})
				}
				w.pass(denied)
				if left := w.list(w.keys.Of(store.KindAlive)); len(left) > 0 {
					t.Fatalf("%d leases have not ended", len(left))
				}
				denies.Store(false)
				w.pass(10 * time.Minute)
				w.unchanged(ids)
				w.cutOff(ids[0])
				w.until(5*time.Minute, "a lost one is replaced", func() bool {
					return w.settled(2) && w.made() == 3
				})
			})
		})
	}
}
