package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// Evacuate is the command evacuate (DRAIN-3).
type Evacuate struct {
	Zone    string   `arg:"" help:"Name of the zone."`
	End     bool     `help:"End the evacuation: the zone may be used again."`
	Confirm []string `help:"Confirm the evacuation by naming the zone." placeholder:"ZONE"`
}

// Run orders the evacuation of the zone: its instances are replaced elsewhere, and no new ones are
// created there until --end.
func (c *Evacuate) Run(ctx context.Context, inv *Invocation) error {
	if strings.TrimSpace(c.Zone) == "" {
		return failureRun(Usage, "leasehold evacuate --help",
			"zone: %q: must be the name of a zone, as leasehold instance list shows it", c.Zone)
	}
	shard, _, err := findRecord[store.Shard](ctx, inv, inv.keys().Shard())
	if err != nil {
		return err
	}
	if !shard.Present() {
		return failureRun(NotFound, "leasehold status --all-shards",
			"there is no shard %s: no coordinator has ever served it", inv.flags.Shard)
	}
	if err := inv.checkBaseOf("the record of shard "+inv.flags.Shard, shard.Modified); err != nil {
		return err
	}
	evacuation, evacuated := shard.Record.Evacuated[c.Zone]
	if c.End {
		return c.end(ctx, inv, shard, evacuated)
	}
	returns, err := inv.pending(ctx, store.RequestReturn, c.Zone)
	if err != nil {
		return err
	}
	if evacuated && !returns {
		fmt.Fprintf(inv.env.Stdout, "%s unchanged: already evacuated by %s\n", c.Zone, output.OneLine(evacuation.By))
		return nil
	}
	there, wants, err := inv.inZone(ctx, c.Zone)
	if err != nil {
		return err
	}
	if there == "" && !wants {
		inv.warn("no instance is in a zone %q, and no group names it: check the spelling", c.Zone)
	}
	if there == "" {
		there = "it has no instances now"
	}
	act := fmt.Sprintf("all instances in zone %s are replaced elsewhere and removed (%s), "+
		"and no new ones are created there", c.Zone, there)
	if err := inv.confirm(ctx, c.Confirm, c.Zone, act); err != nil {
		return err
	}
	return c.order(ctx, inv, store.RequestEvacuate, shard,
		fmt.Sprintf("its instances are replaced elsewhere first, then drained (%s); no new ones are created there until "+
			"leasehold evacuate %s --end", there, c.Zone))
}

// end orders the end of the evacuation.
func (c *Evacuate) end(ctx context.Context, inv *Invocation, shard store.Versioned[store.Shard], evacuated bool) error {
	if !evacuated {
		pending, err := inv.pending(ctx, store.RequestEvacuate, c.Zone)
		if err != nil {
			return err
		}
		if !pending {
			fmt.Fprintf(inv.env.Stdout, "%s unchanged: it is not evacuated\n", c.Zone)
			return nil
		}
	}
	return c.order(ctx, inv, store.RequestReturn, shard,
		"instances may be created there again; those that were replaced do not move back")
}

// pending reports whether an order about the zone still waits for a leader.
func (inv *Invocation) pending(ctx context.Context, kind store.RequestKind, zone string) (bool, error) {
	listing, err := inv.list(ctx, inv.keys().Of(store.KindRequests), 0)
	if err != nil {
		return false, err
	}
	all, _ := decodeReadable[store.Request](listing)
	return slices.ContainsFunc(all, func(v store.Versioned[store.Request]) bool {
		return v.Record.Kind == kind && v.Record.Zone == zone
	}), nil
}

func (c *Evacuate) order(ctx context.Context, inv *Invocation, kind store.RequestKind,
	shard store.Versioned[store.Shard], effect string,
) error {
	r := inv.request(kind, "", "")
	r.Zone = c.Zone
	if err := inv.leave(ctx, r, []store.Condition{inv.ordersOn(shard.Key, shard.Modified)},
		"shard "+inv.flags.Shard+" was removed in the meantime"); err != nil {
		return err
	}
	return inv.ordered(ctx, r, c.Zone, effect)
}

// inZone returns how many instances of which groups are in a zone; "" if none. wants reports
// whether a group names the zone.
func (inv *Invocation) inZone(ctx context.Context, zone string) (there string, wants bool, err error) {
	listing, err := inv.list(ctx, inv.keys().Of(store.KindInstances), 0)
	if err != nil {
		return "", false, err
	}
	all, err := decodeInstances(listing)
	if err != nil {
		return "", false, err
	}
	groups, _, err := inv.groups(ctx, inv.keys(), listing.Revision)
	if err != nil {
		return "", false, err
	}
	for _, g := range groups {
		wants = wants || slices.Contains(g.Spec.Template.Zones, zone)
	}
	counts := map[string]int{}
	for _, v := range all {
		if i := v.Record; i.Zone == zone && i.Phase != store.Deleting {
			counts[i.Group]++
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d of group %s", counts[name], name))
	}
	return strings.Join(parts, ", "), wants, nil
}
