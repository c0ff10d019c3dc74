package trial

import (
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
)

// usage reads every second what the processes use.
type usage struct {
	over chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	pids  map[string]int
	last  map[string]measure.Usage
	order []string
}

// own is the name under which the bench itself is measured.
const own = "bench"

func newUsage() *usage {
	u := &usage{over: make(chan struct{}), pids: map[string]int{}, last: map[string]measure.Usage{}}
	u.watch(own, os.Getpid())
	u.done.Go(u.run)
	return u
}

// watch starts to measure a process, in place of another of its name.
func (u *usage) watch(name string, pid int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pids[name] = pid
	if !slices.Contains(u.order, name) {
		u.order = append(u.order, name)
	}
}

func (u *usage) run() {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			u.read()
		case <-u.over:
			return
		}
	}
}

func (u *usage) end() {
	close(u.over)
	u.done.Wait()
}

// read reads all, and returns it by name. A process that has ended keeps its last values.
func (u *usage) read() map[string]measure.Usage {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, pid := range u.pids {
		if now, err := measure.Read(pid); err == nil && now.Memory > 0 {
			u.last[name] = now
		}
	}
	return maps.Clone(u.last)
}

// between returns what each process used between two readings.
func (u *usage) between(before, after map[string]measure.Usage) []Process {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []Process
	for _, name := range u.order {
		b, a := before[name], after[name]
		if a.At.IsZero() {
			continue
		}
		out = append(out, Process{
			Name: name, Cores: measure.Cores(b, a), Memory: a.Memory, MostMemory: a.MostMemory,
			Descriptors: a.Descriptors,
		})
	}
	return out
}
