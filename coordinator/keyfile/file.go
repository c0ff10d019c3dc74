package keyfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/leasehold/leasehold/coordinator/encryption"
	"github.com/leasehold/leasehold/provider/durable"
)

// Usual is the default path of the keys.
const Usual = "/etc/leasehold/secrets.key"

// maxFile bounds what is read: a hundred keys are far below.
const maxFile = 64 << 10

// ErrOpen: others may read the file.
var ErrOpen = errors.New("others may read it")

// Read reads the keys of a file.
func Read(path string) (encryption.Ring, error) {
	text, err := readFile(path)
	if err != nil {
		return encryption.Ring{}, err
	}
	return parse(path, text)
}

func parse(path, text string) (encryption.Ring, error) {
	ring, err := encryption.ParseRing(text)
	if err != nil {
		return encryption.Ring{}, fmt.Errorf("key file %s: %w", path, err)
	}
	return ring, nil
}

func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("key file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("key file: %w", err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("key file %s is no file", path)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("key file %s has mode %04o: %w: chmod 600 %s", path, info.Mode().Perm(),
			ErrOpen, path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", fmt.Errorf("key file: %w", err)
	}
	if len(data) > maxFile {
		return "", fmt.Errorf("key file %s is longer than %d bytes: that is no key file", path, maxFile)
	}
	return string(data), nil
}

// Create makes a key file. One that is there is left alone, and the error is fs.ErrExist.
func Create(path string, ring encryption.Ring) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("make key file: %w", err)
	}
	_, err = f.Write(text(ring))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("make key file: %w", err), os.Remove(path))
	}
	if err := durable.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("make key file: %w", err)
	}
	return nil
}

// Lock keeps others from changing a key file, until the function that comes with it is called. It
// never waits.
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

// Replace writes other keys into a file whose keys were was. The caller must hold the lock. The
// file keeps its owner.
func Replace(path string, was, now encryption.Ring) error {
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
	belongs := func(f *os.File) error {
		owner, ok := info.Sys().(*syscall.Stat_t)
		if !ok || int(owner.Uid) == os.Geteuid() {
			return nil
		}
		if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			return fmt.Errorf("its owner could no longer read it: %w", err)
		}
		return nil
	}
	if err := durable.Replace(path, text(now), 0o600, belongs); err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	return nil
}

// text is what a file with these keys holds.
func text(ring encryption.Ring) []byte {
	return []byte("# Keys for leasehold secrets: the first encrypts, all decrypt. With this file and etcd every secret " +
		"can be read.\n" + ring.Text())
}
