package measure

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit in which Linux counts processor time in /proc, independent of the kernel's own
// tick.
const tick = time.Second / 100

// Usage is the resource usage of a process.
type Usage struct {
	At          time.Time
	CPU         time.Duration // processor time of all its threads, since its start
	Memory      uint64        // anonymous resident memory in bytes
	MostMemory  uint64        // maximum of its resident memory
	Descriptors int
}

// Read reads the resource usage of a process.
func Read(pid int) (Usage, error) {
	u := Usage{At: time.Now()}
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return u, fmt.Errorf("read what process %d uses: %w", pid, err)
	}
	if u.CPU, err = cpuOf(stat); err != nil {
		return u, fmt.Errorf("read what process %d uses: %w", pid, err)
	}
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return u, fmt.Errorf("read what process %d uses: %w", pid, err)
	}
	u.Memory, u.MostMemory = kibibytes(status, "VmRSS:"), kibibytes(status, "VmHWM:")
	if open, err := os.ReadDir(dir + "fd"); err == nil {
		u.Descriptors = len(open)
	}
	return u, nil
}

// cpuOf adds up the time in user and in kernel mode. Before them comes a name in parentheses, which
// may contain any character.
func cpuOf(stat []byte) (time.Duration, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, kernel = 11, 12
	if len(fields) <= kernel {
		return 0, fmt.Errorf("stat has %d fields behind the name", len(fields))
	}
	u, err := strconv.ParseUint(fields[user], 10, 63)
	if err != nil {
		return 0, err
	}
	k, err := strconv.ParseUint(fields[kernel], 10, 63)
	return time.Duration(u+k) * tick, err
}

func kibibytes(status []byte, name string) uint64 {
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, _ := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 54)
			return n << 10
		}
	}
	return 0
}

// Cores returns how many processors were busy with the process between two readings.
func Cores(before, after Usage) float64 {
	took := after.At.Sub(before.At)
	if took <= 0 {
		return 0
	}
	return (after.CPU - before.CPU).Seconds() / took.Seconds()
}

// Machine is the capacity of this machine.
type Machine struct {
	Processors      int    `json:"processors"`
	Memory          uint64 `json:"memory_bytes"`           // all of it
	MemoryAvailable uint64 `json:"memory_available_bytes"` // available without taking it from another process
}

// ReadMachine reads the capacity of the machine.
func ReadMachine(processors int) (Machine, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return Machine{}, fmt.Errorf("read what the machine has: %w", err)
	}
	return Machine{
		Processors: processors, Memory: kibibytes(text, "MemTotal:"),
		MemoryAvailable: kibibytes(text, "MemAvailable:"),
	}, nil
}

// Load is what all processors together have done since boot.
type Load struct{ Busy, All time.Duration }

// ReadLoad reads it.
func ReadLoad() (Load, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Load{}, fmt.Errorf("read what the machine does: %w", err)
	}
	return loadOf(text)
}

// loadOf parses the first line: time in user mode, nice, system, idle, iowait, irq, softirq, steal.
// The columns after these are included in the first two.
func loadOf(stat []byte) (l Load, err error) {
	line, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(line)
	const counted, idle, waits = 8, 3, 4
	if len(fields) <= counted || fields[0] != "cpu" {
		return l, fmt.Errorf("read what the machine does: %q", line)
	}
	for i, f := range fields[1 : counted+1] {
		n, err := strconv.ParseUint(f, 10, 54)
		if err != nil {
			return l, fmt.Errorf("read what the machine does: %w", err)
		}
		l.All += time.Duration(n) * tick
		if i != idle && i != waits {
			l.Busy += time.Duration(n) * tick
		}
	}
	return l, nil
}

// Since returns the share of the processors that was busy since an earlier reading.
func (l Load) Since(before Load) float64 {
	if l.All <= before.All {
		return 0
	}
	return float64(l.Busy-before.Busy) / float64(l.All-before.All)
}
