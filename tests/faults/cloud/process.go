package cloud

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/tests/machines"
)

// census scans all processes of the host. Callers at the same time share one scan, which begins
// after all of them called.
type census struct {
	mu     sync.Mutex
	next   *survey // not begun yet
	looked sync.Mutex
}

type survey struct {
	done  chan struct{}
	found map[string][]int
}

// look returns the processes of all machines with a mark, by a scan that begins after the call.
func (c *census) look(mark string) map[string][]int {
	c.mu.Lock()
	s := c.next
	if s != nil {
		c.mu.Unlock()
		<-s.done
		return s.found
	}
	s = &survey{done: make(chan struct{}), found: map[string][]int{}}
	c.next = s
	c.mu.Unlock()

	c.looked.Lock() // one is enough for the host
	defer c.looked.Unlock()
	c.mu.Lock()
	c.next = nil
	c.mu.Unlock()
	for _, carrier := range machines.Carriers(machines.EnvTest) {
		if instance, ours := strings.CutPrefix(carrier.Value, mark+"/"); ours {
			s.found[instance] = append(s.found[instance], carrier.PID)
		}
	}
	close(s.done)
	return s.found
}

func (c *Cloud) processes(m *machine) []int { return c.census.look(c.mark)[m.id] }

// signal sends a signal to a process if it belongs to the machine. The process cannot be replaced
// by another of the same number after that check.
func (c *Cloud) signal(m *machine, pid int, sig syscall.Signal) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }() // not a child of this process
	if value, _ := machines.Carries(pid, machines.EnvTest); value != c.mark+"/"+m.id {
		return false
	}
	return p.Signal(sig) == nil
}

// untilNone sends a signal to all processes of a machine that need it, until two scans in a row
// find none: a process in the middle of exec is invisible.
func (c *Cloud) untilNone(m *machine, needs func(pid int) bool, sig syscall.Signal) {
	pause, late := time.Millisecond, time.After(patience)
	for clean := 0; clean < 2; clean++ {
		for _, pid := range c.processes(m) {
			if needs(pid) && c.signal(m, pid, sig) {
				clean = -1
			}
		}
		if clean >= 0 {
			continue
		}
		select {
		case <-time.After(pause): // the kernel takes a moment
			pause = min(2*pause, 50*time.Millisecond)
		case <-late:
			c.failed("machine %s: processes %v ignore %s", m.id, c.processes(m), sig)
			return
		}
	}
}

// patience is how long the kernel may take.
const patience = time.Minute

// killAll kills all processes of a machine, including stopped ones.
func (c *Cloud) killAll(m *machine) {
	m.act.Lock()
	defer m.act.Unlock()
	c.mu.Lock()
	a := m.agent
	c.mu.Unlock()
	if a != nil {
		a.kill()
	}
	c.untilNone(m, func(int) bool { return true }, syscall.SIGKILL)
}

// stands reports whether a process is stopped, or has ended.
func stands(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte{' '})
	return len(rest) > 0 && bytes.IndexByte([]byte("TtZX"), rest[0]) >= 0
}
