package senses

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// disk is a file system in a file. Frozen (FIFREEZE), it takes no write: whoever writes waits, as on a disk that stalls.
type disk struct {
	t        *testing.T
	file     string
	dir      string
	guardian *exec.Cmd
	leave    func() error // has the guardian thaw and unmount it
}

// mountDisk mounts a new one. That takes root.
func mountDisk(t *testing.T) *disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("a disk that stalls is mounted by root alone: run the tests as root, in a container say, or leave this one out with -skip '^TestDiskStalls$'")
	}
	home, err := os.MkdirTemp("", "leasehold-senses-disk-") //nolint:usetesting // it is unmounted by somebody else
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{t: t, file: filepath.Join(home, "disk"), dir: filepath.Join(home, "mounted")}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d.run("truncate", "-s", "600M", d.file)
	d.run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", d.file)
	d.run("mount", "-o", "loop", d.file, d.dir)
	// Whoever waits for a frozen disk cannot even be killed. So if we end in between, it is thawed by somebody who does not.
	d.guardian = exec.Command("sh", "-c", `read _; fsfreeze -u "$1" 2>/dev/null; while mountpoint -q "$1" && ! umount "$1"; do sleep 0.2; done; rm -r "$2"`, "sh", d.dir, home)
	d.guardian.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is not for it: it is who cleans up then
	orders, err := d.guardian.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.guardian.Start(); err != nil {
		t.Fatal(err)
	}
	d.leave = orders.Close
	return d
}

func (d *disk) freeze() { d.run("fsfreeze", "-f", d.dir) }
func (d *disk) thaw()   { d.run("fsfreeze", "-u", d.dir) }

// unmount ends it, when nobody uses it any more.
func (d *disk) unmount() {
	if err := d.leave(); err != nil {
		d.t.Errorf("unmount %s: %v", d.dir, err)
	}
	if err := d.guardian.Wait(); err != nil {
		d.t.Errorf("unmount %s: %v", d.dir, err)
	}
}

func (d *disk) run(name string, args ...string) {
	d.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		d.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}
