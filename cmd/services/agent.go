package services

import (
	"context"

	"github.com/leasehold/leasehold/cmd/agentcmd"
)

// Agent is the command agent: the same as leasehold-agent, for machines that have only this
// program.
type Agent struct {
	agentcmd.Cmd `embed:""`
	LogLevel     string `help:"Log level: ${enum}." enum:"debug,info,warn,error" default:"info"`
}

// Run runs the agent until ctx ends.
func (a *Agent) Run(ctx context.Context, h *Host) error {
	if err := a.Cmd.Run(ctx, h.logger(parseLevel(a.LogLevel)), agentcmd.Version(h.Version)); err != nil {
		return problem("leasehold agent --help", "%s", err)
	}
	return nil
}
