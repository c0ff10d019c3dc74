package planning

import (
	"runtime"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
)

// Cost is what an operation used.
type Cost struct {
	Took time.Duration `json:"took_ns"`
	CPU  time.Duration `json:"cpu_ns"` // of all threads, garbage collection included
	// Allocations and Bytes count all that was allocated, whether or not it is still in use.
	Allocations uint64 `json:"allocations"`
	Bytes       uint64 `json:"bytes"`
}

// costOf runs a function and returns its cost.
func costOf(do func()) Cost {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, begun := cpuTime(), time.Now()
	do()
	c := Cost{Took: time.Since(begun), CPU: cpuTime() - cpu}
	runtime.ReadMemStats(&after)
	c.Allocations, c.Bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	return c
}

func (c Cost) plus(o Cost) Cost {
	return Cost{
		Took: c.Took + o.Took, CPU: c.CPU + o.CPU, Allocations: c.Allocations + o.Allocations,
		Bytes: c.Bytes + o.Bytes,
	}
}

// cpuTime returns the processor time that this process has used, at a finer resolution than /proc
// has: many of the measured operations take less than a tick.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0 // it never fails for the own process
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heap returns the memory in use after a garbage collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Spread is the distribution of many durations of one kind.
type Spread struct {
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

func spreadOf(h measure.Histogram) Spread {
	return Spread{P50: h.Quantile(0.5), P99: h.Quantile(0.99), Max: h.Quantile(1)}
}
