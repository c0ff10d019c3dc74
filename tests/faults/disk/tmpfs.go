package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Tmpfs is a disk in memory.
type Tmpfs struct {
	Dir   string // mount point
	size  int64
	guard *guard

	mu       sync.Mutex
	full     bool
	readOnly bool
}

// placeholder is a file that makes a disk never empty.
const placeholder = ".disk"

// Mount mounts one of the given size at a directory, which is created if necessary. Its content is
// gone when it is closed, or when this process ends.
func Mount(dir string, size int64) (*Tmpfs, error) {
	d := &Tmpfs{Dir: dir, size: size}
	if err := d.mount(); err != nil {
		return nil, explain("mount a disk at", dir, err)
	}
	return d, nil
}

func (d *Tmpfs) mount() (err error) {
	if err := errors.Join(allowed(), os.MkdirAll(d.Dir, 0o700)); err != nil {
		return err
	}
	if d.guard, err = watchOver(d.Dir); err != nil {
		return err
	}
	if err := unix.Mount("leasehold-test", d.Dir, "tmpfs", flags,
		fmt.Sprintf("size=%d,mode=0700", d.size)); err != nil {
		return errors.Join(err, d.guard.leave())
	}
	// An empty one cannot be full: a size of 0 is none.
	if err := os.WriteFile(filepath.Join(d.Dir, placeholder), []byte("a disk of a test\n"), 0o600); err != nil {
		return errors.Join(err, d.guard.leave())
	}
	return nil
}

const flags = unix.MS_NOSUID | unix.MS_NODEV

// Empty removes all files.
func (d *Tmpfs) Empty() error {
	entries, err := os.ReadDir(d.Dir)
	for _, e := range entries {
		if e.Name() != placeholder {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.Dir, e.Name())))
		}
	}
	return err
}

// Fill uses all remaining space. Existing files stay, and removing them makes space again.
func (d *Tmpfs) Fill() error { return d.change("fill", func() { d.full = true }) }

// Free releases the space that Fill used.
func (d *Tmpfs) Free() error { return d.change("free", func() { d.full = false }) }

// MakeReadOnly forbids writes. The kernel refuses that while a file is open for writing: it is
// retried for a while, which is enough for processes that write now and then, and fails for those
// that keep a file open, as etcd does.
func (d *Tmpfs) MakeReadOnly() error {
	return d.change("make read-only", func() { d.readOnly = true })
}

// MakeWritable undoes that.
func (d *Tmpfs) MakeWritable() error {
	return d.change("make writable", func() { d.readOnly = false })
}

// shortly is how long a file may be open for writing, or space be used, during a change.
const shortly = 2 * time.Second

func (d *Tmpfs) change(what string, state func()) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	full, readOnly := d.full, d.readOnly
	state()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	end := time.NewTimer(shortly)
	defer end.Stop()
	for {
		err := d.remount()
		if err == nil {
			return nil
		}
		// open for writing; more is used than a moment ago
		if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EINVAL) {
			select {
			case <-again.C:
				continue
			case <-end.C:
			}
		}
		d.full, d.readOnly = full, readOnly
		if errors.Is(err, unix.EBUSY) {
			err = fmt.Errorf("%w: a file on it is kept open for writing", err)
		}
		return explain(what, d.Dir, err)
	}
}

// remount changes the mount options.
func (d *Tmpfs) remount() error {
	size, how := d.size, uintptr(flags|unix.MS_REMOUNT)
	if d.full {
		var now unix.Statfs_t
		if err := unix.Statfs(d.Dir, &now); err != nil {
			return err
		}
		size = int64(now.Blocks-now.Bfree) * now.Bsize
	}
	if d.readOnly {
		how |= unix.MS_RDONLY
	}
	return unix.Mount("leasehold-test", d.Dir, "tmpfs", how, fmt.Sprintf("size=%d", size))
}

// Close unmounts it, when no process uses it any more. It may be repeated.
func (d *Tmpfs) Close() error {
	if err := d.guard.leave(); err != nil {
		return explain("unmount", d.Dir, err)
	}
	return nil
}
