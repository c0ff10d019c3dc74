package cli

import (
	"context"
	"fmt"
)

// GroupPause is the command group pause (REC-13).
type GroupPause struct {
	Group string `arg:"" help:"Name of the group."`
}

// Run pauses the group.
func (c *GroupPause) Run(ctx context.Context, inv *Invocation) error {
	return inv.setPaused(ctx, c.Group, true, "paused")
}

// GroupResume is the command group resume.
type GroupResume struct {
	Group string `arg:"" help:"Name of the group."`
}

// Run ends the pause.
func (c *GroupResume) Run(ctx context.Context, inv *Invocation) error {
	return inv.setPaused(ctx, c.Group, false, "resumed")
}

func (inv *Invocation) setPaused(ctx context.Context, name string, paused bool, what string) error {
	ch, err := inv.readExisting(ctx, name)
	if err != nil {
		return err
	}
	ch.after.Paused = paused
	command := "resume"
	if paused {
		command = "pause"
	}
	return inv.writeOne(ctx, &ch, what, "leasehold group show "+name+", then leasehold group "+command+" "+name)
}

// writeOne writes a change of one group, unless there is none, and returns the result.
func (inv *Invocation) writeOne(ctx context.Context, ch *groupChange, what, again string) error {
	if ch.unchanged() {
		return inv.reportUnchanged(ctx, *ch, ch.rev())
	}
	rev, err := inv.write(ctx, []groupChange{*ch}, again)
	if err != nil {
		return err
	}
	ch.groupRev = rev
	fmt.Fprintf(inv.env.Stdout, "%s %s rev %d\n", ch.name, what, rev)
	return nil
}
