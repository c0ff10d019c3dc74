package files

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/leasehold/leasehold/agent/files/roots"
	"github.com/leasehold/leasehold/agent/protocol"
)

// place is the location of a file, relative to a root.
type place struct{ root, name string }

// errOutside means that a wanted file is outside of the roots, where the agent may not write.
var errOutside = errors.New("it is in no directory that --files-root of the agent names")

// find returns the location of a path.
func find(path string, dirs []string) (place, error) {
	root, name, inside := roots.Find(path, dirs)
	if !inside {
		return place{}, errOutside
	}
	return place{root, name}, nil
}

// attributes are a file's wanted attributes besides its content.
type attributes struct {
	mode     fs.FileMode
	uid, gid int // -1: any
}

// stamp changes with every change of a file.
type stamp struct {
	inode, size  uint64
	ctime, mtime syscall.Timespec
}

// found describes a file on disk.
type found struct {
	sum   [sha256.Size]byte
	stamp stamp
	attrs attributes
}

// lstat returns the stamp and the attributes of the file at a place.
func lstat(root *os.Root, name string) (found, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return found{}, err
	}
	if !info.Mode().IsRegular() {
		return found{}, fmt.Errorf("it is not a regular file: %s", info.Mode().Type())
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return found{}, errors.New("its owner is unknown")
	}
	return found{
		stamp: stamp{s.Ino, uint64(s.Size), s.Ctim, s.Mtim},
		attrs: attributes{info.Mode().Perm(), int(s.Uid), int(s.Gid)},
	}, nil
}

// openFile opens a regular file. If something else has replaced it since the lstat, such as a named
// pipe, the result is an error and nothing blocks: users of the machine may change the directory at
// any moment.
func openFile(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is not a regular file: %s", info.Mode().Type())
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// look reads what is on disk. It does not read a file again whose stamp is known.
func look(p place, known found) (found, error) {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return found{}, err
	}
	defer func() { _ = root.Close() }()
	now, err := lstat(root, p.name)
	if err != nil {
		return found{}, err
	}
	if now.stamp == known.stamp {
		return known, nil
	}
	if now.stamp.size > protocol.MaxFile {
		return now, nil // its hash matches no wanted file
	}
	f, err := openFile(root, p.name)
	if err != nil {
		return found{}, err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(f, protocol.MaxFile+1)); err != nil {
		return found{}, err
	}
	sum.Sum(now.sum[:0])
	return now, nil
}

// read reads a file up to the size limit.
func read(p place) ([]byte, error) {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	if _, err := lstat(root, p.name); err != nil {
		return nil, err
	}
	f, err := openFile(root, p.name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, protocol.MaxFile))
}

// fits reports whether attributes are as wanted.
func (a attributes) fits(wanted attributes) bool {
	return a.mode == wanted.mode && (wanted.uid < 0 || a.uid == wanted.uid) && (wanted.gid < 0 || a.gid == wanted.gid)
}

// newSuffix is the suffix of a file that is not complete yet.
const newSuffix = ".leasehold-new"

// replace replaces a file as a whole. It calls at before each step; an error of at or of a step
// leaves the old file. A crash leaves a file with another name, which the next replace removes.
func replace(p place, content []byte, wanted attributes, at func(step string) error) error {
	if err := stage(p, content, wanted, at); err != nil {
		return err
	}
	err := exchange(p, at)
	if err != nil {
		unstage(p)
	}
	return err
}

// staged returns the name of the temporary file beside the file that it will replace.
func staged(name string) string {
	dir, base := filepath.Split(name)
	return filepath.Join(dir, "."+base+newSuffix)
}

// stage writes the temporary file, complete and synced. After an error it leaves nothing.
func stage(p place, content []byte, wanted attributes, at func(step string) error) error {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	next := staged(p.name)
	if err := at("remove what a crash left"); err != nil {
		return err
	}
	if err := root.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := at("create"); err != nil {
		return err
	}
	f, err := root.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err = errors.Join(fill(f, content, wanted, at), f.Close()); err != nil {
		_ = root.Remove(next) // the next attempt tries again
	}
	return err
}

// unstage removes the temporary file.
func unstage(p place) {
	if root, err := os.OpenRoot(p.root); err == nil {
		_ = root.Remove(staged(p.name)) // the next stage tries again
		_ = root.Close()
	}
}

// exchange renames the temporary file over the old one.
func exchange(p place, at func(step string) error) error {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := at("rename"); err != nil {
		return err
	}
	if err := root.Rename(staged(p.name), p.name); err != nil {
		return err
	}
	if err := at("sync directory"); err != nil {
		return err
	}
	return syncDir(root, filepath.Dir(p.name))
}

func fill(f *os.File, content []byte, wanted attributes, at func(step string) error) error {
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"write", func() error { _, err := f.Write(content); return err }},
		{"chown", func() error {
			if wanted.uid < 0 && wanted.gid < 0 {
				return nil
			}
			return f.Chown(wanted.uid, wanted.gid)
		}},
		{"chmod", func() error { return f.Chmod(wanted.mode) }},
		{"sync", f.Sync},
	} {
		if err := at(step.name); err != nil {
			return err
		}
		if err := step.do(); err != nil {
			return err
		}
	}
	return nil
}

func syncDir(root *os.Root, dir string) error {
	d, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ownerOf returns the user and group IDs for USER or USER:GROUP; -1 means any.
func ownerOf(owner string) (uid, gid int, err error) {
	if owner == "" {
		return -1, -1, nil
	}
	name, group, both := strings.Cut(owner, ":")
	if uid, err = strconv.Atoi(name); err != nil {
		u, err := user.Lookup(name)
		if err != nil {
			return 0, 0, fmt.Errorf("owner %s: there is no user %s on this machine", owner, name)
		}
		if uid, err = strconv.Atoi(u.Uid); err != nil {
			return 0, 0, fmt.Errorf("owner %s: %w", owner, err)
		}
	}
	if !both {
		return uid, -1, nil
	}
	if gid, err = strconv.Atoi(group); err != nil {
		g, err := user.LookupGroup(group)
		if err != nil {
			return 0, 0, fmt.Errorf("owner %s: there is no group %s on this machine", owner, group)
		}
		if gid, err = strconv.Atoi(g.Gid); err != nil {
			return 0, 0, fmt.Errorf("owner %s: %w", owner, err)
		}
	}
	return uid, gid, nil
}

// plain returns the cause of a file system error without the path that os adds: the report has the
// path.
func plain(err error, path string) string {
	var at *fs.PathError
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "the disk is full: " + syscall.ENOSPC.Error()
	case errors.Is(err, fs.ErrNotExist):
		return "the directory " + filepath.Dir(path) + " does not exist: create it on the machine"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only"
	case strings.Contains(err.Error(), "escapes from parent"):
		return "a symbolic link leads out of the directory that --files-root of the agent names"
	case errors.As(err, &at):
		return at.Op + ": " + at.Err.Error()
	default:
		return err.Error()
	}
}
