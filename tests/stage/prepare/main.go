// Program prepare builds, into a directory, all programs that tests start: scripts/test.sh runs it
// once, and names the directory to the tests (package programs).
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leasehold/leasehold/tests/faults/previous"
	"github.com/leasehold/leasehold/tests/programs"
	"github.com/leasehold/leasehold/tests/stage"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: prepare DIRECTORY")
		os.Exit(2)
	}
	if err := prepare(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func prepare(dir string) error {
	older := filepath.Join(dir, previous.Directory)
	if err := os.MkdirAll(older, 0o700); err != nil {
		return err
	}
	return errors.Join(
		stage.BuildAll(dir),
		programs.Build(dir, programs.Agent, programs.DetectWeb),
		previous.Build(older),
	)
}
