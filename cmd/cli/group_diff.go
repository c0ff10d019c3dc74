package cli

import (
	"context"
	"fmt"

	"github.com/aymanbagabas/go-udiff"
	"github.com/leasehold/leasehold/cmd/groupfile"
)

// GroupDiff is the command group diff.
type GroupDiff struct {
	Files
	ExitCode bool `help:"Exit with 6 if there is a difference."`
}

// Run shows the difference between the present specs and the files, with all defaults written out
// on both sides.
func (c *GroupDiff) Run(ctx context.Context, inv *Invocation) error {
	groups, err := inv.readFiles(ctx, c.Files)
	if err != nil {
		return err
	}
	differs := false
	for _, g := range groups {
		ch, err := inv.planChange(ctx, g)
		if err == nil {
			err = inv.refuseIfDeleting(ch, true)
		}
		if err != nil {
			return err
		}
		diff, err := inv.textDiff(ch, g.file)
		if err != nil {
			return err
		}
		differs = differs || diff != "" || ch.broken != nil
		if _, err := fmt.Fprint(inv.env.Stdout, diff); err != nil {
			return err
		}
	}
	if !differs {
		inv.note("no difference")
	}
	if differs && c.ExitCode {
		return errDiffers
	}
	return nil
}

// textDiff returns the difference between the previous and the new spec, as files.
func (inv *Invocation) textDiff(ch groupChange, to string) (string, error) {
	var before []byte
	var err error
	if ch.before != nil && ch.broken == nil {
		if before, err = groupfile.Write(*ch.before); err != nil {
			return "", err
		}
	}
	after, err := groupfile.Write(ch.after)
	if err != nil {
		return "", err
	}
	old := fmt.Sprintf("%s (revision %d)", inv.keys().Group(ch.name), ch.rev())
	switch {
	case ch.isNew():
		old = inv.keys().Group(ch.name) + " (none)"
	case ch.static != nil:
		old = fmt.Sprintf("%s and %s (revision %d)", inv.keys().Static(ch.name), inv.keys().Group(ch.name), ch.rev())
	}
	return udiff.Unified(old, to, string(before), string(after)), nil
}
