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

// Run shows the difference between what is asked for now and the files, with all defaults written out on both sides.
func (c *GroupDiff) Run(ctx context.Context, s *Session) error {
	groups, err := s.readFiles(c.Files)
	if err != nil {
		return err
	}
	differs := false
	for _, g := range groups {
		ch, err := s.planChange(ctx, g.Group)
		if err != nil {
			return err
		}
		var before []byte
		if ch.before != nil && ch.broken == nil {
			if before, err = groupfile.Write(*ch.before); err != nil {
				return err
			}
		}
		after, err := groupfile.Write(ch.after)
		if err != nil {
			return err
		}
		old := fmt.Sprintf("%s (revision %d)", s.keys().Group(g.Name), ch.was)
		if ch.was == 0 {
			old = s.keys().Group(g.Name) + " (none)"
		}
		diff := udiff.Unified(old, g.file, string(before), string(after))
		differs = differs || diff != "" || ch.broken != nil
		if _, err := fmt.Fprint(s.env.Stdout, diff); err != nil {
			return err
		}
	}
	if !differs {
		s.note("no difference")
	}
	if differs && c.ExitCode {
		return errDiffers
	}
	return nil
}
