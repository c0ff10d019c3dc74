package coordinator

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// restart records the call under the fence, and then makes it, so a leader that was deposed
// meanwhile restarts nothing. It is not made once another boot reports. The call names the boot to
// end, so a late one ends no other (SAFE-8).
func (q *queue) restart(ctx context.Context, c plan.Call, in store.Versioned[store.Instance]) {
	t, rec := q.t, in.Record
	r := rec.Restart
	if r == nil || q.bootedSince(rec) {
		t.evidence.Dropped(rec.ID)
		return
	}
	why := "provider " + rec.Spec.Provider + " is asked to restart it"
	rec.Last = store.Decision{Rule: r.Rule, Why: why, Revision: c.Revision, At: time.Now().UTC()}
	entry := store.JournalEntry{
		Rule: r.Rule, What: why, Group: rec.Group, Instance: rec.ID, Slot: rec.Place(),
		Revision: c.Revision,
	}
	t.r.deps.Before("record restarting", rec.ID)
	call, cancel := context.WithTimeout(ctx, q.provider.Capabilities().CallTimeout)
	defer cancel()
	if !q.record(ctx, c, []store.Write{store.Put(in.Key, store.Encode(rec))}, rec, entry) {
		return
	}
	t.r.deps.Before("provider restart", rec.ID)
	asked := time.Now()
	err := q.provider.Restart(call, t.shard.ID, rec.ID, r.Listed)
	t.r.deps.Meter.Called(rec.Spec.Provider, string(plan.CallRestart), time.Since(asked), err)
	t.r.deps.Before("provider restarted", rec.ID)
	if err != nil && ctx.Err() == nil {
		t.log.Error("provider did not restart", "group", rec.Group, "instance", rec.ID, "provider", rec.Spec.Provider,
			"error", err)
	}
	t.evidence.Restarted(rec.ID, r.Token, err)
	if l := t.listers[rec.Spec.Provider]; l != nil {
		l.ask() // earlier Lists show the previous boot
	}
}

// bootedSince reports whether a boot other than the one to end reports already.
func (q *queue) bootedSince(rec store.Instance) bool {
	other := false
	q.t.r.cache.View(func(c *cache.Content) {
		alive, there := c.Alive[rec.ID]
		other = there && rec.Restart.Boot != "" && alive.Record.BootID != rec.Restart.Boot
	})
	return other
}
