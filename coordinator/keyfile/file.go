package keyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/leasehold/leasehold/coordinator/sealed"
)

// Usual is where the keys are, unless somebody says otherwise.
const Usual = "/etc/leasehold/secrets.key"

// mostFile bounds what is read: a hundred keys are far below.
const mostFile = 64 << 10

// ErrOpen: others may read the file.
var ErrOpen = errors.New("others may read it")

// Read reads the keys of a file.
func Read(path string) (sealed.Ring, error) {
	f, err := os.Open(path)
	if err != nil {
		return sealed.Ring{}, fmt.Errorf("key file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return sealed.Ring{}, fmt.Errorf("key file: %w", err)
	case !info.Mode().IsRegular():
		return sealed.Ring{}, fmt.Errorf("key file %s is no file", path)
	case info.Mode().Perm()&0o077 != 0:
		return sealed.Ring{}, fmt.Errorf("key file %s has mode %04o: %w: chmod 600 %s", path, info.Mode().Perm(), ErrOpen, path)
	}
	data, err := io.ReadAll(io.LimitReader(f, mostFile+1))
	if err != nil {
		return sealed.Ring{}, fmt.Errorf("key file: %w", err)
	}
	if len(data) > mostFile {
		return sealed.Ring{}, fmt.Errorf("key file %s is longer than %d bytes: that is no key file", path, mostFile)
	}
	ring, err := sealed.ParseRing(string(data))
	if err != nil {
		return sealed.Ring{}, fmt.Errorf("key file %s: %w", path, err)
	}
	return ring, nil
}

// Create makes a key file. One that is there is left alone, and the error is fs.ErrExist.
func Create(path string, ring sealed.Ring) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("make key file: %w", err)
	}
	if err := fill(f, ring); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return syncDir(path)
}

// Lock keeps others from changing a key file, until the function that comes with it is called. It waits for nobody.
func Lock(path string) (unlock func(), err error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("lock key file: %w", err)
	}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = dir.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("key file %s is being changed by another program", path)
		}
		return nil, fmt.Errorf("lock key file: %w", err)
	}
	return func() { _ = dir.Close() }, nil // which ends the lock
}

// Replace writes other keys into a file whose keys were was. Whoever calls it holds the lock. The file goes on belonging to whom it did.
func Replace(path string, was, now sealed.Ring) error {
	present, err := Read(path)
	if err != nil {
		return err
	}
	if !present.Equal(was) {
		return fmt.Errorf("key file %s was changed meanwhile", path)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	next := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) { // of one that was interrupted
		return fmt.Errorf("write key file: %w", err)
	}
	f, err := os.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			return errors.Join(fmt.Errorf("write key file: its owner could not read it any more: %w", err), f.Close(), os.Remove(next))
		}
	}
	if err := fill(f, now); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	if err := os.Rename(next, path); err != nil {
		return errors.Join(fmt.Errorf("write key file: %w", err), os.Remove(next))
	}
	return syncDir(path)
}

// fill writes the keys, has them on disk, and closes the file.
func fill(f *os.File, ring sealed.Ring) error {
	var text bytes.Buffer
	text.WriteString("# Keys for leasehold secrets: the first encrypts, all decrypt. Whoever has this file and etcd can read every secret.\n")
	text.WriteString(ring.Text())
	_, err := f.Write(text.Bytes())
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	return nil
}

func syncDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	return nil
}
