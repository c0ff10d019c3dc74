package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Span is a duration, given by one of two flags.
type Span struct {
	Until string `xor:"span" help:"When it ends, like 2026-12-27T06:00:00Z." placeholder:"TIME"`
	For   Length `xor:"span" help:"How long it lasts, such as 30m, 8h or 7d." placeholder:"DURATION"`
}

// end returns when it ends; zero if neither flag is set.
func (c *Span) end(now time.Time) (time.Time, error) {
	switch {
	case c.Until != "":
		at, err := parseTime("until", c.Until)
		if err == nil && !at.After(now) {
			err = failure(Usage, "give a future time", "--until: %s is in the past", c.Until)
		}
		return at, err
	case c.For > 0:
		return now.Add(time.Duration(c.For)).UTC().Truncate(time.Second), nil
	default:
		return time.Time{}, nil
	}
}

func parseTime(flag, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, failure(Usage, "write a time like 2026-12-27T06:00:00Z or 2026-12-27T06:00:00+01:00",
			"--%s: %q is not a time", flag, text)
	}
	return at.UTC(), nil
}

// Freeze is the command freeze (ROLL-6).
type Freeze struct {
	Why  string `arg:"" optional:"" help:"The reason, shown in the status."`
	From string `help:"When it begins, like 2026-12-20T18:00:00Z (default: now)." placeholder:"TIME"`
	Span
	End bool `help:"End the freeze, or cancel one that has not begun."`
}

// Run prevents planned work in the shard for a while, or ends that.
func (c *Freeze) Run(ctx context.Context, inv *Invocation) error {
	freeze, err := c.wanted(inv)
	if err != nil {
		return err
	}
	shard, err := inv.readShard(ctx)
	if err != nil {
		return err
	}
	if freeze == nil && shard.Record.Freeze == nil {
		fmt.Fprintf(inv.env.Stdout, "%s unchanged: it is not frozen\n", inv.flags.Shard)
		return nil
	}
	next := shard.Record
	next.Freeze = freeze
	rev, err := inv.writeShard(ctx, shard, next)
	if err != nil {
		return err
	}
	if freeze == nil {
		fmt.Fprintf(inv.env.Stdout, "%s no longer frozen rev %d\n", inv.flags.Shard, rev)
		return nil
	}
	from := ""
	if freeze.From.After(inv.env.Now()) {
		from = " from " + freeze.From.Format(time.RFC3339)
	}
	fmt.Fprintf(inv.env.Stdout, "%s frozen%s until %s rev %d\n", inv.flags.Shard, from,
		freeze.To.Format(time.RFC3339), rev)
	inv.note("no roll, expiry, rebalance or scale-down begins; healing, notices, evacuation, orders and rollbacks go on")
	inv.note("leasehold freeze --end ends it before")
	return nil
}

// wanted returns the freeze that the flags describe; nil ends it.
func (c *Freeze) wanted(inv *Invocation) (*store.Freeze, error) {
	now := inv.env.Now().UTC().Truncate(time.Second)
	to, err := c.end(now)
	switch {
	case c.End && (c.Why != "" || c.From != "" || c.Until != "" || c.For != 0):
		return nil, failureRun(Usage, "leasehold freeze --end", "--end takes nothing beside it")
	case c.End:
		return nil, nil
	case err != nil:
		return nil, err
	case c.Why == "":
		return nil, failure(
			Usage,
			`leasehold freeze "black friday" --for 72h`,
			"why: missing: it is shown for all work that waits",
		)
	case to.IsZero():
		return nil, failure(Usage, `leasehold freeze "black friday" --for 72h`, "until: missing: say --until or --for")
	}
	freeze := &store.Freeze{From: now, To: to, Why: c.Why, By: inv.who()}
	if c.From != "" {
		if freeze.From, err = parseTime("from", c.From); err != nil {
			return nil, err
		}
		if c.For > 0 {
			freeze.To = freeze.From.Add(time.Duration(c.For))
		}
	}
	if !freeze.To.After(now) { // --from and --for
		return nil, failure(Usage, "give a later time, or a longer freeze", "--from: a freeze from %s would have ended %s",
			c.From, freeze.To.Format(time.RFC3339))
	}
	if !freeze.From.Before(freeze.To) {
		return nil, failureRun(Usage, "leasehold freeze --help", "--from: %s is not before the end, %s", c.From,
			freeze.To.Format(time.RFC3339))
	}
	return freeze, nil
}
