package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A command that waits for its standard input ends with the first signal.
//
// proves REC-7
func TestAReadOfStandardInputIsInterrupted(t *testing.T) {
	for _, args := range [][]string{
		{"apply", "-f", "-"},
		{"group", "apply", "-f", "-"},
		{"report", "--from", "-"},
	} {
		w := newWorld(t)
		w.serve()
		ctx, cancel := context.WithCancel(t.Context())
		from, to := io.Pipe()
		defer to.Close()
		w.stdin = readerFunc(func(p []byte) (int, error) {
			cancel()
			return from.Read(p)
		})
		if code, _, stderr := w.runCtx(ctx, args...); code != Interrupted {
			t.Errorf("%s: exit %d: %s", args, code, stderr)
		}
	}
}

// A pipe in a directory is refused: reading it could take for ever. So is a link to a device.
//
// proves REC-7
func TestOnlyFilesInADirectoryAreRead(t *testing.T) {
	for name, create := range map[string]func(path string) error{
		"a pipe":             func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a link to a device": func(path string) error { return os.Symlink(os.DevNull, path) },
	} {
		dir := t.TempDir()
		if err := create(filepath.Join(dir, "web.yaml")); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t)
		w.serve()
		if code, _, stderr := w.run("apply", "-f", dir); code != Usage || !strings.Contains(stderr, "not a file") {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
	}
}
