package durable

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// What a writer that died left behind is removed. Files of a writer that is at work, young ones and
// other programs' stay.
//
// proves DAY-2
func TestRemoveUnfinished(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	old := now.Add(-unfinishedAge)
	age := func(path string) {
		t.Helper()
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	unfinished := func() string {
		t.Helper()
		f, err := begin(filepath.Join(dir, "shard.backup"))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil { // as the end of its process does
			t.Fatal(err)
		}
		return f.Name()
	}
	dead, young := unfinished(), unfinished()
	age(dead)
	writes, err := begin(filepath.Join(dir, "shard.backup"))
	if err != nil {
		t.Fatal(err)
	}
	defer writes.Close()
	age(writes.Name())
	keep := []string{young, writes.Name()}
	for _, name := range []string{"shard.backup", ".foreign.new-1", ".a.leasehold-new-b", "a.leasehold-new-1"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		age(path)
		keep = append(keep, path)
	}
	link := filepath.Join(dir, ".link.leasehold-new-1")
	if err := os.Symlink(keep[2], link); err != nil {
		t.Fatal(err)
	}
	keep = append(keep, link)
	for range 2 {
		if err := RemoveUnfinished(dir, now); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(dead); !os.IsNotExist(err) {
		t.Errorf("what a dead writer left is still there: %v", err)
	}
	for _, path := range keep {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("removed: %v", err)
		}
	}
	if err := RemoveUnfinished(filepath.Join(dir, "none"), now); !os.IsNotExist(err) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// NFS refuses an exclusive lock on a file that is not open for writing.
//
// proves DAY-2
func TestUnfinishedFilesAreLockedOnNFS(t *testing.T) {
	f, err := begin(filepath.Join(t.TempDir(), "shard.backup"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	other, err := openUnfinished(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, other.Fd(), syscall.F_GETFL, 0)
	if errno != 0 || flags&syscall.O_ACCMODE != syscall.O_RDWR {
		t.Errorf("it is open with flags %#o (%v): it must be open for writing", flags, errno)
	}
}
