package durable

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What we rely on is kept where no other user can replace it.
func TestMakeDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		if err := MakeDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := MakeDir(dir); !errors.Is(err, ErrShared) || !strings.Contains(err.Error(), dir) {
		t.Errorf("everybody's: %v", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := MakeDir(dir); err != nil {
		t.Errorf("ours, for all to read: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := MakeDir(filepath.Join(dir, "file")); err == nil {
		t.Error("a file is no directory")
	}
	if os.Geteuid() != 0 {
		return // only root can give a directory to another user
	}
	if err := os.Chown(dir, 4711, 4711); err != nil {
		t.Fatal(err)
	}
	if err := MakeDir(dir); !errors.Is(err, ErrShared) || !strings.Contains(err.Error(), "4711") {
		t.Errorf("another's: %v", err)
	}
}
