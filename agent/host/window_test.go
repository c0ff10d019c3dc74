package host

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// machineOf is a machine whose load a test sets and samples, in a synctest bubble.
type machineOf struct {
	busy, total, memory, disk float64
	sent, received            uint64
	failing                   error // of memory and the network
}

func (m *machineOf) sampler(t testing.TB, every time.Duration) *Sampler {
	t.Helper()
	s, err := New(Config{Every: every}, Deps{Logger: slog.New(slog.DiscardHandler), Sources: &Sources{
		CPU:     func(context.Context) (float64, float64, error) { return m.busy, m.total, nil },
		Memory:  func(context.Context) (float64, error) { return m.memory, m.failing },
		Disk:    func(context.Context, string) (float64, error) { return m.disk, nil },
		Network: func(context.Context) (uint64, uint64, error) { return m.sent, m.received, m.failing },
		Uptime:  func(context.Context) (time.Duration, error) { return time.Hour, nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// passes lets time pass in which two processors are busy to this degree, and takes a sample.
func (m *machineOf) passes(t *testing.T, s *Sampler, d time.Duration, cpu float64, sent uint64) Sample {
	t.Helper()
	<-time.After(d)
	m.total += 2 * d.Seconds()
	m.busy += 2 * d.Seconds() * cpu / 100
	m.sent += sent
	m.received += 2 * sent
	return s.sample(t.Context())
}

func near(got, want float64) bool { return math.Abs(got-want) < 1e-6 }

// proves DET-13
func TestWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = 5 * time.Second
		m := &machineOf{busy: 50, total: 1000, memory: 30, disk: 10, sent: 1 << 40, received: 1 << 41}
		s := m.sampler(t, every)
		if got := s.sample(t.Context()); got.Windows[0].Covered != 0 || got.Windows[2].NetworkSent != 0 {
			t.Errorf("one sample is no time: %+v", got.Windows)
		}
		var got Sample
		for range 6 { // half a minute at 20%
			got = m.passes(t, s, every, 20, 1000)
		}
		for i, w := range got.Windows {
			if w.Span != Spans[i] || w.Covered != 30*time.Second || !near(w.CPUPercent, 20) ||
				!near(w.MemoryPercent, 30) || !near(w.DiskPercent, 10) ||
				w.NetworkSent != 6000 || w.NetworkReceived != 12000 {
				t.Errorf("after half a minute: %+v", w)
			}
		}
		m.memory = 60
		for range 54 { // four and a half minutes at 80%
			got = m.passes(t, s, every, 80, 2000)
		}
		if w := got.Windows[0]; w.Covered != time.Minute || !near(w.CPUPercent, 80) || !near(w.MemoryPercent, 60) ||
			w.NetworkSent != 24_000 {
			t.Errorf("the last minute: %+v", w)
		}
		for _, w := range got.Windows[1:] {
			if w.Covered != 5*time.Minute || !near(w.CPUPercent, (6*20+54*80)/60.0) ||
				!near(w.MemoryPercent, (6*30+54*60)/60.0) || w.NetworkSent != 6*1000+54*2000 {
				t.Errorf("five minutes: %+v", w)
			}
		}
		size := len(s.past.ring)
		for range 1000 { // long after, only steps in the windows are reported, and no more are kept
			got = m.passes(t, s, every, 10, 500)
		}
		for _, w := range got.Windows {
			if w.Covered != w.Span || !near(w.CPUPercent, 10) || w.NetworkSent != 500*uint64(w.Span/every) {
				t.Errorf("long after: %+v", w)
			}
		}
		if len(s.past.ring) != size || size > 200 {
			t.Errorf("%d samples are kept, and at first %d", len(s.past.ring), size)
		}
	})
}

// An agent that was frozen has a sample for all of that time: it counts by the share that lies in
// the window.
//
// proves DET-13
func TestSampleLongerThanAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machineOf{busy: 1, total: 10}
		s := m.sampler(t, 5*time.Second)
		s.sample(t.Context())
		got := m.passes(t, s, 10*time.Minute, 40, 600_000)
		for i, want := range []struct {
			covered time.Duration
			sent    uint64
		}{{time.Minute, 60_000}, {5 * time.Minute, 300_000}, {10 * time.Minute, 600_000}} {
			if w := got.Windows[i]; w.Covered != want.covered || w.NetworkSent != want.sent || !near(w.CPUPercent, 40) {
				t.Errorf("%+v, want %+v", w, want)
			}
		}
	})
}

// proves DET-13
func TestWindowsLeaveOutWhatWasNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = 5 * time.Second
		m := &machineOf{busy: 1, total: 10, memory: 50}
		s := m.sampler(t, every)
		s.sample(t.Context())
		m.passes(t, s, every, 30, 1000)
		m.failing = errors.New("no such file")
		m.passes(t, s, every, 30, 1000)
		m.failing = nil
		w := m.passes(t, s, every, 30, 1000).Windows[0]
		if !near(w.MemoryPercent, 50) || w.NetworkSent != 3000 || !near(w.CPUPercent, 30) || w.Covered != 3*every {
			t.Errorf("memory and network failed for one sample of three: %+v", w)
		}
		m.sent, m.received = 10, 10 // an interface is gone, and with it what it had counted
		w = m.passes(t, s, every, 30, 0).Windows[0]
		if w.NetworkSent != 3000 {
			t.Errorf("counters that shrink: %+v", w)
		}
	})
}

func BenchmarkSample(b *testing.B) {
	s, err := New(Config{}, Deps{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	for range len(s.past.ring) {
		s.sample(b.Context())
	}
	for b.Loop() {
		s.sample(b.Context())
	}
}

func BenchmarkWindows(b *testing.B) {
	m := &machineOf{total: 1}
	s := m.sampler(b, 5*time.Second)
	now := time.Now()
	for i := range len(s.past.ring) {
		s.past.add(step{
			end: now.Add(time.Duration(i-len(s.past.ring)) * 5 * time.Second), length: 5 * time.Second,
			busy: 1, total: 10,
		})
	}
	for b.Loop() {
		s.past.windows(now)
	}
}

// A measured zero is distinct from a missing measurement: a group that follows its load shrinks
// only for the former.
//
// proves DET-13, AUTO-2
func TestAnIdleMachineIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = 5 * time.Second
		m := &machineOf{busy: 1, total: 10}
		s := m.sampler(t, every)
		s.sample(t.Context())
		w := m.passes(t, s, every, 0, 0).Windows[0]
		if !w.CPUMeasured || !w.NetworkMeasured || w.CPUPercent != 0 || w.NetworkSent != 0 {
			t.Errorf("idle: %+v", w)
		}
		m = &machineOf{failing: errors.New("no such file")}
		s = m.sampler(t, every)
		s.sample(t.Context())
		<-time.After(every)
		if w = s.sample(t.Context()).Windows[0]; w.CPUMeasured || w.NetworkMeasured || w.Covered != every {
			t.Errorf("not measured: %+v", w)
		}
	})
}
