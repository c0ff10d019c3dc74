package embedetcd

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// spoiledDir names, in the environment of a process that TestCorruptData starts, the data directory
// to start on.
const spoiledDir = "EMBEDETCD_TEST_SPOILED_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(spoiledDir); dir != "" {
		os.Exit(startOnSpoiled(dir))
	}
	os.Exit(m.Run())
}

// attempt is what came of a start, as the process that made it writes it to its output.
type attempt struct {
	Started bool
	Error   string
}

// startOnSpoiled returns a process that starts on spoiled data. As in the programs, it ends after a
// start that failed: etcd gives up halfway and leaves goroutines behind, one of which goes on
// making files in the data directory.
func startOnSpoiled(dir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var came attempt
	s, err := Start(ctx, Config{DataDir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		came.Error = err.Error()
	} else {
		came.Started = true
		s.Close()
	}
	if err := json.NewEncoder(os.Stdout).Encode(came); err != nil {
		return 1
	}
	return 0
}

// attemptStart starts on the directory in a process of its own, and returns once that process is
// gone.
func attemptStart(t *testing.T, dir string) attempt {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var problems strings.Builder
	child := exec.CommandContext(t.Context(), self)
	child.Env = append(os.Environ(), spoiledDir+"="+dir)
	child.Stderr = &problems
	out, err := child.Output()
	if err != nil {
		t.Fatalf("the process that starts on %s: %v\n%s%s", dir, err, out, problems.String())
	}
	var came attempt
	if err := json.Unmarshal(out, &came); err != nil {
		t.Fatalf("the process that starts on %s: %v\n%s%s", dir, err, out, problems.String())
	}
	return came
}

func TestCorruptData(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"database": func(dir string) error {
			return os.WriteFile(dbPath(dir), []byte(strings.Repeat("not a database ", 4096)), 0o600)
		},
		"log": func(dir string) error {
			logs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
			if err != nil {
				return err
			}
			for _, l := range logs {
				if err := os.WriteFile(l, []byte(strings.Repeat("not a log ", 4096)), 0o600); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := start(t, dir, "127.0.0.1:0").Close(); err != nil {
				t.Fatal(err)
			}
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			came := attemptStart(t, dir)
			if came.Started {
				t.Fatal("it started on spoiled data")
			}
			for _, want := range []string{dir, "cannot read the data", "etcdutl"} {
				if !strings.Contains(came.Error, want) {
					t.Errorf("%q does not say %q", came.Error, want)
				}
			}
			if strings.Contains(came.Error, "\n") {
				t.Errorf("%q is more than one line", came.Error)
			}
		})
	}
}
