package agentcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	lockFile = "agent.lock"
	lockWait = 5 * time.Second // for an agent that is ending
	lockDisk = time.Second     // for a disk that may hang, besides
	lockPoll = 100 * time.Millisecond
)

// lockState makes this process the only agent with a state directory: two would run one workload
// and displace each other's streams. The kernel drops the lock when its holder ends or becomes
// another program. Where it cannot be taken, since the disk is full or hangs, or the file system
// has no locks, the agent runs all the same: its workload must not suffer.
func lockState(ctx context.Context, dir string, log *slog.Logger) (unlock func(), err error) {
	type result struct {
		file *os.File
		err  error
	}
	done := make(chan result, 1)
	go func() { // ends when the disk answers
		file, err := takeLock(ctx, dir, log)
		done <- result{file, err}
	}()
	late := time.NewTimer(lockWait + lockDisk)
	defer late.Stop()
	var taken result
	select {
	case taken = <-done:
	case <-late.C:
		taken.err = errors.New("the disk does not answer")
	}
	var used *usedError
	if errors.As(taken.err, &used) || errors.Is(taken.err, context.Canceled) {
		return nil, taken.err
	}
	if taken.err != nil {
		log.Warn("nothing keeps a second agent out of the state directory: it cannot be locked", "dir", dir,
			"error", taken.err)
	}
	return func() { _ = taken.file.Close() }, nil
}

// usedError means that another agent uses the state directory.
type usedError struct{ dir, process string }

func (e *usedError) Error() string {
	return fmt.Sprintf("another agent (process %s) uses %s: end it, or give this one a --state-dir of its own",
		e.process, e.dir)
}

// takeLock waits a while for an agent that is ending. The file is nil if it cannot be opened.
func takeLock(ctx context.Context, dir string, log *slog.Logger) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = tryLock(f)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		log.Info("another agent uses the state directory: waiting for its end", "process", holderOf(f), "dir", dir)
		err = awaitLock(ctx, f)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = &usedError{dir, holderOf(f)}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	if err := f.Truncate(0); err == nil { // a full disk hides only which process it is
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}

func awaitLock(ctx context.Context, f *os.File) error {
	late := time.NewTimer(lockWait)
	defer late.Stop()
	again := time.NewTicker(lockPoll)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return syscall.EWOULDBLOCK
		case <-again.C:
		}
		if err := tryLock(f); !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
	}
}

func tryLock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// holderOf returns the process ID that a lock's holder has written.
func holderOf(f *os.File) string {
	text := make([]byte, 32)
	n, _ := f.ReadAt(text, 0)
	if pid := strings.TrimSpace(string(text[:n])); pid != "" {
		return pid
	}
	return "unknown"
}
