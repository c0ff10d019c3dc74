package host

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/disk"
	"github.com/shirou/gopsutil/v3/host"
	"github.com/shirou/gopsutil/v3/mem"
	"github.com/shirou/gopsutil/v3/net"
)

// minEvery is the shortest interval, which bounds the number of samples in the windows.
const minEvery = time.Second

// Sample is the machine's load at one time.
type Sample struct {
	CPUPercent      float64 // of all processors, since the previous sample
	MemoryPercent   float64
	DiskPercent     float64
	NetworkSent     uint64 // bytes since the machine started, without the loopback
	NetworkReceived uint64
	Uptime          time.Duration
	Windows         [len(Spans)]Window
}

// Config configures what is sampled, and how often.
type Config struct {
	Every time.Duration // 0: 5s
	Disk  string        // a path on the file system to measure; empty: "/"
}

// Deps are a Sampler's dependencies. Sources defaults to this machine.
type Deps struct {
	Logger  *slog.Logger
	Sources *Sources
}

// Sources are where the numbers come from.
type Sources struct {
	CPU     func(context.Context) (busy, total float64, err error) // seconds since an arbitrary moment
	Memory  func(context.Context) (percent float64, err error)
	Disk    func(ctx context.Context, path string) (percent float64, err error)
	Network func(context.Context) (sent, received uint64, err error)
	Uptime  func(context.Context) (time.Duration, error)
}

// reading holds the values of counters.
type reading struct {
	at             time.Time // zero: there was no previous sample
	busy, total    float64
	sent, received uint64
	network        bool // the source gave them
}

// Sampler keeps the last sample and the steps of the windows.
type Sampler struct {
	cfg     Config
	log     *slog.Logger
	sources Sources

	before  reading // the previous one
	past    past
	disk    chan percentage // the file system's pending answer; nil: none
	failing []string

	mu   sync.Mutex
	last Sample
}

// New returns a Sampler and starts nothing.
func New(cfg Config, deps Deps) (*Sampler, error) {
	if deps.Logger == nil {
		return nil, errors.New("new host sampler: no logger")
	}
	if cfg.Every <= 0 {
		cfg.Every = 5 * time.Second
	}
	cfg.Every = max(cfg.Every, minEvery)
	if cfg.Disk == "" {
		cfg.Disk = "/"
	}
	s := &Sampler{cfg: cfg, log: deps.Logger, sources: machine(), past: newPast(cfg.Every)}
	if deps.Sources != nil {
		s.sources = *deps.Sources
	}
	return s, nil
}

// Latest returns the last sample; zero before the first.
func (s *Sampler) Latest() Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Run samples until the context ends.
func (s *Sampler) Run(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Every)
	defer tick.Stop()
	for {
		next := s.sample(ctx)
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		s.last = next
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Sampler) sample(ctx context.Context) Sample {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Every)
	defer cancel()
	var out Sample
	now := reading{at: time.Now()}
	var did step
	if busy, total, err := s.sources.CPU(ctx); s.works("cpu", err) {
		now.busy, now.total = busy, total
		if s.before.total > 0 && total > s.before.total {
			did.busy, did.total = busy-s.before.busy, total-s.before.total
			out.CPUPercent = min(100, max(0, 100*did.busy/did.total))
		}
	}
	if percent, err := s.sources.Memory(ctx); s.works("memory", err) {
		out.MemoryPercent = percent
		did.memory, did.hasMemory = percent, true
	}
	if percent, err := s.diskUsed(ctx); s.works("disk", err) {
		out.DiskPercent = percent
		did.disk, did.hasDisk = percent, true
	}
	if sent, received, err := s.sources.Network(ctx); s.works("network", err) {
		out.NetworkSent, out.NetworkReceived = sent, received
		now.sent, now.received, now.network = sent, received, true
		if s.before.network {
			did.sent, did.received = grown(s.before.sent, sent), grown(s.before.received, received)
			did.hasNetwork = true
		}
	}
	if uptime, err := s.sources.Uptime(ctx); s.works("uptime", err) {
		out.Uptime = uptime
	}
	if !s.before.at.IsZero() {
		did.end, did.length = now.at, now.at.Sub(s.before.at)
		s.past.add(did)
	}
	if !now.network { // the next sample with network numbers covers this time
		now.sent, now.received, now.network = s.before.sent, s.before.received, s.before.network
	}
	if now.total == 0 {
		now.busy, now.total = s.before.busy, s.before.total
	}
	s.before = now
	out.Windows = s.past.windows(now.at)
	return out
}

// percentage is a number from a source, in percent.
type percentage struct {
	value float64
	err   error
}

// diskWait is how long the file system may take to answer.
const diskWait = 500 * time.Millisecond

// diskUsed asks how full the file system is. It asks a hanging one, such as a network file system,
// only once: the other numbers must not be delayed, since decisions depend on them.
func (s *Sampler) diskUsed(ctx context.Context) (float64, error) {
	if s.disk == nil {
		answer := make(chan percentage, 1)
		s.disk = answer
		go func() { // ends when the file system answers
			value, err := s.sources.Disk(context.WithoutCancel(ctx), s.cfg.Disk)
			answer <- percentage{value, err}
		}()
	}
	late := time.NewTimer(diskWait)
	defer late.Stop()
	select {
	case a := <-s.disk:
		s.disk = nil
		return a.value, a.err
	case <-late.C:
		return 0, errors.New("the file system does not answer")
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// grown returns by how much a counter has grown. A counter shrinks when an interface disappears.
func grown(before, now uint64) float64 {
	if now < before {
		return 0
	}
	return float64(now - before)
}

// works reports whether a source gave a number, and logs when it begins to fail.
func (s *Sampler) works(source string, err error) bool {
	known := slices.Index(s.failing, source)
	switch {
	case err != nil && known < 0:
		s.failing = append(s.failing, source)
		s.log.Debug("host cannot be measured", "source", source, "error", err)
	case err == nil && known >= 0:
		s.failing = slices.Delete(s.failing, known, known+1)
	}
	return err == nil
}

// machine returns the sources of this machine.
func machine() Sources {
	return Sources{
		CPU: func(ctx context.Context) (busy, total float64, err error) {
			times, err := cpu.TimesWithContext(ctx, false)
			if err != nil {
				return 0, 0, err
			}
			if len(times) == 0 {
				return 0, 0, errors.New("no processor is listed")
			}
			t := times[0]
			idle := t.Idle + t.Iowait
			// Guest time is included in user time.
			total = t.User + t.Nice + t.System + t.Irq + t.Softirq + t.Steal + idle
			return total - idle, total, nil
		},
		Memory: func(ctx context.Context) (float64, error) {
			m, err := mem.VirtualMemoryWithContext(ctx)
			if err != nil {
				return 0, err
			}
			return m.UsedPercent, nil
		},
		Disk: func(ctx context.Context, path string) (float64, error) {
			u, err := disk.UsageWithContext(ctx, path)
			if err != nil {
				return 0, err
			}
			return u.UsedPercent, nil
		},
		Network: func(ctx context.Context) (sent, received uint64, err error) {
			all, err := net.IOCountersWithContext(ctx, true)
			if err != nil {
				return 0, 0, err
			}
			for _, c := range all {
				if c.Name != "lo" {
					sent, received = sent+c.BytesSent, received+c.BytesRecv
				}
			}
			return sent, received, nil
		},
		Uptime: func(ctx context.Context) (time.Duration, error) {
			seconds, err := host.UptimeWithContext(ctx)
			return time.Duration(seconds) * time.Second, err
		},
	}
}
