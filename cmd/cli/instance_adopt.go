package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/coordinator/recovery"
	"github.com/leasehold/leasehold/store"
)

// InstanceAdopt is the command instance adopt (REC-8).
type InstanceAdopt struct {
	Instance string `arg:"" optional:"" help:"ID of the machine, from its tag."`
	Group    string `short:"g" help:"Group to adopt it into (default: the group in its tag)." placeholder:"NAME"`
	Slot     *int   `help:"Slot to adopt it into (default: its former slot, else a free one)." placeholder:"N"`
	Silent   bool   `help:"With --all: also adopt machines with silent agents, by their tags alone."`
	All      bool   `help:"Adopt every machine without a record whose slot is known and free; with -g, of this group only."`
}

// Run orders the adoption of machines without a record. The leader checks each order, because only
// it knows the providers' answers, and the journal has the result.
func (c *InstanceAdopt) Run(ctx context.Context, inv *Invocation) error {
	switch {
	case c.All == (c.Instance != ""):
		return failureRun(Usage, "leasehold instance adopt --help", "give the ID of a machine, or --all")
	case c.All && c.Slot != nil:
		return failureRun(Usage, "leasehold instance adopt --help", "--slot: applies to one machine only")
	case c.Slot != nil && *c.Slot < 0:
		return failureRun(Usage, "leasehold instance adopt --help", "--slot: %d: must be 0 or more", *c.Slot)
	}
	if c.Group != "" {
		if _, err := inv.group(ctx, c.Group); err != nil {
			return err
		}
	}
	if c.All {
		return c.all(ctx, inv)
	}
	return c.one(ctx, inv)
}

func (c *InstanceAdopt) one(ctx context.Context, inv *Invocation) error {
	if !isName(c.Instance) {
		return failureRun(Usage, "leasehold instance adopt --help", "%q: must be the ID of a machine, without /",
			c.Instance)
	}
	if kv, err := inv.find(ctx, inv.keys().Instance(c.Instance)); err != nil || kv.Modified != 0 {
		if err != nil {
			return err
		}
		return failureRun(Failed, "leasehold instance show "+c.Instance,
			"instance %s already has a record: there is nothing to adopt, and no order was given", c.Instance)
	}
	r := inv.request(store.RequestAdopt, c.Group, c.Instance)
	r.Slot = c.Slot
	holds := []store.Condition{store.Absent(inv.keys().Instance(c.Instance))}
	if err := inv.leave(ctx, r, holds, fmt.Sprintf("instance %s got a record in the meantime", c.Instance)); err != nil {
		return err
	}
	fmt.Fprintf(inv.env.Stdout, "%s %s ordered %s\n", c.Instance, r.Kind, r.ID)
	inv.note("the leader looks for a machine of this shard with this ID and no record, " +
		"and adopts it or says why not; where no agent can prove its template, a roll replaces it unless it is protected; " +
		"watch it with: leasehold events --follow")
	return inv.warnWithoutLeader(ctx)
}

// all orders the adoption of every machine whose slot is certain.
func (c *InstanceAdopt) all(ctx context.Context, inv *Invocation) error {
	known, err := inv.recoverable(ctx)
	if err != nil {
		return err
	}
	known.Silent = c.Silent
	plan := slices.DeleteFunc(recovery.Plan(known),
		func(m recovery.Candidate) bool { return c.Group != "" && m.Group != c.Group })
	if len(plan) == 0 {
		inv.note("no machine without a record is known")
		return nil
	}
	if err := showCandidates(inv, plan); err != nil {
		return err
	}
	var orders []store.Request
	for _, m := range plan {
		if m.Adoptable() {
			r := inv.request(store.RequestAdopt, m.Group, m.Instance)
			r.Slot = &m.Slot
			orders = append(orders, r)
		}
	}
	if len(orders) == 0 {
		return failureRun(Failed, "leasehold instance adopt ID --slot N", "none of them has a slot that is certain")
	}
	if err := inv.leaveAll(ctx, orders); err != nil {
		return err
	}
	fmt.Fprintf(inv.env.Stdout, "adoption of %s ordered\n", counted(len(orders), "machine", "machines"))
	inv.note("watch it with: leasehold events --follow")
	return inv.warnWithoutLeader(ctx)
}
