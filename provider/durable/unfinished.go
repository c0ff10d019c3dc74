package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// mark is in the names of files that are not yet whole: .NAME.leasehold-new-NUMBER.
const mark = ".leasehold-new-"

// unfinishedAge is how long a file must have stayed as it is before it counts as left behind. The
// lock says whether its writer is alive, but not on every network file system.
const unfinishedAge = 10 * time.Minute

// begin creates the file that will replace another. It is locked as long as it is open, so that
// RemoveUnfinished leaves it alone.
func begin(path string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+mark+"*") // 0600 until it has its mode
		if err != nil {
			return nil, err
		}
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX) // without locks, the file's age protects it
		if _, err := os.Lstat(f.Name()); !errors.Is(err, fs.ErrNotExist) {
			return f, nil
		}
		_ = f.Close() // it was removed before it was locked
	}
}

// RemoveUnfinished removes the files that dead writers left behind in a directory. A file stays if
// its writer is alive, if it is younger than ten minutes, or if this user may not remove it.
func RemoveUnfinished(dir string, now time.Time) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		name, number, found := strings.Cut(e.Name(), mark)
		if !found || !strings.HasPrefix(name, ".") || !digits(number) || !e.Type().IsRegular() {
			continue
		}
		err := removeDead(filepath.Join(dir, e.Name()), now)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// removeDead removes an unfinished file unless it is young or has a writer.
func removeDead(path string, now time.Time) error {
	f, err := openUnfinished(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // and with it the lock
	if info, err := f.Stat(); err != nil || now.Sub(info.ModTime()) < unfinishedAge {
		return err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil // it has a writer, or there are no locks here
	}
	return os.Remove(path)
}

// openUnfinished opens a file to be locked. It is opened for writing too: NFS refuses an exclusive
// lock on a file that is only read.
func openUnfinished(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
