package workload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Command runs a program beside the workload, in its directory and with its environment, until that
// ends. What it starts is killed with it when the context ends. Its output is in command.log. It
// gets no secrets. It may be what the machine does without a lease, so it is run without its output
// where the disk hangs.
func Command(ctx context.Context, cfg Config, run []string, vars map[string]string) error {
	cfg.Secrets = nil
	argv, err := Expand("run", run, vars, cfg.Facts)
	if err != nil {
		return err
	}
	out, err := openSoon(filepath.Join(cfg.StateDir, "command.log"))
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

// openSoon opens an empty file to write to, or what takes nothing if the file cannot be opened, or
// not in time.
func openSoon(path string) (*os.File, error) {
	opened := make(chan *os.File)
	off := make(chan struct{})
	defer close(off)
	go func() { // ends when the disk answers
		out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
		if err != nil {
			out = nil
		}
		select {
		case opened <- out:
		case <-off:
			_ = out.Close() // of nil, too
		}
	}()
	late := time.NewTimer(diskWait)
	defer late.Stop()
	select {
	case out := <-opened:
		if out != nil {
			return out, nil
		}
	case <-late.C:
	}
	return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
}
