package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// One process at a time holds a lock, and the others learn which. A lock that is free again is
// taken again, whatever its file holds.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if _, err := Lock(path); !errors.As(err, &held) || held.Holder != fmt.Sprintf("process %d", os.Getpid()) {
		t.Errorf("a second one: %v", err)
	}
	if err := os.WriteFile(path, []byte("nonsense, and rather more than a number has digits"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path); !errors.As(err, &held) || held.Holder != "another process" {
		t.Errorf("with a file that names none: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = Lock(path); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := os.ReadFile(path); err != nil || string(text) != fmt.Sprintf("%d\n", os.Getpid()) {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if _, err := Lock(filepath.Join(path, "below")); err == nil || errors.As(err, &held) {
		t.Errorf("below a file: %v", err)
	}
}

// A lock whose file cannot be written, as on a full disk, is held all the same: its holder is
// unnamed.
func TestLockWithoutAName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := syscall.Mkfifo(path, 0o600); err != nil { // it can be locked, and holds no text
		t.Fatal(err)
	}
	f, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var held *HeldError
	if _, err := Lock(path); !errors.As(err, &held) || held.Holder != "another process" {
		t.Errorf("a second one: %v", err)
	}
}
