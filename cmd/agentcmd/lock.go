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
	lockWait = 10 * time.Second // for an agent that is ending
	lockPoll = 100 * time.Millisecond
)

// lockState makes this process the only agent with a state directory: two would run one workload
// and displace each other's streams. The kernel drops the lock when its holder ends or becomes
// another program. Where it cannot be taken, since the disk is full or the file system has no
// locks, the agent runs all the same: its workload must not suffer.
func lockState(ctx context.Context, dir string, log *slog.Logger) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = tryLock(f)
	}
	unlock = func() { _ = f.Close() }
	if errors.Is(err, syscall.EWOULDBLOCK) {
		log.Info("another agent uses the state directory: waiting for its end", "process", holderOf(f), "dir", dir)
		err = awaitLock(ctx, f)
	}
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		defer unlock()
		return nil, fmt.Errorf("another agent (process %s) uses %s: end it, or give this one a --state-dir of its own",
			holderOf(f), dir)
	case err != nil:
		log.Warn("nothing keeps a second agent out of the state directory: it cannot be locked", "dir", dir, "error", err)
		return unlock, nil
	}
	if err := f.Truncate(0); err == nil { // a full disk hides only which process it is
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return unlock, nil
}

func awaitLock(ctx context.Context, f *os.File) error {
	ctx, stop := context.WithTimeout(ctx, lockWait)
	defer stop()
	again := time.NewTicker(lockPoll)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
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
