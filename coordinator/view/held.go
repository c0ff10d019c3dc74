package view

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// Protected is an instance that planned work does not touch (REC-13).
type Protected struct {
	ID    string    `json:"id"`
	By    string    `json:"by,omitempty"` // "": an earlier release did not record it
	Why   string    `json:"why,omitempty"`
	Until time.Time `json:"until,omitzero"` // zero: until an operator ends it
	Heal  bool      `json:"heal,omitempty"` // it is not healed either
}

// Busy is an instance whose workload is busy, as far as is known (BUSY-1).
type Busy struct {
	ID    string    `json:"id"`
	Until time.Time `json:"until,omitzero"` // until then planned work waits for it; zero: none waits
}

// held finds the instances of a group that are protected, and those that are busy.
func held(c *cache.Content, group string) (protected []Protected, busy []Busy) {
	g := c.Status[group].Record.Accepted
	asks := g != nil && g.Busy.Asked()
	for _, id := range c.ByGroup[group] {
		i := c.Instances[id].Record
		if i.Protected != "" {
			p := Protected{ID: id, Heal: i.Protected == store.ProtectHeal}
			if by := i.Protection; by != nil {
				p.By, p.Why, p.Until = by.By, by.Why, endOf(by.Ends)
			}
			protected = append(protected, p)
		}
		if r := c.Reports[id]; asks && i.Phase.Registered() && r.Present() && !r.Record.Idle() {
			b := Busy{ID: id}
			switch {
			case i.Drain != nil && i.Drain.Busy != nil:
				b.Until = endOf(i.Drain.Busy)
			case i.Awaits != nil:
				b.Until = endOf(&i.Awaits.Timer)
			}
			busy = append(busy, b)
		}
	}
	return protected, busy
}
