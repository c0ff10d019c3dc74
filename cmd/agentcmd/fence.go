package agentcmd

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/agent/workload"
)

// fence powers the machine off, for an agent that could not renew its lease (SAFE-9).
type fence struct {
	place workload.Config
	deps  workload.Deps
	// processes means that the machine consists of the agent's own processes and ends with it, as
	// the process provider's machines do. They have a boot ID of their own.
	processes bool
}

func (f fence) Command(ctx context.Context, run []string, vars map[string]string) error {
	return workload.Command(ctx, f.place, f.deps, run, vars)
}

// PowerOff syncs disks for a moment and powers the machine off: an orderly shutdown may take longer
// than the lease lasts. The workload has ended by then.
func (f fence) PowerOff(ctx context.Context) error {
	if f.processes {
		return nil
	}
	written := make(chan struct{})
	go func() { // may hang on a broken disk; the machine is then off before it returns
		unix.Sync()
		close(written)
	}()
	select {
	case <-written:
	case <-time.After(syncWait):
	}
	direct := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	if direct == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, orderWait)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "systemctl", "poweroff", "--force").CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("power off: %w", direct), fmt.Errorf("systemctl poweroff: %w: %s", err, out))
	}
	return nil
}

const (
	syncWait  = 500 * time.Millisecond
	orderWait = 10 * time.Second
)
