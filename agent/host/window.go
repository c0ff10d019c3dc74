package host

import "time"

// Spans are the spans over which load is reported.
var Spans = [3]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}

// Window is the machine's load over one of the Spans, up to the last sample. A sample covers the
// time since the previous one; a sample that began before the window counts by its share inside the
// window.
type Window struct {
	Span    time.Duration
	Covered time.Duration // how much of the span has samples; less than all of it after a start

	CPUPercent      float64 // of all processors: share of busy time
	MemoryPercent   float64 // mean over the covered time
	DiskPercent     float64 // mean over the covered time
	NetworkSent     uint64  // bytes within the covered time
	NetworkReceived uint64

	CPUMeasured     bool // set if the source answered, so that a zero is a measurement
	NetworkMeasured bool
}

// step is the time between two samples. Its sums leave out what a source did not deliver, so that
// no mean is too low.
type step struct {
	end            time.Time
	length         time.Duration
	busy, total    float64 // processor seconds
	memory, disk   float64 // percent at the end of the step
	hasMemory      bool
	hasDisk        bool
	sent, received float64 // bytes
	hasNetwork     bool
}

// past holds the steps of the longest span.
type past struct {
	ring []step
	next int
	full bool
}

func newPast(every time.Duration) past {
	return past{ring: make([]step, int(Spans[len(Spans)-1]/every)+2)}
}

func (p *past) add(s step) {
	p.ring[p.next] = s
	p.next++
	if p.next == len(p.ring) {
		p.next, p.full = 0, true
	}
}

// windows recomputes the sums each time: there are few steps, and running sums would drift.
func (p *past) windows(now time.Time) [len(Spans)]Window {
	var out [len(Spans)]Window
	var sums [len(Spans)]sum
	n := p.next
	if p.full {
		n = len(p.ring)
	}
	for i := range n { // newest first
		s := &p.ring[(p.next-1-i+len(p.ring))%len(p.ring)]
		inside := false
		for w, span := range Spans {
			if share := s.shareSince(now.Add(-span)); share > 0 {
				sums[w].add(s, share)
				inside = true
			}
		}
		if !inside {
			break
		}
	}
	for w, span := range Spans {
		out[w] = sums[w].window(span)
	}
	return out
}

// shareSince returns the share of the step after a moment, from 0 to 1.
func (s *step) shareSince(from time.Time) float64 {
	if s.length <= 0 {
		return 0
	}
	return min(1, max(0, float64(s.end.Sub(from))/float64(s.length)))
}

type sum struct {
	covered            time.Duration
	busy, total        float64
	memory, memoryTime float64
	disk, diskTime     float64
	sent, received     float64
	hasNetwork         bool
}

func (a *sum) add(s *step, share float64) {
	length := share * float64(s.length)
	a.covered += time.Duration(length)
	a.busy, a.total = a.busy+share*s.busy, a.total+share*s.total
	if s.hasMemory {
		a.memory, a.memoryTime = a.memory+length*s.memory, a.memoryTime+length
	}
	if s.hasDisk {
		a.disk, a.diskTime = a.disk+length*s.disk, a.diskTime+length
	}
	a.sent, a.received = a.sent+share*s.sent, a.received+share*s.received
	a.hasNetwork = a.hasNetwork || s.hasNetwork
}

func (a *sum) window(span time.Duration) Window {
	of := func(part, whole float64) float64 {
		if whole <= 0 {
			return 0
		}
		return part / whole
	}
	return Window{
		Span: span, Covered: min(span, a.covered), CPUPercent: min(100, max(0, 100*of(a.busy, a.total))),
		MemoryPercent: of(a.memory, a.memoryTime), DiskPercent: of(a.disk, a.diskTime),
		NetworkSent: uint64(a.sent), NetworkReceived: uint64(a.received),
		CPUMeasured: a.total > 0, NetworkMeasured: a.hasNetwork,
	}
}
