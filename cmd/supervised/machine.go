package supervised

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"time"
)

// systemdRuns exists where systemd is this machine's init (sd_booted(3)).
var systemdRuns = "/run/systemd/system"

// askTimeout bounds the question to systemd, which answers in milliseconds.
const askTimeout = 2 * time.Second

// MachineStops reports whether systemd is shutting this machine down: then a service that is
// terminated does not come back. Without an answer it is not.
func MachineStops() bool {
	if _, err := os.Stat(systemdRuns); err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "systemctl", "is-system-running")
	cmd.WaitDelay = time.Second
	state, _ := cmd.Output() // it exits with 1 for every state but running
	return strings.TrimSpace(string(state)) == "stopping"
}
