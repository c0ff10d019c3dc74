package sim

import (
	"errors"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// remove stops a machine in order, and then removes it, as coordinator/queue.go does.
func (q *queue) remove(rec store.Instance) {
	t, cloud := q.t, q.cloud
	finish := func(err error) {
		t.evidence.Removed(rec.ID, err)
		t.suspect(cloud.cfg.Name) // only a List proves that it is gone
		q.done()
	}
	cloud.stop(rec.ID, rec.Spec.StopTimeout.D(), t.answer(func(_ provider.Machine, err error) {
		var throttled *provider.ThrottledError
		if errors.As(err, &throttled) {
			finish(err)
			return
		}
		t.after(t.w.chance.upTo(commitTakes), false, func() {
			cloud.delete(rec.ID, t.answer(func(_ provider.Machine, err error) { finish(err) }))
		})
	}))
}

// restart restarts a machine, unless another boot of it reports already, as
// coordinator/queue_restart.go does.
func (q *queue) restart(c plan.Call, in store.Versioned[store.Instance]) {
	t, cloud, rec := q.t, q.cloud, in.Record
	r := rec.Restart
	alive, reports := t.content.Alive[rec.ID]
	if r == nil || reports && r.Boot != "" && alive.Record.BootID != r.Boot {
		q.drop(rec.ID)
		return
	}
	rec.Last = store.Decision{
		Rule: "HEAL-1", Why: "provider " + rec.Spec.Provider + " is asked to restart it",
		Revision: c.Revision, At: t.now().UTC(),
	}
	if !q.record(c, in, rec, "provider is asked to restart it", "HEAL-1", rec.Phase) {
		q.drop(rec.ID)
		return
	}
	t.after(t.w.chance.upTo(commitTakes), false, func() {
		cloud.restart(rec.ID, r.Listed, t.answer(func(_ provider.Machine, err error) {
			t.evidence.Restarted(rec.ID, r.Token, err)
			t.suspect(cloud.cfg.Name)
			q.done()
		}))
	})
}
