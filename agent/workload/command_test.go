package workload

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// proves SAFE-9
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{
		Facts: map[string]string{"port": "80"}, Dir: dir, StateDir: dir, Boot: "b", Instance: "web-0-a",
		Shard: "s",
	}
	deps := Deps{Logger: slog.New(slog.DiscardHandler)}
	out := func() string {
		data, err := os.ReadFile(filepath.Join(dir, "command.log"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(data))
	}
	err := Command(t.Context(), cfg, deps, []string{"sh", "-c", "echo ${port} ${who} $LEASEHOLD_INSTANCE; pwd"},
		map[string]string{"who": "me"})
	if err != nil || out() != "80 me web-0-a\n"+dir {
		t.Errorf("%v, %q", err, out())
	}
	if err := Command(t.Context(), cfg, deps, []string{"sh", "-c", "exit 3"}, nil); err == nil ||
		!strings.Contains(err.Error(), "exit code 3") {
		t.Errorf("it failed: %v", err)
	}
	for what, run := range map[string][]string{"no program": {"./nowhere"}, "no variable": {"echo", "${nothing}"}} {
		if err := Command(t.Context(), cfg, deps, run, nil); err == nil {
			t.Errorf("%s: no error", what)
		}
	}

	// A command that takes too long is killed, with everything that it has started.
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	pipe := filepath.Join(dir, "pid")
	go func() {
		done <- Command(ctx, cfg, deps, []string{
			"sh", "-c",
			"sleep 100000 & echo $! > " + pipe + ".new; mv " + pipe + ".new " + pipe + "; wait",
		}, nil)
	}()
	late := time.After(2 * time.Minute)
	for {
		if _, err := os.Stat(pipe); err == nil {
			break
		}
		select {
		case <-late:
			t.Fatal("it was not begun")
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("killed: %v", err)
	}
	data, err := os.ReadFile(pipe)
	if err != nil {
		t.Fatal(err)
	}
	child := filepath.Join("/proc", strings.TrimSpace(string(data)), "stat")
	for {
		stat, err := os.ReadFile(child)
		if err != nil || strings.Contains(string(stat), ") Z ") || strings.Contains(string(stat), ") X ") {
			break
		}
		select {
		case <-late:
			t.Fatalf("what it has started still runs: %s", stat)
		case <-time.After(time.Millisecond):
		}
	}
}

// What a machine does without a lease it does without its disk, too.
//
// proves SAFE-9
func TestCommandIsRunThoughTheDiskHangs(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	cfg := Config{Dir: dir, StateDir: dir, Boot: "b", Instance: "web-0-a", Shard: "s"}
	log := &logged{}
	deps := Deps{Logger: slog.New(slog.NewTextHandler(log, nil))}
	path := filepath.Join(dir, "command.log")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	answer := hang(t, path)
	done := filepath.Join(other, "done")
	if err := Command(t.Context(), cfg, deps, []string{"touch", done}, nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(done); err != nil {
		t.Error(err)
	}
	answer()
	if !strings.Contains(log.String(), "the disk does not answer") {
		t.Errorf("log:\n%s", log)
	}

	// So it does where nothing can be written, and that is in the log.
	cfg.StateDir = filepath.Join(dir, "none")
	if err := Command(t.Context(), cfg, deps, []string{"true"}, nil); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "none/command.log: no such file") {
		t.Errorf("log:\n%s", log)
	}
}
