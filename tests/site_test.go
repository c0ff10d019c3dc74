package tests

import (
	"os/exec"
	"testing"
)

// TestSite renders all pages, and follows every link between them: to files, pages and headings.
func TestSite(t *testing.T) {
	build := exec.CommandContext(t.Context(), "go", "run", "-buildvcs=false", "./tests/site", "-out", t.TempDir())
	build.Dir = projectRoot(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
