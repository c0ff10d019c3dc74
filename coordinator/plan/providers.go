package plan

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// ProviderSite identifies machines that the same coordinators can see: the machines of a provider
// or, if they are at several sites, the machines at one site.
type ProviderSite struct{ Provider, Site string }

// Providers says which machines the running coordinators are configured to see. It is replaced,
// never changed: snapshots have it.
type Providers struct {
	// Known: every running coordinator says what it is configured with. Otherwise nothing follows.
	Known      bool
	Configured map[ProviderSite]bool
	// Dropped is since when no coordinator is configured with what one had, on our clock. What none
	// had since Began counts from then: the beginning of the term, or of what is Known.
	Dropped map[ProviderSite]time.Time
	Began   time.Time
	// Records are the conditions that the coordinators' records are unchanged.
	Records []store.Condition
}

// withoutSince returns since when no running coordinator is configured with the provider of an
// instance, at the site of its machine; without is false if one is, or if that is not known.
func (p *Providers) withoutSince(rec *store.Instance) (since time.Time, without bool) {
	at := ProviderSite{rec.Spec.Provider, rec.Site}
	if !p.Known || p.Configured[at] || at.Provider == store.ProviderNone {
		return time.Time{}, false
	}
	if since, dropped := p.Dropped[at]; dropped {
		return since, true
	}
	return p.Began, true
}

// unconfigured returns from when on an operator may say that the member's machine is gone, because
// no running coordinator is configured with its provider; so is false while one is.
//
// No coordinator can see or remove such a machine, so nothing proves its end (SAFE-8), and its
// record would stay for ever. A coordinator that only restarts must not make that possible, nor a
// leader that has just begun: hence orphan_grace, and the grace of SAFE-1.
func (v *view) unconfigured(m *member) (vouchFrom time.Time, so bool) {
	if m.byHand() || !m.Record.Called {
		return time.Time{}, false
	}
	since, without := v.s.Providers.withoutSince(&m.Record)
	if !without {
		return time.Time{}, false
	}
	return store.Later(since.Add(v.s.Shard.Record.Settings.OrphanGrace.D()), v.s.GraceEnd), true
}

// blockUnconfigured reports that nothing but an operator's word can end an instance, and reports
// whether that is so (PROV-10).
func (d *status) blockUnconfigured(m *member) bool {
	from, so := d.unconfigured(m)
	if !so || m.phase != store.Deleting && m.Alive.Present() || d.now.Before(d.s.GraceEnd) {
		return false
	}
	of := store.BlockedFacts{Name: m.Record.Spec.Provider, Text: m.Record.Site}
	if d.now.Before(from) {
		d.wake(from)
		of.Opens = from.UTC().Truncate(time.Second)
	}
	work := store.WorkInstance
	if m.phase == store.Deleting {
		work = store.WorkForget
	}
	d.block("PROV-10", m.task(work), store.BlockedByUnconfigured, of)
	return true
}
