package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrShared: others could exchange what is in a directory.
var ErrShared = errors.New("what is in it could be exchanged by others")

// MakeDir makes a directory for trusted files, such as keys, with access for this user only. An
// existing one must belong to this user or to root, and must not be writable by others: they could
// replace a file, or make it a link to anywhere.
func MakeDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() && s.Uid != 0 {
		return fmt.Errorf("%s belongs to user %d, and this is user %d: %w", path, s.Uid, os.Geteuid(), ErrShared)
	}
	if mode := info.Mode(); mode.Perm()&0o002 != 0 {
		return fmt.Errorf("%s may be written by everybody (mode %04o): %w", path, mode&fs.ModePerm, ErrShared)
	}
	return nil
}
