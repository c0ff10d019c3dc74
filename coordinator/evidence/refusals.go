package evidence

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// refusedFor is how long nothing is created after a refusal that all creations of a kind share: a
// quota that is used up, or credentials that are refused (PROV-5).
const refusedFor = 20 * time.Second

// refusal is why a provider makes no machine of a kind.
type refusal struct {
	plan.Refusal
	kind provider.Kind
}

// noteRefusal records the outcome of a creation, and reports whether it was refused for a reason
// that others share. Any other answer ends an earlier refusal; an error without a known meaning
// shows nothing. The caller holds e.mu.
func (e *Evidence) noteRefusal(rec store.Instance, err error, now time.Time) (refused bool) {
	quota := plan.RefusedOf(rec.Spec)
	all := plan.Refused{Provider: rec.Spec.Provider}
	kind := provider.KindOf(err)
	if err != nil && kind == provider.Temporary {
		return false
	}
	for of, r := range e.refusals {
		if (of == quota || of == all) && r.kind != kind {
			delete(e.refusals, of)
			e.wakeCreations(rec.Spec.Provider)
		}
	}
	of := quota
	switch {
	case errors.Is(err, provider.ErrCredentials):
		of = all
	case !errors.Is(err, provider.ErrQuota):
		return false
	}
	e.refusals[of] = refusal{plan.Refusal{
		Why: err.Error(), Credentials: kind == provider.Credentials, Until: now.Add(refusedFor),
	}, kind}
	e.wakeCreations(rec.Spec.Provider)
	return true
}

// wakeCreations marks the groups that want machines of a provider as dirty.
func (e *Evidence) wakeCreations(name string) {
	for _, w := range e.instances {
		if w.provider == name && (w.phase == store.Pending || w.phase == store.Creating) {
			e.dirty[w.group] = true
		}
	}
}

// refused returns the refusals for a snapshot.
func (e *Evidence) refused() map[plan.Refused]plan.Refusal {
	if len(e.refusals) == 0 {
		return nil
	}
	out := make(map[plan.Refused]plan.Refusal, len(e.refusals))
	for of, r := range e.refusals {
		out[of] = r.Refusal
	}
	return out
}
