package view

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Scale says how the size of a group follows its load (AUTO-1 to AUTO-5).
type Scale struct {
	Size    int                 `json:"size"`
	Min     int                 `json:"min"`
	Max     int                 `json:"max"`
	Asks    int                 `json:"asks"` // the size for the load alone, without bounds; 0: unknown
	Advises bool                `json:"advises,omitempty"`
	Stays   string              `json:"stays,omitempty"` // why the size differs from that
	Numbers []store.ScaleNumber `json:"numbers"`
	At      time.Time           `json:"at,omitzero"` // when the numbers were taken
	Last    *ScaleChange        `json:"last,omitzero"`
}

// ScaleChange is a change of size by load.
type ScaleChange struct {
	At   time.Time `json:"at"`
	From int       `json:"from"`
	To   int       `json:"to"`
	Why  string    `json:"why"`
}

// scaleOf says how the size of a group follows its load; nil if it does not.
func (s *Source) scaleOf(st *store.Status, now time.Time) *Scale {
	if st.Scale == nil || st.Accepted == nil || st.Accepted.Scale == nil {
		return nil
	}
	of, spec := st.Scale, st.Accepted.Scale
	v := &Scale{
		Size: of.Size, Min: spec.Least(), Max: spec.Max, Advises: of.Stays == store.ScaleAdvised,
		Stays: reason.SizeStays(of, spec, now), Numbers: append([]store.ScaleNumber{}, of.Numbers...), At: of.At,
	}
	if of.Stays != store.ScaleUnknown && of.Stays != store.ScaleStarting {
		v.Asks = of.Asks
	}
	s.journal.View(func(entries []journal.Entry, _ time.Time) {
		for _, e := range slices.Backward(entries) {
			if e.Group == st.Group && e.Cause.Kind == store.CauseLoad {
				v.Last = &ScaleChange{At: e.At, From: e.Cause.Count, To: e.Cause.Limit, Why: reason.Text(e.Cause, e.Why)}
				return
			}
		}
	})
	return v
}
