package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// Release is the command release.
type Release struct {
	DryRun  bool     `help:"Show what would follow without ending the hold."`
	Confirm []string `help:"Confirm, by naming the shard, that machines are created for lost records although the old ones may still run." placeholder:"SHARD"`
}

// Run prints what will follow, and ends the hold.
func (c *Release) Run(ctx context.Context, inv *Invocation) error {
	shard, err := inv.readShard(ctx)
	if err != nil {
		return err
	}
	hold, made := shard.Record.Hold, 0
	if hold != nil {
		if made, err = inv.foreseeRelease(ctx, shard.Record); err != nil {
			return err
		}
	}
	if c.DryRun {
		inv.note("nothing changed")
		return nil
	}
	if hold != nil && hold.Damage > 0 && made > 0 {
		act := fmt.Sprintf("release %s: %d machines are made, and those whose records were lost may still run; "+
			"leasehold repair or leasehold recover puts records back instead",
			inv.flags.Shard, made)
		if err := inv.confirm(ctx, c.Confirm, inv.flags.Shard, act); err != nil {
			return err
		}
	}
	return inv.setHold(ctx, shard, nil, "released", "")
}

// groupsForeseen bounds for how many groups the effects of a release are predicted.
const groupsForeseen = 200

// foreseeRelease prints what the planner would do first without the hold, deletions by name
// (SAFE-17), and returns how many machines it would create. It cannot know what providers will
// answer.
func (inv *Invocation) foreseeRelease(ctx context.Context, shard store.Shard) (made int, err error) {
	groups, _, err := inv.groups(ctx, inv.keys(), 0)
	if err != nil {
		return 0, err
	}
	if len(groups) > groupsForeseen {
		inv.note("the forecast covers the first %d of %d groups", groupsForeseen, len(groups))
		groups = groups[:groupsForeseen]
	}
	shard.Release(inv.env.Now().UTC())
	quiet := true
	for _, g := range groups {
		listing, err := inv.recordsOf(ctx, g.Name)
		if err != nil {
			return 0, err
		}
		edit := store.Put(inv.keys().Shard(), store.Encode(shard))
		create, gone := 0, []string{}
		world, err := inv.foresee(ctx, g.Name, listing, []store.Write{edit})
		if err != nil {
			return 0, err
		}
		for _, a := range world.Plan().Actions {
			switch {
			case a.To == store.Pending:
				create++
			case a.Instance != "" && (a.To == store.Deleting || a.To == store.Draining) && a.From != a.To:
				gone = append(gone, a.Instance)
			}
		}
		if create == 0 && len(gone) == 0 {
			continue
		}
		made += create
		quiet = false
		slices.Sort(gone)
		text := g.Name + " after the release:"
		if create > 0 {
			text += fmt.Sprintf(" %d to be made", create)
		}
		if len(gone) > 0 {
			text += fmt.Sprintf(" %d to be removed: %s", len(gone), strings.Join(gone, ", "))
		}
		inv.note("%s", text)
	}
	if quiet {
		inv.note("after the release nothing is created or removed at once, according to etcd; " +
			"providers' answers may add to that")
	} else {
		inv.note("lost agents have time to return before they are replaced; providers' answers may add to that")
	}
	return made, nil
}
