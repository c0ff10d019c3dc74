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
