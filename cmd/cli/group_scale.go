package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// GroupScale is the command group scale.
type GroupScale struct {
	Group   string   `arg:"" help:"Name of the group."`
	Size    *int     `arg:"" optional:"" help:"The new size."`
	Until   string   `help:"For a group that follows its load: keep this size for (2h) or until (2026-05-01T08:00:00Z); without it, until the group is changed." placeholder:"WHEN"`
	Auto    bool     `help:"Let the size follow the load again."`
	Wait    bool     `help:"Wait until the group has this size."`
	Confirm []string `help:"Confirm a smaller size, or one that is ten times as large, by naming the group." placeholder:"NAME"`
}

// Run changes the size. In a group whose size follows its load the size overrides the load
// (AUTO-3).
func (c *GroupScale) Run(ctx context.Context, inv *Invocation) error {
	if c.Size != nil && c.Auto {
		return failureRun(Usage, "leasehold group scale --help", "a size and --auto exclude each other")
	}
	if c.Size == nil && !c.Auto {
		return failureRun(Usage, "leasehold group scale --help", "give the new size, or --auto")
	}
	if c.Size != nil && (*c.Size < 0 || *c.Size > store.MaxSize) {
		return failureRun(Usage, "leasehold group scale --help", "size: %d: must be 0 to %d", *c.Size, store.MaxSize)
	}
	ch, err := inv.readExisting(ctx, c.Group)
	if err != nil {
		return err
	}
	if err := c.change(inv, &ch); err != nil {
		return err
	}
	var field *store.FieldError
	if err := ch.after.Validate(); errors.As(err, &field) {
		return failureRun(Usage, "leasehold group scale --help", "%s", field)
	}
	a := awaited{spec: ch.after, since: ch.rev(), begun: inv.env.Now()}
	if ch.unchanged() {
		if err := inv.reportUnchanged(ctx, ch, ch.rev()); err != nil {
			return err
		}
	} else {
		act := ""
		switch {
		case ch.shrinks():
			act = ch.describeShrinking()
		case ch.growsMuch():
			act = ch.describeGrowth()
		}
		if act != "" {
			if err := inv.confirm(ctx, c.Confirm, ch.name, act); err != nil {
				return err
			}
		}
		again := fmt.Sprintf("leasehold group show %s, then leasehold group scale %s --auto", c.Group, c.Group)
		if c.Size != nil {
			again = fmt.Sprintf("leasehold group show %s, then leasehold group scale %s %d", c.Group, c.Group, *c.Size)
		}
		if ch.groupRev, err = inv.write(ctx, []groupChange{ch}, again); err != nil {
			return err
		}
		a.since, a.after = ch.groupRev, ch.groupRev
		c.report(inv, ch)
	}
	inv.warnOfRest(ch)
	if !c.Wait {
		return nil
	}
	return inv.wait(ctx, a)
}

// change sets the size, or the size that overrides the load.
func (c *GroupScale) change(inv *Invocation, ch *groupChange) error {
	scale := ch.after.Scale
	follows := scale != nil && !scale.Advises()
	switch {
	case !follows && (c.Auto || c.Until != ""):
		return failure(Usage, "leasehold group edit "+c.Group+", for scale", "the size of group %s does not follow its load",
			c.Group)
	case !follows:
		ch.setSize(*c.Size)
		ch.after.ScaleHold = nil
	case c.Auto:
		ch.after.ScaleHold = nil
	default:
		now := inv.env.Now().UTC()
		hold := store.ScaleHold{Size: *c.Size, By: inv.who(), At: now}
		if c.Until != "" {
			until, err := momentOf(c.Until, now)
			if err != nil {
				return failureRun(Usage, "leasehold group scale --help", "--until: %s", err)
			}
			hold.Until = until
		}
		old := ch.before.ScaleHold
		same := old != nil && old.Size == hold.Size && old.Until.Equal(hold.Until)
		if same && ch.before.HeldAt(ch.loadSize, now) { // a schedule may have ended it
			return nil // nothing changes
		}
		ch.after.ScaleHold = &hold
	}
	return nil
}

// momentOf parses a future time, or a duration from now.
func momentOf(text string, now time.Time) (time.Time, error) {
	until, err := time.Parse(time.RFC3339, text)
	if d, ok := duration(text); ok {
		until, err = now.Add(d), nil
	}
	switch {
	case err != nil:
		return until, fmt.Errorf("%s: must be a duration like 2h, or a time like %s", text,
			now.Add(time.Hour).Format(time.RFC3339))
	case !until.After(now):
		return until, fmt.Errorf("%s: must be in the future", text)
	default:
		return until.UTC(), nil
	}
}

// report says what was changed, and for how long a size overrides the load.
func (c *GroupScale) report(inv *Invocation, ch groupChange) {
	before, after := ch.sizes()
	if c.Auto {
		fmt.Fprintf(inv.env.Stdout, "%s size %d follows the load rev %d\n", ch.name, after, ch.groupRev)
		return
	}
	fmt.Fprintf(inv.env.Stdout, "%s size %d -> %d rev %d\n", ch.name, before, after, ch.groupRev)
	hold := ch.after.ScaleHold
	if hold == nil {
		return
	}
	until := "until the group is changed"
	if !hold.Until.IsZero() {
		until = "until " + hold.Until.Format(time.RFC3339)
	}
	inv.note("it holds over the load %s; leasehold group scale %s --auto ends that", until, ch.name)
	if scale := ch.after.Scale; scale.Within(hold.Size) != hold.Size {
		inv.warn("size %d is not within scale.min %d and scale.max %d, which bound only what load asks for", hold.Size,
			scale.Least(), scale.Max)
	}
}
