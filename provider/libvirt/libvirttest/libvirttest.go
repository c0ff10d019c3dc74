// Package libvirttest starts a real libvirtd for tests, with QEMU by emulation and nothing in it
// but an empty storage pool, and stops it when they end, also if they fail. It reads libvirt's
// state with virsh, so that the provider's mistakes show.
//
// It needs root and Linux. What is missing is installed (scripts/libvirt.sh).
package libvirttest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/tests/harness"
)

// Pool is the storage pool.
const Pool = "default"

// Libvirt is a running libvirtd.
type Libvirt struct{ *harness.Daemon }

// Start starts a libvirtd with a storage pool. Several do not meet. With more arguments, a port and
// a directory, it serves TLS as well (scripts/libvirt.sh).
func Start(more ...string) (*Libvirt, error) {
	daemon, err := harness.StartDaemon("libvirtd", "scripts/libvirt.sh", append([]string{"run"}, more...)...)
	if err != nil {
		return nil, err
	}
	l := &Libvirt{daemon}
	for _, command := range []string{
		"pool-define-as " + Pool + " dir --target " + l.Dir + "/pool", "pool-start " + Pool, "pool-autostart " + Pool,
	} {
		if _, err := l.Virsh(strings.Fields(command)...); err != nil {
			return nil, errors.Join(err, l.Stop())
		}
	}
	return l, nil
}

// URI is by which a provider reaches it.
func (l *Libvirt) URI() string { return "qemu:///system?socket=" + l.Dir + "/run/libvirt-sock" }

// Virsh runs a command of virsh's, and returns what it prints.
func (l *Libvirt) Virsh(args ...string) (string, error) {
	out, err := exec.Command("virsh", append([]string{"-q", "-c", l.URI()}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("virsh %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// Names returns the names of all domains.
func (l *Libvirt) Names() ([]string, error) {
	out, err := l.Virsh("list", "--all", "--name")
	return strings.Fields(out), err
}

// DomainOf is the name of an instance's domain.
func (l *Libvirt) DomainOf(instance string) (string, error) {
	names, err := l.Names()
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "-"+instance) {
			return name, nil
		}
	}
	return "", fmt.Errorf("libvirt has no domain of %s: %q", instance, names)
}

// Files are those in the pool's directory whose names begin so.
func (l *Libvirt) Files(prefix string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(l.Dir, "pool"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// Blank makes an image with nothing on it: its machine's firmware waits.
func (l *Libvirt) Blank(name string) error {
	_, err := l.Virsh("vol-create-as", Pool, name, "1M", "--format", "qcow2")
	return err
}

// Add makes a volume of a file.
func (l *Libvirt) Add(name, file string) error {
	content, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(filepath.Join(l.Dir, "pool", name), content, 0o600)
	}
	if err == nil {
		_, err = l.Virsh("pool-refresh", Pool)
	}
	return err
}

// process finds a process of this libvirtd's by a part of its command line, 0 if there is none.
func (l *Libvirt) process(part string) (int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(text, []byte(part)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return 0, err
		}
		// It has this libvirt's mounts.
		mounts, err := os.ReadFile(filepath.Join(filepath.Dir(file), "mountinfo"))
		if err == nil && bytes.Contains(mounts, []byte(l.Dir+"/run ")) || err == nil &&
			bytes.Contains(mounts, []byte(filepath.Base(l.Dir)+"/run ")) {
			return pid, nil
		}
	}
	return 0, nil
}

// Kill kills a machine's QEMU.
func (l *Libvirt) Kill(name string) error {
	pid, err := l.process("guest=" + name + ",")
	if err == nil && pid == 0 {
		err = fmt.Errorf("domain %s does not run", name)
	}
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// Down kills libvirtd and keeps it down. Its machines run on.
func (l *Libvirt) Down() error {
	if err := os.WriteFile(filepath.Join(l.Dir, "down"), nil, 0o600); err != nil {
		return err
	}
	pid, err := l.process("\x00" + l.Dir + "/etc/libvirtd.conf\x00")
	if err != nil || pid == 0 {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// patience is how long libvirtd may take to come up.
const patience = time.Minute

// Up lets libvirtd come up again, and waits for it.
func (l *Libvirt) Up() error {
	if err := os.Remove(filepath.Join(l.Dir, "down")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for over := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
		if _, err := l.Virsh("list"); err == nil || time.Now().After(over) {
			return err
		}
	}
}
