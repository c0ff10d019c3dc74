package view

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// PlannedAhead is how far ahead the times are shown at which planned work may begin.
const PlannedAhead = 7 * 24 * time.Hour

// Planned says when a kind of planned work of a group may begin (ROLL-6).
type Planned struct {
	Work    string         `json:"work"`            // one of store.PlannedWork
	Opens   time.Time      `json:"opens,omitzero"`  // now or in the past: it may begin; zero: not by its windows
	Open    bool           `json:"open"`            // now
	Freeze  *store.Freeze  `json:"freeze,omitzero"` // in force now
	Periods []store.Period `json:"periods"`         // windows in which it may begin, in the week ahead
}

// plannedOf returns when planned work of a group may begin; nil if windows and freezes allow it at
// any time.
func plannedOf(g *store.Group, shard *store.Freeze, now time.Time) []Planned {
	if g == nil {
		return nil
	}
	var freezes []*store.Freeze
	for _, f := range []*store.Freeze{shard, g.Frozen()} {
		if f != nil && now.Before(f.To) {
			freezes = append(freezes, f)
		}
	}
	if len(g.Windows) == 0 && len(freezes) == 0 {
		return nil
	}
	var all []Planned
	for _, work := range store.PlannedWork {
		p := Planned{
			Work: work, Opens: g.Begins(work, now, freezes...),
			Periods: g.OpenBetween(work, now, now.Add(PlannedAhead), freezes...),
		}
		p.Open = p.Opens.Equal(now)
		for _, f := range freezes {
			if f.At(now) {
				p.Freeze = f
			}
		}
		all = append(all, p)
	}
	return all
}
