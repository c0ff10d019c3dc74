package embedetcd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/leasehold/leasehold/provider/durable"
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
	file, err := durable.Lock(filepath.Join(dir, lockName))
	if held := (*durable.HeldError)(nil); errors.As(err, &held) {
		return nil, inUse(dir, held.Holder)
	}
	if err != nil {
		return nil, explainDir(dir, err)
	}
	lock := &dirLock{file: file}
	// An etcd that was started by hand does not use our file. It locks its database.
	if err := probeDatabase(dir); err != nil {
		return nil, errors.Join(err, lock.release())
	}
	return lock, nil
}

// release frees the directory.
func (l *dirLock) release() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("release lock of data directory: %w", err)
	}
	return nil
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
		return inUse(dir, "another etcd")
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

func inUse(dir, holder string) error {
	return fmt.Errorf("start embedded etcd: data directory %s is in use by %s: stop it, or give another directory",
		dir, holder)
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
