package cli

import (
	"context"

	"github.com/leasehold/leasehold/cmd/foresee"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// foresee returns the world of a group. If the shard has limits, the instances of other groups
// count too, and are read for it (CAP-1).
func (inv *Invocation) foresee(ctx context.Context, group string, own store.Listing, edits []store.Write) (
	*foresee.World, error,
) {
	world := foresee.New(inv.keys(), group, own, edits, inv.env.Now())
	if spec, known := world.Spec(); known && spec.BudgetGroup != "" {
		down, err := inv.downBeside(ctx, group, spec.BudgetGroup, own.Revision)
		if err != nil {
			return nil, err
		}
		world.Sharing(down)
	}
	content := cache.FromListing(inv.keys(), own)
	if len(evidence.Limits(content)) == 0 {
		return world, nil
	}
	all := store.Listing{Revision: own.Revision}
	for _, prefix := range []string{
		inv.keys().Shard(), inv.keys().Of(store.KindStatus), inv.keys().Of(store.KindSlots),
		inv.keys().Of(store.KindInstances),
	} {
		l, err := inv.list(ctx, prefix, all.Revision)
		if err != nil {
			return nil, err
		}
		all.KVs = append(all.KVs, l.KVs...)
	}
	world.Beside(evidence.Limits(cache.FromListing(inv.keys(), all)))
	return world, nil
}

// downBeside returns what is down in other groups with the same budget_group, as their statuses say
// (REC-18).
func (inv *Invocation) downBeside(ctx context.Context, group, budget string, at store.Revision) (map[string]plan.Down,
	error,
) {
	l, err := inv.list(ctx, inv.keys().Of(store.KindStatus), at)
	if err != nil {
		return nil, err
	}
	all := map[string]plan.Down{}
	for name, st := range cache.FromListing(inv.keys(), l).Status {
		g := st.Record.Accepted
		if name == group || g == nil || g.BudgetGroup != budget || g.Stopped || g.Deleting || g.Unstarted {
			continue
		}
		all[name] = plan.Down{
			Unavailable: max(0, g.Size-st.Record.Phases[store.Running]), Unwell: max(0, g.Size-st.Record.Healthy),
		}
	}
	return all, nil
}
