package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/leasehold/leasehold/cmd/agentcmd"
	"github.com/leasehold/leasehold/tests/machines"
)

// beAgent runs the agent of one machine: the product's command.
func beAgent(ctx context.Context, args []string, log *slog.Logger) error {
	command, err := agentcmd.Parse(args)
	if err != nil {
		return err
	}
	return command.Run(ctx, log, "test")
}

// keep waits until its parent has ended, and kills what is left of the parent's machines: stopped
// agents, and workloads, which do not end with their agents. It ignores all signals that it can.
func keep(cloud string) {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	_, _ = io.Copy(io.Discard, os.Stdin) // it ends, or cannot be read: in both cases the parent is gone
	machines.KillMarked(machines.EnvTest, cloud+"/")
}
