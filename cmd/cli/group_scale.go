package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// GroupScale is the command group scale.
type GroupScale struct {
	Group   string   `arg:"" help:"Name of the group."`
	Size    int      `arg:"" help:"The new size."`
	Wait    bool     `help:"Wait until the group has this size."`
	Confirm []string `help:"Confirm a smaller size by naming the group." placeholder:"NAME"`
}

// Run changes the size.
func (c *GroupScale) Run(ctx context.Context, s *Session) error {
	ch, err := s.readExisting(ctx, c.Group)
	if err != nil {
		return err
	}
	ch.setSize(c.Size)
	var field *store.FieldError
	if err := ch.after.Validate(); errors.As(err, &field) {
		return failure(Usage, "leasehold group scale --help", "%s", field)
	}
	a := awaited{spec: ch.after, since: ch.rev(), begun: s.env.Now()}
	if ch.unchanged() {
		if err := s.leftAlone(ctx, ch, ch.rev()); err != nil {
			return err
		}
	} else {
		if ch.shrinks() {
			act := ch.shrinking()
			if err := s.confirm(ctx, c.Confirm, ch.name, act); err != nil {
				return err
			}
		}
		if ch.was, err = s.write(ctx, []change{ch},
			fmt.Sprintf("leasehold group show %s, then leasehold group scale %s %d", c.Group, c.Group,
				c.Size)); err != nil {
			return err
		}
		a.since, a.after = ch.was, ch.was
		fmt.Fprintf(s.env.Stdout, "%s size %d -> %d rev %d\n", ch.name, ch.before.Size, ch.after.Size, ch.was)
	}
	s.warnOfRest(ch)
	if !c.Wait {
		return nil
	}
	return s.wait(ctx, a)
}
