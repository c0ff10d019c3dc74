package services

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Dev keeps keys in its data directory, and follows names there: in a directory that others can
// write to, they could have it write anywhere.
func TestDevTakesNoDirectoryThatOthersCanChange(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d := Dev{DataDir: dir}
	for range 2 {
		if made, err := d.makeDataDir(); err != nil || made != dir {
			t.Fatalf("%s, %v", made, err)
		}
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	var problem *Problem
	if _, err := d.makeDataDir(); !errors.As(err, &problem) || !strings.Contains(problem.What, dir) ||
		!strings.Contains(problem.Next, "--data-dir") {
		t.Errorf("everybody's directory: %v", err)
	}
}
