package embedetcd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// lockName is the file in a data directory that its owner keeps locked. It holds the owner's
// process ID.
const lockName = "leasehold.lock"

// dirLock is the right to a data directory. The kernel takes it back when the process ends, however
// it ends.
type dirLock struct{ file *os.File }

// lockDir creates the directory if necessary and locks it, or returns which process has it. It
// never waits: etcd itself would wait silently.
func lockDir(dir string) (*dirLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, explainDir(dir, err)
	}
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, explainDir(dir, err)
	}
	lock := &dirLock{file: file}
	if err := tryLock(file); err != nil {
		owner := ownerOf(file)
		return nil, errors.Join(explainLock(dir, owner, err), file.Close())
	}
	if err := lock.sign(); err != nil {
		return nil, errors.Join(explainDir(dir, err), lock.release())
	}
	// An etcd that was started by hand does not use our file. It locks its database.
	if err := probeDatabase(dir); err != nil {
		return nil, errors.Join(err, lock.release())
	}
	return lock, nil
}

func tryLock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// sign writes our process ID for processes that find the directory locked.
func (l *dirLock) sign() error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// release frees the directory. The file stays: removing it would let two owners lock two files of
// the same name.
func (l *dirLock) release() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("release lock of data directory: %w", err)
	}
	return nil
}

func ownerOf(f *os.File) string {
	buf := make([]byte, 32)
	n, _ := f.ReadAt(buf, 0) // whatever is there helps
	if pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n]))); err == nil {
		return fmt.Sprintf("process %d", pid)
	}
	return "another process"
}

// probeDatabase opens etcd's database, if there is one, for reading. It fails if another etcd holds
// it, which etcd itself would wait for, and if it is no database, over which etcd would panic where
// no caller can catch it.
func probeDatabase(dir string) error {
	path := dbPath(dir)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	db, err := bolt.Open(path, 0, &bolt.Options{ReadOnly: true, Timeout: databaseWait})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return explainLock(dir, "another etcd", syscall.EWOULDBLOCK)
	case errors.Is(err, fs.ErrPermission):
		return explainDir(dir, err)
	case err != nil:
		return explainData(dir, fmt.Sprintf("%s: %v", filepath.Base(path), err))
	}
	if err := db.Close(); err != nil {
		return explainDir(dir, err)
	}
	return nil
}

// databaseWait is how long another owner of the database may take to let it go.
const databaseWait = 500 * time.Millisecond

func explainLock(dir, owner string, err error) error {
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("start embedded etcd: data directory %s is in use by %s: stop it, or give another directory",
			dir, owner)
	}
	return fmt.Errorf("start embedded etcd: lock data directory %s: %w", dir, err)
}

func explainDir(dir string, err error) error {
	var cause error = err
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		cause = p.Err
	}
	if full := explainFull(dir, err); full != nil {
		return full
	}
	switch {
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		return fmt.Errorf("start embedded etcd: data directory %s is not writable: %w: "+
			"give its owner the right to write, or give another directory", dir, cause)
	case errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist):
		return fmt.Errorf("start embedded etcd: data directory %s: a file is in the way: give another directory", dir)
	}
	return fmt.Errorf("start embedded etcd: data directory %s: %w: give another directory", dir, cause)
}
