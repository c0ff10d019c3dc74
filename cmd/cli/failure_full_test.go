package cli

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/cmd/output"
)

// A backup or an export whose disk is full, also as standard output, says to free space.
//
// proves DAY-2
func TestAFullDiskIsNamed(t *testing.T) {
	var said strings.Builder
	code := report(t.Context(), output.Screen{W: &said},
		&fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC})
	if code != Failed || !strings.Contains(said.String(), "no space left") ||
		!strings.Contains(said.String(), "free space") {
		t.Errorf("exit %d: %s", code, said.String())
	}
}
