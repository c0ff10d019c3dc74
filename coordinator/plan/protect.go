package plan

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A protected instance is not chosen for anything planned, until its protection ends by its time or
// by an order (REC-13).

// protect records that an instance is protected, or no longer is.
func (d *orders) protect(r store.Versioned[store.Request], m *member) {
	mode, why := r.Record.Mode, fmt.Sprintf("%.200s", r.Record.Why)
	what := store.Effect{Kind: store.EffectProtected, Name: mode, For: max(0, r.Record.For)}
	switch {
	case r.Record.For < 0 || r.Record.For.D() > store.MaxProtection:
		d.actions = append(d.actions, refuse(r, fmt.Sprintf("for %s: it must be at most %s, and 0 is for good",
			r.Record.For, store.Duration(store.MaxProtection))))
		return
	case mode == store.ProtectOff:
		d.changeAsOrdered(r, m, effect(store.EffectUnprotected), unprotected)
		return
	case mode != store.ProtectHeal && mode != store.ProtectRemoval:
		d.actions = append(d.actions, refuse(r, fmt.Sprintf("this version knows no protection %q", mode)))
		return
	}
	p := store.Protection{By: r.Record.By, Why: why, At: d.now.UTC()}
	if r.Record.For > 0 {
		t := d.timer(r.Record.For.D())
		p.Ends = &t
	}
	d.changeAsOrdered(r, m, what, func(rec *store.Instance) { rec.Protected, rec.Protection = mode, &p })
}

func unprotected(rec *store.Instance) { rec.Protected, rec.Protection = "", nil }

// endProtection ends an expired protection.
func (d *progress) endProtection(m *member) {
	p := m.Record.Protection
	if m.Record.Protected == "" || p == nil || p.Ends == nil || m.touched || m.gone() {
		return
	}
	if due := d.ends(m.Due, store.TimerProtection, p.Ends); d.now.Before(due) {
		d.wake(due)
		return
	}
	d.step(m, m.phase, "REC-13", effect(store.EffectUnprotected),
		store.Cause{Kind: store.CauseProtectionOver, By: p.By, For: p.Ends.For}, m.facts(), unprotected)
}

// protectedUntil returns until when a member is protected, by which operator, and why.
func (v *view) protectedUntil(m *member) store.BlockedFacts {
	p := m.Record.Protection
	if p == nil {
		return store.BlockedFacts{} // an earlier release recorded no more
	}
	of := store.BlockedFacts{Name: p.By, Text: p.Why}
	if p.Ends != nil {
		of.Opens = p.Ends.Start.Add(p.Ends.For.D()).UTC().Truncate(time.Second)
	}
	return of
}
