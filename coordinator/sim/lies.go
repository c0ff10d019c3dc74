package sim

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// Lie is what is wrong with a provider's Lists.
type Lie string

// The lies.
const (
	ListEmpty      Lie = "empty"
	ListTruncated  Lie = "truncated"
	ListFails      Lie = "an error"
	ListLate       Lie = "late"
	ListDuplicated Lie = "duplicated"
	ListStale      Lie = "stale"
)

// Lies are all of them.
var Lies = []Lie{ListEmpty, ListTruncated, ListFails, ListLate, ListDuplicated, ListStale}

// list answers with all machines as they are now, unless it lies.
func (c *cloud) list(answer func([]provider.Machine, error)) {
	ch, takes := c.w.chance, c.w.chance.within(c.cfg.List)
	if c.w.clock < c.slowUntil {
		takes = ch.upTo(c.cfg.CallTimeout)
	}
	var err error
	switch {
	case c.w.clock < c.throttleUntil:
		err = provider.ThrottledFor(time.Second + ch.upTo(3*time.Second))
	case c.w.clock < c.failsUntil || ch.happens(c.cfg.ListFails):
		err = errTrouble
	}
	var machines []provider.Machine
	if err == nil {
		machines = c.listed()
	}
	if c.w.clock < c.lieUntil && err == nil {
		machines, takes, err = c.falsify(machines, takes)
	}
	c.w.routinely(takes, func() { answer(machines, err) })
}

// listed is the truth, as far as the provider's consistency goes.
func (c *cloud) listed() []provider.Machine {
	out := make([]provider.Machine, 0, len(c.order))
	for _, id := range c.order {
		if m := c.machines[id]; c.w.clock >= m.hidden {
			out = append(out, m.seen())
		}
	}
	return out
}

// falsify makes a List what a lie says.
func (c *cloud) falsify(machines []provider.Machine, takes time.Duration) ([]provider.Machine, time.Duration, error) {
	ch := c.w.chance
	switch c.lie {
	case ListEmpty:
		return nil, takes, nil
	case ListTruncated:
		if len(machines) > 0 {
			machines = machines[:ch.IntN(len(machines))]
		}
	case ListFails:
		return nil, takes, errTrouble
	case ListLate:
		takes = c.cfg.CallTimeout*9/10 + takes/10
	case ListDuplicated:
		machines = append(machines, slices.Clone(machines)...)
	case ListStale:
		machines = slices.Clone(c.past)
	}
	return machines, takes, nil
}
