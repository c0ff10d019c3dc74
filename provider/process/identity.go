package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// identity names a process for good: while the kernel runs, no other process has both this pid and
// this start time.
type identity struct {
	pid   int
	start uint64
}

// stat is the part of /proc/<pid>/stat that identifies a process.
type stat struct {
	identity
	state               byte
	parent, pgrp, sessn int
	threads             int
}

// ended reports whether the process is a zombie: it has ended and was not waited for. While it has
// other threads the process has not ended, though its first thread may have.
func (s stat) ended() bool { return s.state == 'X' || s.state == 'Z' && s.threads <= 1 }

var errGone = errors.New("no such process")

// readStat returns errGone only if the kernel reports that there is no such process. Any other
// error proves nothing.
func readStat(pid int) (stat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return stat{}, errGone
	}
	if err != nil {
		return stat{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	// The second field is the program's name in parentheses and may hold anything, spaces and
	// parentheses included.
	end := bytes.LastIndexByte(data, ')')
	fields := bytes.Fields(data[end+1:])
	if end < 0 || len(fields) < 20 {
		return stat{}, fmt.Errorf("look at process %d: cannot read its stat %q", pid, data)
	}
	s := stat{identity: identity{pid: pid}, state: fields[0][0]}
	var errs [5]error
	s.parent, errs[0] = strconv.Atoi(string(fields[1]))
	s.pgrp, errs[1] = strconv.Atoi(string(fields[2]))
	s.sessn, errs[2] = strconv.Atoi(string(fields[3]))
	s.threads, errs[3] = strconv.Atoi(string(fields[17]))
	s.start, errs[4] = strconv.ParseUint(string(fields[19]), 10, 64)
	if err := errors.Join(errs[:]...); err != nil {
		return stat{}, fmt.Errorf("look at process %d: cannot read its stat: %w", pid, err)
	}
	return s, nil
}

// runs reports whether exactly this process is still running.
func (id identity) runs() (bool, error) {
	if id.pid == 0 {
		return false, nil
	}
	s, err := readStat(id.pid)
	if errors.Is(err, errGone) {
		return false, nil
	}
	return err == nil && s.identity == id && !s.ended(), err
}

// signal sends a signal to exactly this process. One that is gone is no error. The pidfd is taken
// before the start time is compared, so that the pid cannot change hands in between.
func (id identity) signal(sig syscall.Signal) error {
	if id.pid <= 1 || id.pid == os.Getpid() {
		return fmt.Errorf("signal process %d: refused: it belongs to no machine", id.pid)
	}
	fd, err := unix.PidfdOpen(id.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("signal process %d: open pidfd: %w", id.pid, err)
	}
	defer unix.Close(fd)
	s, err := readStat(id.pid)
	if errors.Is(err, errGone) || err == nil && s.identity != id {
		return nil
	}
	if err != nil {
		return err
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal process %d: %w", id.pid, err)
	}
	return nil
}

// reap takes the exit status of an ended child of ours, so that it does not stay a zombie. It
// returns nil when there is none to take: it still runs, or is not our child. Call it with the
// machine's lock held, so that the status is recorded by the call that took it.
func (id identity) reap() *exit {
	if id.pid == 0 {
		return nil
	}
	s, err := readStat(id.pid)
	if err != nil || s.identity != id || !s.ended() || s.parent != os.Getpid() {
		return nil
	}
	var ws syscall.WaitStatus
	for {
		got, err := syscall.Wait4(id.pid, &ws, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || got != id.pid {
			return nil
		}
		break
	}
	if ws.Signaled() {
		return &exit{Code: -1, Signal: unix.SignalName(ws.Signal())}
	}
	return &exit{Code: ws.ExitStatus()}
}

// hostBootID changes with each start of the kernel.
func hostBootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
}

// sinceHostBoot does not follow the wall clock.
func sinceHostBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
