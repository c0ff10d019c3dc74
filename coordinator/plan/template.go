package plan

import (
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// templates chooses the templates of new instances.
type templates struct {
	*draft
	fallback *template // for all creations outside of the roll; the zero value means the wanted template
}

// template is what an instance is made from.
type template struct {
	spec  store.InstanceSpec
	hash  string
	why   string // why it is not the wanted template; "" if it is
	fails bool   // instances made from it fail their checks, and none is healthy
}

// choose picks the template for all creations outside of the roll (ROLL-9): the last one with
// which the whole group was healthy, while the new one is not proved, and once it is blamed. It is
// the wanted template if there is no roll, if no template was ever good, or if the good one cannot
// be used any more.
func (d *templates) choose() {
	r, good := d.roll.rollout, d.g.Status.Record.LastGood
	if r == nil {
		return
	}
	r.Proved = r.Proved || d.proved()
	r.Fallback = ""
	if good == nil || good.Template == d.hash || r.FallbackUnusable != "" || r.Proved && r.Blamed == "" {
		return
	}
	f := &template{spec: d.spec.InstanceSpec()} // timers are not part of the template: the present ones apply
	f.spec.Provider, f.spec.Template, f.spec.Workload = good.Spec.Provider, good.Spec.Template, good.Spec.Workload
	f.spec.Slots = good.Spec.Slots
	f.spec.Vars, f.spec.Secrets, f.spec.Checks = good.Spec.Vars, good.Spec.Secrets, good.Spec.Checks
	f.spec.Files, f.spec.Busy = good.Spec.Files, good.Spec.Busy
	f.hash = f.spec.TemplateHash()
	if f.hash == d.hash || !d.placeable(&f.spec) {
		return
	}
	f.why = fmt.Sprintf("made from the last good template %s, as %s is not proved yet (ROLL-9)", f.hash, d.hash)
	if r.Blamed != "" {
		f.why = fmt.Sprintf("made from the last good template %s, as %s is blamed (ROLL-9)", f.hash, d.hash)
	}
	f.fails = d.fails(f.hash)
	d.fallback, r.Fallback = f, f.hash
}

// proved reports whether the new template works: its canaries are promoted, or, without canaries,
// its first instance has been healthy for rollout.bake or has finished its task.
func (d *templates) proved() bool {
	if d.roll.rollout.Canary > 0 {
		return d.roll.rollout.Promoted != ""
	}
	return slices.ContainsFunc(d.members, func(m *member) bool {
		return m.Record.Managed && m.Record.Template == d.hash &&
			(m.phase == store.Finished || d.proven(m) && !m.updating() && d.baked(m))
	})
}

// fails reports whether instances of a template fail their checks and none of them is healthy:
// another one would not help. A restart that the provider has not carried out says nothing about
// the template.
func (d *templates) fails(hash string) bool {
	failing := false
	for _, m := range d.members {
		if !m.Record.Managed || m.Record.Template != hash {
			continue
		}
		if m.healthy() {
			return false
		}
		failing = failing || m.judgment.Verdict == store.Unhealthy || m.judgment.Verdict == store.Stuck && !m.awaitsRestart()
	}
	return failing
}

// placeable reports whether machines of a template can be created: its provider is still
// configured, and not all of its zones are evacuated.
func (d *templates) placeable(spec *store.InstanceSpec) bool {
	_, known := d.s.Zones[spec.Provider]
	return known && (len(d.namedZones(spec.Provider, &spec.Template)) == 0 ||
		len(d.openZones(spec.Provider, &spec.Template)) > 0)
}

// source returns the template for a new instance; sl is nil for an instance on demand.
func (d *templates) source(sl *slot, why store.Purpose) template {
	f := d.fallback
	wanted := func() template { return template{spec: d.spec.InstanceSpec(), hash: d.hash} }
	switch {
	case f == nil || why == store.PurposeAdopt: // an adopted machine exists already
		return wanted()
	case d.roll.blamed() || sl == nil:
		return *f
	case d.stages.isCanary(sl.number):
		return wanted()
	case why == store.PurposeRoll || sl.emptiedByRoll() || f.fails || sl.flapped || d.fallbackStuck(sl) || d.tries(sl):
		return wanted()
	default:
		return *f
	}
}

// emptiedByRoll reports whether a member leaves, or has left, its slot for the roll, so that the
// next instance of the slot is the roll's replacement.
func (sl *slot) emptiedByRoll() bool {
	if v := sl.Record.Vacated; v != nil && v.Roll {
		return true
	}
	return slices.ContainsFunc(sl.members, func(m *member) bool {
		return !m.phase.Fills() && m.Record.Drain != nil && m.Record.LeavesBecause() == store.PurposeRoll
	})
}

// fallbackStuck reports whether the last good template has failed to become healthy in a slot, more
// often than the wanted one. Something that it needs may be gone: then the wanted template is
// tried, so that a fix reaches the slot.
func (d *templates) fallbackStuck(sl *slot) bool {
	stuck, failed := 0, 0
	for _, f := range sl.Record.Failures {
		switch {
		case f.Template == d.hash:
			failed++
		case f.Template == d.fallback.hash && f.Verdict == store.Stuck:
			stuck++
		}
	}
	return stuck > failed
}

// tries reports whether a new instance in a slot is to prove the wanted template. If no roll does
// so, under the strategy opportunistic, one instance at a time does, in a slot where that template
// has not failed.
func (d *templates) tries(sl *slot) bool {
	if d.spec.Rollout.Strategy == store.StrategyProactive {
		return false
	}
	if slices.ContainsFunc(sl.Record.Failures, func(f store.Failure) bool { return f.Template == d.hash }) {
		return false
	}
	return !slices.ContainsFunc(d.members,
		func(m *member) bool { return m.Record.Managed && !m.gone() && !m.dead() && m.Record.Template == d.hash })
}

// madeFrom adds to an action which template its new instance has, if that is not the wanted one.
func (d *templates) madeFrom(a *Action, rec *store.Instance) {
	if d.fallback == nil || rec.Template != d.fallback.hash {
		return
	}
	good := d.g.Status.Record.LastGood
	a.Facts = append(slices.Clone(a.Facts),
		store.Fact{Kind: store.FactGoodTemplate, By: d.g.Name, Name: rec.Template, Rev: good.Revision})
	if a.Instance != rec.ID { // otherwise the record would have the action's reason
		a.Cause = with(reason.Known(a.Cause, a.Why), func(also *store.CauseAlso) { also.Made = d.fallback.why })
		a.Why = reason.Short(a.Cause)
	}
}

// meanwhile adds which template is used while the new one is blamed.
func (d *templates) meanwhile(of store.BlockedFacts) store.BlockedFacts {
	if d.fallback != nil {
		of.Name = d.fallback.hash
	} else {
		of.Text = d.roll.rollout.FallbackUnusable
	}
	return of
}

// obsolete reports whether a member is outdated and its template is not used for new instances
// either.
func (d *templates) obsolete(m *member) bool {
	return d.outdated(m) && (d.fallback == nil || m.Record.Template != d.fallback.hash ||
		m.Record.Relaunch < d.spec.Relaunch.Number)
}

// refusedFallback records that the provider no longer creates machines of the last good template,
// for example because an image is gone. It is not tried again in this roll.
func (d *templates) refusedFallback(m *member) {
	if d.fallback != nil && m.Record.Template == d.fallback.hash {
		d.roll.rollout.FallbackUnusable = m.Calls.Problem
	}
}
