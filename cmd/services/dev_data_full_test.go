package services

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

// On a full disk, another directory of the same disk does not help.
func TestAFullDiskIsToBeFreed(t *testing.T) {
	full := fmt.Errorf("write server.json: %w", &fs.PathError{Op: "write", Err: syscall.ENOSPC})
	if next := DirectoryNext(full); !strings.Contains(next, "free space") {
		t.Errorf("a full disk: %s", next)
	}
	if next := DirectoryNext(&fs.PathError{Op: "open", Err: syscall.EACCES}); !strings.Contains(next, "--data-dir") {
		t.Errorf("another's directory: %s", next)
	}
}
