package cli

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// InstanceCreate is the command instance create (REC-2).
type InstanceCreate struct {
	Group string `short:"g" required:"" help:"Group whose template it is created from." placeholder:"NAME"`
}

// Run orders an instance in addition to the group's size.
func (c *InstanceCreate) Run(ctx context.Context, inv *Invocation) error {
	g, err := inv.group(ctx, c.Group)
	if err != nil {
		return err
	}
	if g.Leaving() {
		return failureRun(Failed, "leasehold group show "+c.Group,
			"group %s is being deleted: no instance is created in it, and no order was given", c.Group)
	}
	if g.Bad == nil && g.Spec.Stopped {
		return failureRun(Failed, "leasehold group start "+c.Group,
			"group %s is stopped: no instance is created in it, and no order was given", c.Group)
	}
	effect := "an instance is created on demand: it does not count towards the size and is not healed; " +
		"remove it with leasehold instance delete"
	if age := g.Spec.OnDemandAge; g.Bad == nil && age > 0 {
		effect += fmt.Sprintf(", or it goes after %s", age)
	}
	return inv.orderGroup(ctx, g, store.RequestCreate, effect)
}
