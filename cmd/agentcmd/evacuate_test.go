package agentcmd

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// An operator who asks for an evacuation learns which instance it is for, and where to follow it.
//
// proves DRAIN-3
func TestEvacuateSaysWhatComesOfIt(t *testing.T) {
	dir := t.TempDir()
	var told strings.Builder
	err := (&Evacuate{StateDir: dir}).Run(&told)
	if err == nil || !strings.Contains(err.Error(), "no state directory") || told.String() != "" {
		t.Errorf("where no agent has run: told %q, %v", told.String(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "agent.json"), []byte(`{"instance":"web-0-a"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&Evacuate{StateDir: dir, Why: "repairs"}).Run(&told); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(told.String(), "evacuation of web-0-a requested") ||
		!strings.Contains(told.String(), "leasehold explain web-0-a") {
		t.Errorf("told %q", told.String())
	}
	if data, err := os.ReadFile(evacuationFile(dir)); err != nil || !strings.Contains(string(data), "repairs") {
		t.Errorf("the file says %q, %v", data, err)
	}
}

// A machine that was evacuated and then becomes another instance, with the same state directory, is
// not evacuated again.
//
// proves DRAIN-3
func TestAnEvacuationIsOfOneInstance(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "agent.json"), []byte(`{"instance":"web-0-a"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&Evacuate{StateDir: dir}).Run(io.Discard); err != nil {
		t.Fatal(err)
	}
	for instance, evacuated := range map[string]bool{"web-0-a": true, "web-1-b": false} {
		synctest.Test(t, func(t *testing.T) {
			_, evacuation, err := openNotices(dir, instance, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go evacuation.Run(ctx)
			synctest.Wait() // it has looked
			if n := evacuation.Latest(); (n != nil) != evacuated {
				t.Errorf("the agent of %s sees %+v", instance, n)
			}
			cancel()
		})
	}
}
