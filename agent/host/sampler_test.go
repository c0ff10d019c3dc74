package host

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// counters is a machine whose numbers are known, and whose sources can fail.
type counters struct {
	mu          sync.Mutex
	busy, total float64
	err         error
}

func (c *counters) set(busy, total float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy, c.total = busy, total
}

func (c *counters) cpu(context.Context) (busy, total float64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy, c.total, c.err
}

func (c *counters) sources() *Sources {
	return &Sources{
		CPU:     c.cpu,
		Memory:  func(context.Context) (float64, error) { return 40, c.err },
		Disk:    func(context.Context, string) (float64, error) { return 50, c.err },
		Network: func(context.Context) (uint64, uint64, error) { return 6, 7, nil },
		Uptime:  func(context.Context) (time.Duration, error) { return time.Hour, nil },
	}
}

// numbers returns a sample without its windows.
func numbers(s Sample) Sample {
	s.Windows = [len(Spans)]Window{}
	return s
}

// proves DET-13
func TestSamplesInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counters{busy: 100, total: 1000}
		s, err := New(Config{Every: time.Second}, Deps{Logger: slog.New(slog.DiscardHandler), Sources: c.sources()})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Latest(); got != (Sample{}) {
			t.Errorf("before Run: %+v", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.Run(ctx) }()
		synctest.Wait()
		want := Sample{MemoryPercent: 40, DiskPercent: 50, NetworkSent: 6, NetworkReceived: 7, Uptime: time.Hour}
		if got := numbers(s.Latest()); got != want {
			t.Errorf("first sample is %+v, want %+v", got, want)
		}
		c.set(101, 1004)
		<-time.After(time.Second)
		synctest.Wait()
		want.CPUPercent = 25 // of the last second, not since boot
		if got := numbers(s.Latest()); got != want {
			t.Errorf("second sample is %+v, want %+v", got, want)
		}
		cancel()
		<-done
	})
}

// proves DET-13
func TestSourceThatFailsYieldsZeroAndOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := &counters{busy: 1, total: 10, err: errors.New("no such file")}
		s, err := New(Config{Every: time.Second}, Deps{
			Logger:  slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Sources: c.sources(),
		})
		if err != nil {
			t.Fatal(err)
		}
		want := Sample{NetworkSent: 6, NetworkReceived: 7, Uptime: time.Hour}
		for range 3 {
			if got := numbers(s.sample(t.Context())); got != want {
				t.Errorf("sample is %+v, want %+v", got, want)
			}
		}
		if n := strings.Count(log.String(), "source=memory"); n != 1 {
			t.Errorf("memory's failure was logged %d times, want once:\n%s", n, log.String())
		}
		c.err = nil
		if got := s.sample(t.Context()); got.MemoryPercent != 40 {
			t.Errorf("sample after the source works again is %+v", got)
		}
		c.err = errors.New("again")
		s.sample(t.Context())
		if n := strings.Count(log.String(), "source=memory"); n != 2 {
			t.Errorf("memory's second failure was logged %d times in all, want twice", n)
		}
	})
}

// proves DET-13
func TestThisMachine(t *testing.T) {
	s, err := New(Config{}, Deps{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	got := s.sample(t.Context())
	if got.MemoryPercent <= 0 || got.MemoryPercent > 100 || got.DiskPercent < 0 || got.DiskPercent > 100 ||
		got.Uptime <= 0 {
		t.Errorf("sample is %+v", got)
	}
	if s.before.total <= 0 {
		t.Error("no processor time was counted")
	}
	if len(s.failing) > 0 {
		t.Errorf("failing: %v", s.failing)
	}
}

// A file system that hangs holds up no other number, and is not asked again meanwhile.
//
// proves DET-13
func TestADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counters{busy: 1, total: 10}
		from, asked, hung := c.sources(), 0, make(chan struct{})
		from.Disk = func(context.Context, string) (float64, error) {
			asked++
			<-hung
			return 50, nil
		}
		s, err := New(Config{Every: time.Second}, Deps{Logger: slog.New(slog.DiscardHandler), Sources: from})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			c.set(float64(1+i), float64(10+10*i))
			if got := s.sample(t.Context()); got.MemoryPercent != 40 || got.DiskPercent != 0 || i > 0 && got.CPUPercent != 10 {
				t.Errorf("sample is %+v", got)
			}
		}
		close(hung)
		synctest.Wait()
		if got := s.sample(t.Context()); got.DiskPercent != 50 || asked != 1 {
			t.Errorf("sample is %+v, asked %d times", got, asked)
		}
	})
}
