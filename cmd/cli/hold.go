package cli

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// Hold is the command hold (SAFE-12).
type Hold struct {
	Why string `arg:"" help:"The reason, shown in the status."`
}

// Run puts the shard on hold.
func (c *Hold) Run(ctx context.Context, inv *Invocation) error {
	if c.Why == "" {
		return failure(Usage, `leasehold hold "etcd is restored"`, "why: missing: it is shown for all work that waits")
	}
	shard, err := inv.readShard(ctx)
	if err != nil {
		return err
	}
	hold := &store.Hold{By: inv.who(), Why: c.Why, At: inv.env.Now().UTC()}
	return inv.setHold(ctx, shard, hold, "on hold", "nothing is created or deleted until leasehold release")
}

// setHold changes the shard's record, if it is still as the command read it: a release ends no
// other hold than the one it has shown.
func (inv *Invocation) setHold(ctx context.Context, shard store.Versioned[store.Shard], hold *store.Hold, what,
	follows string,
) error {
	switch was := shard.Record.Hold; {
	case hold != nil && was != nil:
		return failure(Conflict, "run leasehold release, then leasehold hold", "shard %s is already on hold, by %s: %s",
			inv.flags.Shard, was.By, was.Why)
	case hold == nil && was == nil:
		fmt.Fprintf(inv.env.Stdout, "%s unchanged rev %d\n", inv.flags.Shard, shard.Modified)
		return nil
	}
	was, next := shard.Record.Hold, shard.Record
	if hold == nil {
		next.Release(inv.env.Now().UTC())
	} else {
		next.Hold = hold
	}
	rev, err := inv.writeShard(ctx, shard, next)
	if err != nil {
		return err
	}
	fmt.Fprintf(inv.env.Stdout, "%s %s rev %d\n", inv.flags.Shard, what, rev)
	if follows != "" {
		inv.note("%s", follows)
	}
	if hold == nil && was.Extras > 0 {
		grace := shard.Record.Settings.WithDefaults().OrphanGrace
		inv.note("the reason for the hold was: %s", output.OneLine(was.Why))
		inv.note("these machines cause no further hold; orphan_grace starts again: those not adopted within %s are removed "+
			"permanently", grace)
		inv.note("check them at their provider; leasehold instance adopt ID keeps one, leasehold hold WHY gives more time")
	}
	return nil
}
