package evidence

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// answer is a List that showed the machine of each instance as up, and nothing else.
type answer struct {
	number uint64
	roster int
	of     []shown // all that the provider makes
}

// remember keeps a List if the same answer would change nothing but how often it came.
func (e *Evidence) remember(name string, number uint64, machines []provider.Machine, c *cache.Content) {
	delete(e.answers, name)
	if number == 0 || len(e.extras) > 0 || len(e.foreign[name]) > 0 || len(e.instances) != len(c.Instances) {
		return
	}
	a := answer{number: number, roster: e.roster, of: make([]shown, 0, len(machines))}
	for _, w := range e.instances {
		if !e.listedBy(name, w) {
			continue
		}
		s := &w.sighting
		if !s.Listed || s.Down || len(s.Copies) > 0 || w.phase == store.Deleting || w.phase == store.Creating ||
			w.phase == store.Stopping {
			return
		}
		a.of = append(a.of, shown{of: w, version: w.version})
	}
	if len(a.of) == len(machines) {
		e.answers[name] = a
	}
}

// listedAgain records a List with the same answer as the last one, if that was one to remember and
// no instance has changed since.
func (e *Evidence) listedAgain(name string, number uint64, begun time.Time, c *cache.Content) bool {
	a, known := e.answers[name]
	if !known || number == 0 || a.number != number || a.roster != e.roster || len(e.extras) > 0 ||
		len(e.instances) != len(c.Instances) {
		return false
	}
	for _, at := range a.of {
		if at.of.version != at.version {
			return false
		}
	}
	poll := c.Shard.Record.Settings.ProviderPoll.D()
	for _, at := range a.of {
		w := at.of
		if w.sighting.Begun = begun; begun.Sub(w.counted) >= poll {
			w.sighting.Times++
			w.counted = begun
		}
		w.lists++
	}
	return true
}
