package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// guard is a process that unmounts a disk when this process releases it or ends in any way. A
// process that waits for a frozen disk cannot even be killed, so the guard thaws it first. It does
// not use the disk itself.
type guard struct {
	cmd    *exec.Cmd
	orders io.Closer
	said   strings.Builder
	once   sync.Once
	err    error
}

// unmount waits until no process uses the disk any more, with a limit. Its further arguments are
// files to be removed.
const unmount = `trap "" INT TERM HUP
read _
dir=$1; shift
fsfreeze -u "$dir" 2>/dev/null
n=0
while mountpoint -q "$dir"; do
	umount "$dir" 2>/dev/null && continue
	n=$((n+1))
	if [ $n -gt 150 ]; then echo "a process has used it for 30s: it is gone when they are" >&2; umount -l "$dir"; exit 1; fi
	sleep 0.2
done
[ $# -eq 0 ] || rm -rf --one-file-system "$@"`

// watchOver starts a guard, before the disk exists.
func watchOver(dir string, remove ...string) (*guard, error) {
	g := &guard{cmd: exec.Command("sh", append([]string{"-c", unmount, "sh", dir}, remove...)...)}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is not for it: it is who cleans up then
	g.cmd.Stderr = &g.said
	var err error
	if g.orders, err = g.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return g, g.cmd.Start()
}

// leave makes it remove the disk, and waits for that.
func (g *guard) leave() error {
	g.once.Do(func() {
		g.err = errors.Join(g.orders.Close(), g.cmd.Wait())
		if g.err != nil {
			g.err = fmt.Errorf("%w: %s", g.err, strings.TrimSpace(g.said.String()))
		}
	})
	return g.err
}

// allowed returns an error unless this process may mount something.
func allowed() error {
	if os.Geteuid() != 0 {
		return errNeedsRoot
	}
	return nil
}

var errNeedsRoot = errors.New("only root may mount disks: run the tests as root, in a container say, " +
	"or leave out with -skip those that need a disk")

// explain adds the next step to a mount error.
func explain(doing, dir string, err error) error {
	if errors.Is(err, unix.EPERM) && !errors.Is(err, errNeedsRoot) {
		err = fmt.Errorf("%w: even as root: a container needs CAP_SYS_ADMIN for that", err)
	}
	return fmt.Errorf("%s %s: %w", doing, dir, err)
}
