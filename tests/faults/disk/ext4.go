package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Ext4 is a file system in a file. When frozen (FIFREEZE), it accepts no write: writers wait, as on
// a disk that stalls.
type Ext4 struct {
	Dir   string // mount point
	guard *guard

	mu     sync.Mutex
	frozen bool
	pulses func() error // ends them; nil if there are none
}

// MountExt4 creates one of the given size, and mounts it. It is removed when it is closed, or when
// this process ends.
func MountExt4(size int64) (*Ext4, error) {
	if err := allowed(); err != nil {
		return nil, explain("mount", "a disk", err)
	}
	home, err := os.MkdirTemp("", "leasehold-disk-") // the guard removes it
	if err != nil {
		return nil, err
	}
	d := &Ext4{Dir: filepath.Join(home, "mounted")}
	if d.guard, err = watchOver(d.Dir, home); err != nil {
		return nil, errors.Join(err, os.Remove(home))
	}
	if err := d.mount(filepath.Join(home, "disk"), size); err != nil {
		return nil, errors.Join(explain("mount a disk at", d.Dir, err), d.guard.leave())
	}
	return d, nil
}

func (d *Ext4) mount(file string, size int64) error {
	if err := errors.Join(os.Mkdir(d.Dir, 0o700), os.WriteFile(file, nil, 0o600), os.Truncate(file, size)); err != nil {
		return err
	}
	for _, command := range [][]string{
		{"mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", file},
		{"mount", "-o", "loop", file, d.Dir},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, out)
		}
	}
	return nil
}

// Freeze blocks all writes until Thaw.
func (d *Ext4) Freeze() error { return d.freeze(true) }

// Thaw allows writes again, including those that wait.
func (d *Ext4) Thaw() error { return d.freeze(false) }

// The ioctls behind fsfreeze.
const (
	fiFreeze = 0xC0045877
	fiThaw   = 0xC0045878
)

func (d *Ext4) freeze(frozen bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if frozen == d.frozen {
		return nil
	}
	doing, order := "freeze", uint(fiFreeze)
	if !frozen {
		doing, order = "thaw", fiThaw
	}
	dir, err := os.Open(d.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.IoctlSetInt(int(dir.Fd()), order, 0); err != nil {
		return explain(doing, d.Dir, err)
	}
	d.frozen = frozen
	return nil
}

// Slow freezes the disk repeatedly for a time, with a pause in between: a write takes up to that
// long. It ends with the returned function, or when the disk is closed.
func (d *Ext4) Slow(still, between time.Duration) (end func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.pulse(ctx, still, between) }()
	end = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.pulses
	d.pulses = func() error {
		if before == nil {
			return end()
		}
		return errors.Join(before(), end())
	}
	return end
}

func (d *Ext4) pulse(ctx context.Context, still, between time.Duration) error {
	for ctx.Err() == nil {
		if err := d.Freeze(); err != nil {
			return err
		}
		pass(ctx, still)
		if err := d.Thaw(); err != nil {
			return err
		}
		pass(ctx, between)
	}
	return nil
}

func pass(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Close thaws and unmounts it, when no process uses it any more. It may be repeated.
func (d *Ext4) Close() error {
	d.mu.Lock()
	pulses := d.pulses
	d.pulses = nil
	d.mu.Unlock()
	var err error
	if pulses != nil {
		err = pulses()
	}
	if left := d.guard.leave(); left != nil {
		err = errors.Join(err, explain("unmount", d.Dir, left))
	}
	return err
}
