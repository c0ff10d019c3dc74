package agentcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/provider/durable"
)

const (
	lockFile = "agent.lock"
	lockWait = 5 * time.Second // for an agent that is ending
	lockDisk = time.Second     // for a disk that may hang, besides
	lockPoll = 100 * time.Millisecond
)

// lockState makes this process the only agent with a state directory: two would run one workload
// and displace each other's streams. Where the lock cannot be taken, since the disk is full or
// hangs, or the file system has no locks, the agent runs all the same: its workload must not
// suffer.
func lockState(ctx context.Context, dir string, log *slog.Logger) (unlock func(), err error) {
	unlock, err = inTime(lockWait+lockDisk, func() (*os.File, error) { return takeLock(ctx, dir, log) })
	switch held := (*durable.HeldError)(nil); {
	case errors.As(err, &held):
		return nil, fmt.Errorf("another agent (%s) uses %s: end it, or give this one a --state-dir of its own",
			held.Holder, dir)
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		log.Warn("nothing keeps a second agent out of the state directory: it cannot be locked", "dir", dir,
			"error", err)
	}
	return unlock, nil
}

// inTime waits for take, but not for a disk that hangs. A lock that comes late is held from then on
// until unlock, which never waits: a lock that comes after that is freed at once.
func inTime(most time.Duration, take func() (*os.File, error)) (unlock func(), err error) {
	type result struct {
		file *os.File
		err  error
	}
	done := make(chan result, 1)
	go func() { // ends when the disk answers
		file, err := take()
		done <- result{file, err}
	}()
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case taken := <-done:
		return func() { _ = taken.file.Close() }, taken.err
	case <-late.C:
		return func() { go func() { _ = (<-done).file.Close() }() }, errors.New("the disk does not answer")
	}
}

// takeLock waits a while for an agent that is ending.
func takeLock(ctx context.Context, dir string, log *slog.Logger) (*os.File, error) {
	late := time.NewTimer(lockWait)
	defer late.Stop()
	again := time.NewTicker(lockPoll)
	defer again.Stop()
	for told := false; ; told = true {
		f, err := durable.Lock(filepath.Join(dir, lockFile))
		held := (*durable.HeldError)(nil)
		if !errors.As(err, &held) {
			return f, err
		}
		if !told {
			log.Info("another agent uses the state directory: waiting for its end", "holder", held.Holder, "dir", dir)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-late.C:
			return nil, err
		case <-again.C:
		}
	}
}
