package host

import "time"

// Spans are the times over which load is reported.
var Spans = [3]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}

// Window is what the machine has used over one of the Spans, up to the last sample. A sample speaks
// for the time since the one before it; one that began before the window counts by the share that
// lies in it.
type Window struct {
	Span    time.Duration
	Covered time.Duration // of the span, by samples; less than all of it after a start

	CPUPercent      float64 // of all processors: busy time of all time
	MemoryPercent   float64 // the mean over the time
	DiskPercent     float64 // the mean over the time
	NetworkSent     uint64  // bytes within the time covered
	NetworkReceived uint64

	CPUMeasured     bool // so a zero is a measurement
	NetworkMeasured bool
}

// step is what happened between two samples. What a source did not tell is missing from its sums,
// so no mean is of less.
type step struct {
	end            time.Time
	length         time.Duration
	busy, total    float64 // processor seconds
	memory, disk   float64 // percent at its end
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
	for i := range n { // the newest first
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

// shareSince returns how much of the step lies after a moment, from 0 to 1.
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
