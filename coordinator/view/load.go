package view

import (
	"maps"
	"math"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// The load of each instance is kept like trends, with one value a minute, since reports without
// news are not stored more often. It takes 120 bytes per instance.
const (
	loadEvery = time.Minute
	loadSteps = int(TrendFor / loadEvery)
)

// Load is the load of an instance's machine at a time.
type Load struct {
	At     time.Time `json:"at"`
	CPU    int       `json:"cpu_percent"`
	Memory int       `json:"memory_percent"`
}

// percents are the loads of CPU and memory, each plus one; 0: unknown.
type percents struct{ cpu, memory uint8 }

// loads are the last hour of each instance that has a record. All instances share the times of the
// steps.
type loads struct {
	at   [loadSteps]time.Time
	last int // the newest step
	of   map[string]*[loadSteps]percents
}

// sample writes the next step if it is due. The content is locked by the caller.
func (l *loads) sample(c *cache.Content, at time.Time) {
	if since := at.Sub(l.at[l.last]); since >= 0 && since < loadEvery {
		return
	}
	l.last = (l.last + 1) % loadSteps
	l.at[l.last] = at
	if l.of == nil {
		l.of = map[string]*[loadSteps]percents{}
	}
	maps.DeleteFunc(l.of, func(id string, _ *[loadSteps]percents) bool { return c.Instances[id].Modified == 0 })
	for id := range c.Instances {
		if l.of[id] == nil {
			l.of[id] = new([loadSteps]percents)
		}
		now := percents{}
		if r, known := c.Reports[id]; known && c.Instances[id].Record.Phase == store.Running && isFresh(&r.Record, at) {
			now = percents{percentOf(r.Record.Host.CPUPercent), percentOf(r.Record.Host.MemoryPercent)}
		}
		l.of[id][l.last] = now
	}
}

// percentOf converts a share for percents. An agent may report anything.
func percentOf(share float64) uint8 {
	if math.IsNaN(share) {
		return 0
	}
	return uint8(1 + math.Round(min(100, max(0, share))))
}

// line returns what is known of an instance in the hour before a time, oldest first.
func (l *loads) line(id string, now time.Time) (all []Load) {
	values := l.of[id]
	if values == nil {
		return nil
	}
	for n := range loadSteps {
		step := (l.last + 1 + n) % loadSteps
		at, v := l.at[step], values[step]
		if v.cpu == 0 || v.memory == 0 || now.Sub(at) > TrendFor || at.After(now) {
			continue
		}
		all = append(all, Load{At: at, CPU: int(v.cpu) - 1, Memory: int(v.memory) - 1})
	}
	return all
}

// Sampled is when loads were read last: they are drawn up to then, and not again in between.
func (s *Source) Sampled() time.Time {
	s.trends.mu.Lock()
	defer s.trends.mu.Unlock()
	return s.trends.loads.at[s.trends.loads.last]
}

// Load returns the last hour of an instance, as this replica saw it, oldest first.
func (s *Source) Load(id string, now time.Time) []Load {
	s.trends.mu.Lock()
	defer s.trends.mu.Unlock()
	return s.trends.loads.line(id, now)
}
