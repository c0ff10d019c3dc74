package workload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Command runs a program beside the workload, in its directory and with its environment, until that
// ends. What it starts is killed with it when the context ends. Its output is in command.log. It
// gets no secrets. It may be what the machine does without a lease, so it is run without its output
// where that cannot be kept.
func Command(ctx context.Context, cfg Config, deps Deps, run []string, vars map[string]string) error {
	cfg.Secrets = nil
	argv, err := Expand("run", run, vars, cfg.Facts)
	if err != nil {
		return err
	}
	out, err := openSoon(filepath.Join(cfg.StateDir, "command.log"), deps.Logger)
	if err != nil {
		return fmt.Errorf("run command: %w", err)
	}
	defer out.Close()
	cmd, rec, err := cfg.begin(ctx, argv, vars, out)
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
func openSoon(path string, log *slog.Logger) (*os.File, error) {
	type opened struct {
		out *os.File
		err error
	}
	answer := make(chan opened)
	off := make(chan struct{})
	defer close(off)
	go func() { // ends when the disk answers
		out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
		select {
		case answer <- opened{out, err}:
		case <-off:
			_ = out.Close() // of nil, too
		}
	}()
	late := time.NewTimer(diskWait)
	defer late.Stop()
	why := errors.New("the disk does not answer")
	select {
	case file := <-answer:
		if file.err == nil {
			return file.out, nil
		}
		why = file.err
	case <-late.C:
	}
	log.Warn("output of a command is not kept", "file", path, "error", why)
	return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
}
