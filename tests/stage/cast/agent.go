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

// beAgent is the agent of one machine: the command of the product.
func beAgent(ctx context.Context, args []string, log *slog.Logger) error {
	command, err := agentcmd.Parse(args)
	if err != nil {
		return err
	}
	return command.Run(ctx, log, "test")
}

// keep waits until whoever started it has ended, and kills what is left of that one's machines:
// agents that stand still, and workloads, which do not depend on anybody. It heeds no signal that
// others end by.
func keep(cloud string) {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	_, _ = io.Copy(io.Discard, os.Stdin) // it ends, or cannot be read: in both cases nobody is there any more
	machines.KillMarked(machines.EnvTest, cloud+"/")
}
