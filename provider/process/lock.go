package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

var errBusy = errors.New("another call is under way")

// acquire takes the lock on a file, waiting for it until ctx ends. The kernel drops it when its
// holder dies. The file may be removed by the holder (and only by it): a call that then gets the
// lock of the removed file tries again on the new one.
func acquire(ctx context.Context, path string) (unlock func(), err error) {
	wait := time.Millisecond
	for {
		unlock, err := tryAcquire(path)
		if !errors.Is(err, errBusy) {
			return unlock, err
		}
		if err := pause(ctx, &wait, 50*time.Millisecond); err != nil {
			return nil, fmt.Errorf("wait for lock %s: %w", path, err)
		}
	}
}

// tryAcquire takes the lock if it is free, else it returns errBusy.
func tryAcquire(path string) (unlock func(), err error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open lock: %w", err)
		}
		ours, err := claim(f, path)
		if err == nil && ours {
			return func() { f.Close() }, nil
		}
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errBusy
		}
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
}

// claim locks an open file, and reports whether that is the lock: it is not if the file was removed
// since it was opened.
func claim(f *os.File, path string) (bool, error) {
	if err := flock(f); err != nil {
		return false, err
	}
	ours, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(ours, named), err
}

func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// pause waits, doubling the wait for the next time up to most.
func pause(ctx context.Context, wait *time.Duration, most time.Duration) error {
	t := time.NewTimer(*wait)
	defer t.Stop()
	*wait = min(2**wait, most)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
