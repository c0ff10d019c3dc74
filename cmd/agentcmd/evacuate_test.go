package agentcmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
