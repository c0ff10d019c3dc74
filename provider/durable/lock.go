package durable

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// HeldError means that another process holds a lock.
type HeldError struct{ Holder string } // "process 123", or "another process"

func (e *HeldError) Error() string { return e.Holder + " holds the lock" }

// Lock takes the lock that a file stands for, and writes our process ID into the file. It never
// waits: a *HeldError names who has the lock. Closing the file frees it; so does the kernel, when
// the process ends or becomes another program. The file stays, since two processes could lock two
// files of the same name. A full disk can leave the holder unnamed; the lock itself needs no space.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err = tryLock(f); errors.Is(err, syscall.EWOULDBLOCK) {
		err = &HeldError{holderOf(f)}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	sign(f)
	return f, nil
}

func tryLock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// sign names us in the file, as best it can: only messages need the name.
func sign(f *os.File) {
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
}

func holderOf(f *os.File) string {
	text := make([]byte, 32)
	n, _ := f.ReadAt(text, 0) // whatever is there helps
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n]))); err == nil {
		return fmt.Sprintf("process %d", pid)
	}
	return "another process"
}
