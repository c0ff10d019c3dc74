package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// handle waits, for a limited time, for a process that is not a child of this one.
type handle struct{ file *os.File }

// openHandle returns nil if the kernel does not support handles (before 5.10).
func openHandle(pid int) *handle {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil
	}
	return &handle{file: os.NewFile(uintptr(fd), fmt.Sprintf("pidfd:%d", pid))}
}

// wait returns nil once the process has ended (its exit code remains for its parent), or the
// context's error.
func (h *handle) wait(ctx context.Context) error {
	conn, err := h.file.SyscallConn()
	if err != nil {
		return fmt.Errorf("wait for process: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = h.file.SetReadDeadline(time.Unix(1, 0)) })()
	var failed error
	err = conn.Read(func(fd uintptr) bool {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		if err != nil && !errors.Is(err, unix.EINTR) {
			failed = err
			return true
		}
		return n > 0
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("wait for process: %w", err)
	case failed != nil:
		return fmt.Errorf("wait for process: %w", failed)
	}
	return nil
}

func (h *handle) close() { _ = h.file.Close() }

// lookEvery is the polling interval where the kernel does not announce the end of a process.
const lookEvery = 200 * time.Millisecond

// awaitEnd returns nil once the process with this ID and start time has ended, or the context's
// error.
func awaitEnd(ctx context.Context, pid int, start string) error {
	if h := openHandle(pid); h != nil {
		defer h.close()
		// Only this check makes sure that the handle is of the right process.
		if s, err := readStat(pid); err != nil || s.start != start {
			return nil
		}
		if err := h.wait(ctx); err == nil || ctx.Err() != nil {
			return err
		}
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if s, err := readStat(pid); err != nil || s.start != start || s.state == "Z" || s.state == "X" {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
