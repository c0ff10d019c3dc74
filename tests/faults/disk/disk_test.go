package disk

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/tests/harness"
)

// limit bounds what must not hang.
const limit = time.Minute

// asOwner has a process, in its environment, mount disks and wait to be killed.
const asOwner = "DISK_TEST_OWNER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asOwner); dir != "" {
		if err := own(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func own(dir string) error {
	if _, err := Mount(dir, 1<<20); err != nil {
		return err
	}
	frozen, err := MountExt4(16 << 20)
	if err != nil {
		return err
	}
	if err := frozen.Freeze(); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, frozen.Dir)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	harness.Await(t, what, limit, 10*time.Millisecond, condition, nil)
}

func mounted(t *testing.T, dir string) bool {
	t.Helper()
	all, err := os.ReadFile("/proc/self/mounts")
	must(t, err)
	return strings.Contains(string(all), " "+dir+" ")
}

// write writes so many bytes into a file of a disk, down to the disk.
func write(dir, name string, bytes int) error {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, bytes))
	return errors.Join(err, file.Sync(), file.Close())
}

func TestADiskIsFull(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	d, err := Mount(dir, 1<<20)
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	must(t, write(dir, "before", 100<<10))
	for range 2 {
		must(t, d.Fill())
		if err := write(dir, "none", 1); !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("written on a full disk: %v", err)
		}
		if kept, err := os.ReadFile(filepath.Join(dir, "before")); err != nil || len(kept) != 100<<10 {
			t.Fatalf("what was there is not: %v", err)
		}
		must(t, d.Free())
		must(t, write(dir, "more", 200<<10))
	}
	if err := write(dir, "most", 1<<20); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("more fits than there is: %v", err)
	}
	must(t, d.Close())
	must(t, d.Close())
	if mounted(t, dir) {
		t.Fatal("it is still mounted")
	}
}

func TestADiskIsReadOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	d, err := Mount(dir, 1<<20)
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	must(t, d.MakeReadOnly())
	must(t, d.Fill()) // both at once, each for itself
	if err := write(dir, "more", 1); !errors.Is(err, unix.EROFS) {
		t.Fatalf("written on a disk that is read-only: %v", err)
	}
	must(t, d.MakeWritable())
	if err := write(dir, "more", 1); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("written on a full disk: %v", err)
	}
	must(t, d.Free())
	must(t, write(dir, "more", 1))

	open, err := os.Create(filepath.Join(dir, "open"))
	must(t, err)
	if err := d.MakeReadOnly(); !errors.Is(err, unix.EBUSY) {
		t.Fatalf("made read-only under a writer: %v", err)
	}
	must(t, open.Close())
	must(t, write(dir, "more", 1)) // nothing of the refused change is left
}

func TestADiskStandsStill(t *testing.T) {
	d, err := MountExt4(16 << 20)
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	must(t, d.Freeze())
	must(t, d.Freeze())
	done := make(chan error, 1)
	go func() { done <- write(d.Dir, "file", 10) }()
	select {
	case err := <-done:
		t.Fatalf("written on a frozen disk: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	must(t, d.Thaw())
	must(t, <-done)
	must(t, d.Freeze())
	must(t, d.Close()) // which thaws it
	if _, err := os.Stat(filepath.Dir(d.Dir)); mounted(t, d.Dir) || !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("something is left of it: %v", err)
	}
}

func TestADiskIsSlow(t *testing.T) {
	d, err := MountExt4(16 << 20)
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	const still = 200 * time.Millisecond
	end := d.Slow(still, 20*time.Millisecond)
	slow := 0
	await(t, "three slow writes", func() bool {
		since := time.Now()
		must(t, write(d.Dir, "file", 10))
		if time.Since(since) > still/2 {
			slow++
		}
		return slow == 3
	})
	must(t, end())
	must(t, end())
	must(t, write(d.Dir, "file", 10))
	d.Slow(still, time.Millisecond)
	must(t, d.Close()) // which ends it
}

func TestNothingIsLeftWhenTheOwnerIsKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	self, err := os.Executable()
	must(t, err)
	owner := exec.Command(self)
	owner.Env = append(os.Environ(), asOwner+"="+dir)
	owner.Stderr = os.Stderr
	in, err := owner.StdinPipe()
	must(t, err)
	defer in.Close()
	out, err := owner.StdoutPipe()
	must(t, err)
	must(t, owner.Start())
	frozen, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	frozen = strings.TrimSpace(frozen)
	if !mounted(t, dir) || !mounted(t, frozen) {
		t.Fatal("nothing was mounted")
	}
	must(t, owner.Process.Kill())
	_ = owner.Wait() // as killed
	await(t, "both disks being gone", func() bool {
		_, err := os.Stat(filepath.Dir(frozen))
		return !mounted(t, dir) && !mounted(t, frozen) && errors.Is(err, os.ErrNotExist)
	})
}
