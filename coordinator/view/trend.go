package view

import (
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// Trends are kept in memory by the program that shows them, since its start: no record holds them.
const (
	TrendEvery = 15 * time.Second
	TrendFor   = time.Hour
	// trendFresh is the maximum age of a report that counts. Reports without news are stored every
	// few minutes.
	trendFresh = 10 * time.Minute
)

// Moment is the state of a group at a time.
type Moment struct {
	At     time.Time `json:"at"`
	Run    int       `json:"run"`
	Size   int       `json:"size"`
	Asks   int       `json:"asks,omitempty"` // the size for the load; 0: unknown
	Told   int       `json:"told"`           // instances whose load is known
	CPU    float64   `json:"cpu_percent"`    // their average
	Memory float64   `json:"memory_percent"`
}

// trends are the last hour of each group and instance.
type trends struct {
	mu    sync.Mutex
	of    map[string][]Moment // oldest first
	loads loads
}

// isFresh reports whether a report shows the present state of its instance.
func isFresh(r *store.Report, now time.Time) bool { return now.Sub(r.Received) < trendFresh }

// Sample records the present state of the groups. It is called every TrendEvery.
func (s *Source) Sample(now time.Time) {
	fresh := map[string]*Moment{}
	s.trends.mu.Lock()
	defer s.trends.mu.Unlock()
	if !s.cache.View(func(c *cache.Content) {
		for name, st := range c.Status {
			m := &Moment{At: now}
			if a := st.Record.Accepted; a != nil {
				m.Size = a.Size
			}
			if sc := st.Record.Scale; sc != nil && sc.Stays != store.ScaleUnknown && sc.Stays != store.ScaleStarting {
				m.Asks = sc.Asks
			}
			for _, id := range c.ByGroup[name] {
				if c.Instances[id].Record.Phase != store.Running {
					continue
				}
				m.Run++
				if r, reported := c.Reports[id]; reported && isFresh(&r.Record, now) {
					m.Told++
					m.CPU += r.Record.Host.CPUPercent
					m.Memory += r.Record.Host.MemoryPercent
				}
			}
			if m.Told > 0 {
				m.CPU, m.Memory = m.CPU/float64(m.Told), m.Memory/float64(m.Told)
			}
			fresh[name] = m
		}
		s.trends.loads.sample(c, now)
	}) {
		return
	}
	next := make(map[string][]Moment, len(fresh))
	for name, m := range fresh {
		old := s.trends.of[name]
		gone := 0
		for gone < len(old) && now.Sub(old[gone].At) > TrendFor {
			gone++
		}
		old = old[gone:]
		for len(old) > 0 && !old[len(old)-1].At.Before(now) { // the clock was set back
			old = old[:len(old)-1]
		}
		next[name] = append(old, *m)
	}
	s.trends.of = next
}

// Trend is the last hour of a group, the oldest first.
func (s *Source) Trend(group string) []Moment {
	s.trends.mu.Lock()
	defer s.trends.mu.Unlock()
	return slices.Clone(s.trends.of[group])
}
