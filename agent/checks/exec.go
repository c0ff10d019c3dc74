package checks

import (
	"context"
	"strings"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/workload"
)

// newExecProbe returns a probe that passes if a command exits with 0.
func newExecProbe(c *protocol.ExecCheck, place workload.Config, vars map[string]string) probe {
	return func(ctx context.Context) Result {
		exit, err := place.RunOnce(ctx, c.GetRun(), vars)
		switch {
		case ctx.Err() != nil:
			return timedOut
		case err != nil:
			return Result(err.Error())
		case exit.Code == 0:
			return ""
		}
		why := exit.Why
		if last := lastLine(string(exit.Output)); last != "" {
			why += ": " + last
		}
		return Result(why)
	}
}

// lastLine returns the last line that is not blank.
func lastLine(text string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "?"))
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
