package supervised

import (
	"os"
	"path/filepath"
	"testing"
)

// proves DET-8
func TestMachineStops(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	here := systemdRuns
	t.Cleanup(func() { systemdRuns = here })
	for _, c := range []struct {
		name, systemctl string
		none            bool // no systemd
		want            bool
	}{
		{name: "shutting down", systemctl: `[ "$*" = is-system-running ] && echo stopping; exit 1`, want: true},
		{name: "running", systemctl: "echo running"},
		{name: "degraded", systemctl: "echo degraded; exit 1"},
		{name: "no answer", systemctl: "exit 1"},
		{name: "no systemd", systemctl: "echo stopping", none: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			systemdRuns = dir
			if c.none {
				systemdRuns = filepath.Join(dir, "none")
			}
			if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte("#!/bin/sh\n"+c.systemctl+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if got := MachineStops(); got != c.want {
				t.Errorf("MachineStops is %t", got)
			}
		})
	}
}
