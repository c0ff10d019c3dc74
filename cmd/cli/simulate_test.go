package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// simulated writes a group and a scenario, and returns the arguments that play it.
func simulated(t *testing.T, scenario string) []string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"web.yaml": "name: web\nprovider: aws\nsize: 6\n", "s.yaml": scenario} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"simulate", "-f", filepath.Join(dir, "web.yaml"), "--scenario", filepath.Join(dir, "s.yaml")}
}

// After a second a terminal shows the progress, in a line that goes away again.
func TestASimulationReportsItsProgress(t *testing.T) {
	args := simulated(t, "length: 3h\n")
	for _, c := range []struct {
		name     string
		terminal bool
		more     []string
		tick     time.Duration
		want     string
	}{
		{"terminal", true, nil, 600 * time.Millisecond, "of 3h simulated]\r\x1b[K"},
		{"quick", true, nil, time.Millisecond, ""},
		{"pipe", false, nil, 600 * time.Millisecond, ""},
		{"many", true, []string{"--runs", "4"}, 600 * time.Millisecond, "[4 of 4 runs]\r\x1b[K"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.terminal = c.terminal
			now := noon
			w.now = func() time.Time { now = now.Add(c.tick); return now }
			code, _, stderr := w.run(append(args, c.more...)...)
			if code != Done || c.want == "" && stderr != "" || !strings.HasSuffix(stderr, c.want) {
				t.Errorf("exit %d, %q", code, stderr)
			}
		})
	}
}

// After Ctrl-C the output so far is shown.
func TestAnInterruptedSimulationShowsWhatThereIs(t *testing.T) {
	args := simulated(t, "length: 100h\nevents:\n- {at: 10m, kill: {}}\n")
	w := newWorld(t)
	w.terminal = true
	ctx, stop := context.WithCancel(t.Context())
	calls := 0
	now := noon
	w.now = func() time.Time {
		if calls++; calls == 60 {
			stop()
		}
		now = now.Add(time.Second)
		return now
	}
	code, stdout, stderr := w.runCtx(ctx, args...)
	if code != Interrupted || !strings.Contains(stdout, "1 machine killed") || !strings.Contains(stdout, "as wanted") ||
		strings.Contains(stdout, "NOT MET") ||
		!strings.Contains(stderr, "interrupted after ") || strings.Contains(stderr, "error:") {
		t.Errorf("exit %d\n%s\n%s", code, stdout, stderr)
	}
	if code, stdout, _ := w.runCtx(ctx, append(args, "--runs", "3")...); code != Interrupted || stdout != "" {
		t.Errorf("runs: exit %d\n%s", code, stdout)
	}
}

// Paths in a scenario are relative to it, and no store is opened.
func TestASimulationNeedsTheFilesAlone(t *testing.T) {
	args := simulated(t, "length: 10m\nevents:\n- {at: 5m, apply: web.yaml}\n")
	w := newWorld(t)
	w.open = nil
	w.st = nil
	if code, _, stderr := w.run(args...); code != Done {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// The printed scenario can be played.
func TestTheScenarioThatIsPrintedIsTheDefault(t *testing.T) {
	w := newWorld(t)
	code, text, _ := w.run("simulate", "--print-scenario")
	if code != Done {
		t.Fatalf("exit %d", code)
	}
	args := simulated(t, text)
	_, given, _ := w.run(args...)
	code, usual, stderr := w.run(args[:3]...)
	if code != Done || given != usual {
		t.Errorf("exit %d: %s\n%s\nwith what was printed:\n%s", code, stderr, usual, given)
	}
}
