package stage

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Actor is a replica or a member of etcd, which something can be done to: a process of the stage,
// or a part of a host.
type Actor interface {
	PID() int
	Freeze()
	Thaw()
	Kill()
	Terminate()
	HasEnded() bool
	// Ended is closed when the process has ended that Kill or Terminate was called for last.
	Ended() <-chan struct{}
	SetClock(by time.Duration) error
}

// part is the member or the replica of a host. Its supervisor starts it again whenever it ends.
type part struct {
	host *Host
	name string

	mu     sync.Mutex
	frozen []int
	ending <-chan struct{}
}

// PID is its latest process, as the supervisor's log says.
func (p *part) PID() int {
	mark := fmt.Sprintf(`"part":%q,"pid":`, p.name)
	text := p.host.Said()
	i := strings.LastIndex(text, mark)
	pid := 0
	if i >= 0 {
		_, _ = fmt.Sscanf(text[i+len(mark):], "%d", &pid) // 0: it has not been started yet
	}
	return pid
}

func (p *part) signal(sig syscall.Signal, pids ...int) {
	for _, pid := range pids {
		if pid > 0 {
			_ = syscall.Kill(pid, sig) // it may have ended
		}
	}
}

func (p *part) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	pid := p.PID()
	p.frozen = append(p.frozen, pid)
	p.signal(syscall.SIGSTOP, pid)
}

func (p *part) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signal(syscall.SIGCONT, p.frozen...)
	p.frozen = nil
}

func (p *part) Kill() { <-p.end(syscall.SIGKILL) }

func (p *part) Terminate() { p.end(syscall.SIGTERM) }

func (p *part) end(sig syscall.Signal) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	pid := p.PID()
	p.ending = endOf(pid)
	p.signal(sig, pid)
	return p.ending
}

func (p *part) Ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending == nil {
		p.ending = endOf(p.PID())
	}
	return p.ending
}

func (p *part) HasEnded() bool {
	pid := p.PID()
	return pid == 0 || syscall.Kill(pid, 0) != nil
}

// SetClock sets the clock of the host: all that runs on it has the same.
func (p *part) SetClock(by time.Duration) error { return p.host.SetClock(by) }

// endOf is closed when a process has ended, also if nothing has waited for it yet.
func endOf(pid int) <-chan struct{} {
	ended := make(chan struct{})
	file, err := unix.PidfdOpen(pid, 0)
	if err != nil { // there is none
		close(ended)
		return ended
	}
	go func() {
		defer close(ended)
		defer func() { _ = unix.Close(file) }()
		for {
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(file), Events: unix.POLLIN}}, -1); err != unix.EINTR {
				return
			}
		}
	}()
	return ended
}

// SetClock sets a host's wall clock wrong by so much.
func (h *Host) SetClock(by time.Duration) error {
	place := h.clock()
	if err := os.WriteFile(place+".new", fmt.Append(nil, int64(by/time.Second)), 0o600); err != nil {
		return err
	}
	return os.Rename(place+".new", place)
}
