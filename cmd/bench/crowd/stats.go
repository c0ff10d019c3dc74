package crowd

import (
	"runtime"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
)

// Stats are a crowd's counts since it began. They can be encoded, and added to another crowd's.
type Stats struct {
	Agents     int            // in the crowd
	Begun      int            // that have begun
	Registered int            // welcomed, and not silenced
	Silent     int            // silenced
	Served     map[string]int // registered agents, by replica

	Certificates uint64 // of workloads, that came

	Reports    uint64 // sent
	Acks       uint64 // each confirms that a lease was renewed
	Nacks      uint64 // reports that renewed nothing
	Dropped    uint64 // reports that could not be sent, because the other end did not read
	Moves      uint64 // agents asked to go to another replica
	Streams    uint64 // opened so far
	Reconnects uint64 // streams of agents that had a lease before
	NewLeases  uint64 // leases other than the agent's previous one, which was lost

	Refused  map[string]uint64 // streams, by reason
	Troubles map[string]uint64 // all other errors, by text

	Latency measure.Histogram // from a report to its acknowledgement
	Outage  measure.Histogram // from the loss of a coordinator to the next acknowledgement
	Late    measure.Histogram // how late the crowd ran its agents

	Silenced map[string]Silenced // by instance

	Connections int
	Goroutines  int
	Memory      uint64 // bytes that the Go runtime has obtained from the system
}

// Silenced describes an agent that was silenced. All times are of this machine's clock.
type Silenced struct {
	How   How
	At    time.Time
	Sent  time.Time // when its last acknowledged report was sent; zero: none was acknowledged
	Acked time.Time // when that acknowledgement came
}

// Add adds the counts of another crowd.
func (s *Stats) Add(o Stats) {
	s.Agents += o.Agents
	s.Begun += o.Begun
	s.Registered += o.Registered
	s.Silent += o.Silent
	s.Certificates += o.Certificates
	s.Reports += o.Reports
	s.Acks += o.Acks
	s.Nacks += o.Nacks
	s.Dropped += o.Dropped
	s.Moves += o.Moves
	s.Streams += o.Streams
	s.Reconnects += o.Reconnects
	s.NewLeases += o.NewLeases
	s.Served = sum(s.Served, o.Served)
	s.Refused = sum(s.Refused, o.Refused)
	s.Troubles = sum(s.Troubles, o.Troubles)
	s.Latency.Merge(o.Latency)
	s.Outage.Merge(o.Outage)
	s.Late.Merge(o.Late)
	if s.Silenced == nil {
		s.Silenced = map[string]Silenced{}
	}
	for id, how := range o.Silenced {
		s.Silenced[id] = how
	}
	s.Connections += o.Connections
	s.Goroutines += o.Goroutines
	s.Memory += o.Memory
}

func sum[N int | uint64](a, b map[string]N) map[string]N {
	if a == nil {
		a = map[string]N{}
	}
	for k, n := range b {
		if a[k] += n; a[k] == 0 {
			delete(a, k)
		}
	}
	return a
}

// Stats returns the current counts.
func (c *Crowd) Stats() Stats {
	var all Stats
	for _, l := range c.loops {
		all.Add(l.stats())
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	all.Goroutines, all.Memory = runtime.NumGoroutine(), m.Sys
	return all
}

// maxTroubles bounds the number of different error texts that are kept.
const maxTroubles = 40

// counts are the counts of one loop.
type counts struct {
	agents, begun, registered, silent                                                  int
	reports, acks, nacks, dropped, moves, streams, reconnects, newLeases, certificates uint64
	served                                                                             map[string]int
	refused, troubles                                                                  map[string]uint64
	latency, outage, late                                                              measure.Histogram
	silenced                                                                           map[string]*Silenced
}

func newCounts() counts {
	return counts{
		served: map[string]int{}, refused: map[string]uint64{}, troubles: map[string]uint64{},
		silenced: map[string]*Silenced{},
	}
}

// move changes the state under which an agent is counted.
func (c *counts) move(from, to countedState) {
	for _, at := range []struct {
		countedState
		by int
	}{{from, -1}, {to, 1}} {
		if at.registered {
			c.registered += at.by
			c.served[at.replica] += at.by
		}
		if at.silent {
			c.silent += at.by
		}
	}
}

func (c *counts) trouble(what string) {
	if _, known := c.troubles[what]; !known && len(c.troubles) >= maxTroubles {
		what = "others"
	}
	c.troubles[what]++
}

// stats returns a copy of the loop's counts.
func (l *loop) stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &l.counts
	s := Stats{
		Agents: c.agents, Begun: c.begun, Registered: c.registered, Silent: c.silent, Served: sum(nil, c.served),
		Reports: c.reports, Acks: c.acks, Nacks: c.nacks, Dropped: c.dropped, Moves: c.moves, Streams: c.streams,
		Reconnects: c.reconnects, NewLeases: c.newLeases, Certificates: c.certificates, Refused: sum(nil,
			c.refused), Troubles: sum(nil, c.troubles),
		Silenced: map[string]Silenced{}, Connections: len(l.lines),
	}
	s.Latency.Merge(c.latency)
	s.Outage.Merge(c.outage)
	s.Late.Merge(c.late)
	for id, how := range c.silenced {
		s.Silenced[id] = *how
	}
	return s
}
