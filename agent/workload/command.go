package workload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Command runs a program beside the workload, in its directory and with its environment, until that
// ends. What it starts is killed with it when the context ends. Its output is in command.log. It
// gets no secrets.
func Command(ctx context.Context, cfg Config, run []string, vars map[string]string) error {
	cfg.Secrets = nil
	argv, err := Expand("run", run, vars, cfg.Facts)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(cfg.StateDir, "command.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
	if err != nil {
		return fmt.Errorf("run command: %w", err)
	}
	defer out.Close()
	cmd, rec, err := cfg.begin(argv, vars, out)
	if err != nil {
		return fmt.Errorf("run command: %w", err)
	}
	late := awaitEnd(ctx, rec.PID, rec.Start) // its exit code is there until Wait, and so is its ID
	if err := signalGroup(rec.PID, syscall.SIGKILL); err != nil {
		late = fmt.Errorf("%w; %w", late, err)
	}
	_ = cmd.Wait() // what it says is in ProcessState
	if late != nil {
		return fmt.Errorf("run command: killed: %w", late)
	}
	if exit := exitOf(cmd.ProcessState); exit.Code != 0 {
		return fmt.Errorf("run command: %s", exit.Why)
	}
	return nil
}
