package cli

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// InstanceCreate is the command instance create (REC-2).
type InstanceCreate struct {
	Group string `short:"g" required:"" help:"The group that it is made like." placeholder:"NAME"`
}

// Run orders an instance beside those that the group wants.
func (c *InstanceCreate) Run(ctx context.Context, s *Session) error {
	g, err := s.group(ctx, c.Group)
	if err != nil {
		return err
	}
	if g.leaving() {
		return failure(Failed, "leasehold group show "+c.Group, "group %s is being deleted: nothing is made in it, and no order was left", c.Group)
	}
	if g.Bad == nil && g.Spec.Stopped {
		return failure(Failed, "leasehold group start "+c.Group, "group %s is stopped: nothing is made in it, and no order was left", c.Group)
	}
	effect := "an instance is made on demand: it counts for no size and nobody heals it; remove it with leasehold instance delete"
	if age := g.Spec.OnDemandAge; g.Bad == nil && age > 0 {
		effect += fmt.Sprintf(", or it goes after %s", age)
	}
	return s.orderGroup(ctx, g, store.RequestCreate, effect)
}

// InstanceAdopt is the command instance adopt (REC-8).
type InstanceAdopt struct {
	Instance string `arg:"" help:"ID of the machine, as its tag says."`
	Group    string `short:"g" help:"The group that it shall belong to (default: the one that its tag names)." placeholder:"NAME"`
}

// Run orders a machine without a record to be taken up. Which machines there are only the leader knows, from its providers: so any
// ID is taken, and the journal says what the leader made of it.
func (c *InstanceAdopt) Run(ctx context.Context, s *Session) error {
	if !isName(c.Instance) {
		return failure(Usage, "leasehold instance adopt --help", "%q: must be the ID of a machine, without /", c.Instance)
	}
	if kv, err := s.find(ctx, s.keys().Instance(c.Instance)); err != nil || kv.Modified != 0 {
		if err != nil {
			return err
		}
		return failure(Failed, "leasehold instance show "+c.Instance, "instance %s has a record already: there is nothing to adopt, and no order was left", c.Instance)
	}
	if c.Group != "" {
		if _, err := s.group(ctx, c.Group); err != nil {
			return err
		}
	}
	r := s.request(store.RequestAdopt, c.Group, c.Instance)
	holds := []store.Condition{store.Absent(s.keys().Instance(c.Instance))}
	if err := s.leave(ctx, r, holds, fmt.Sprintf("instance %s got a record meanwhile", c.Instance)); err != nil {
		return err
	}
	fmt.Fprintf(s.env.Stdout, "%s %s ordered %s\n", c.Instance, r.Kind, r.ID)
	s.note("the leader looks for a machine of this shard with this ID and no record, and takes it up or says why not; nobody knows what it was made from, so a roll replaces it unless it is protected; watch it with: leasehold events --follow")
	return s.warnWithoutLeader(ctx)
}
