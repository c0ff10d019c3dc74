package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/leasehold/leasehold/store"
)

// InstanceReplace is the command instance replace.
type InstanceReplace struct {
	Instance string `arg:"" help:"ID of the instance."`
}

// Run orders the replacement.
func (c *InstanceReplace) Run(ctx context.Context, inv *Invocation) error {
	return inv.order(ctx, c.Instance, store.RequestReplace,
		"a replacement is created first; once it is healthy, this instance is removed")
}

// InstanceDelete is the command instance delete.
type InstanceDelete struct {
	Instance string   `arg:"" help:"ID of the instance."`
	Gone     bool     `help:"The machine is gone for good, and no provider can say so: it was set up by hand, or no coordinator is configured with its provider. Its record ends by your word."`
	Confirm  []string `help:"Confirm the removal by naming the instance." placeholder:"ID"`
}

// Run orders the removal.
func (c *InstanceDelete) Run(ctx context.Context, inv *Invocation) error {
	v, _, err := inv.instance(ctx, c.Instance)
	if err != nil {
		return err
	}
	if c.Gone {
		return c.gone(ctx, inv, v)
	}
	act := fmt.Sprintf("instance %s (%s) of group %s is removed now, before its slot has a replacement", v.Record.ID,
		v.Record.Phase, v.Record.Group)
	if err := inv.confirm(ctx, c.Confirm, c.Instance, act); err != nil {
		return err
	}
	effect := "it is stopped and removed; then its slot is filled again"
	switch {
	case v.Record.Spec.Provider == store.ProviderNone:
		effect = "its agent stops the workload, and confirms that; then its record ends, " +
			"and the machine is yours again; if it never returns: leasehold instance delete --gone " + c.Instance
	case !v.Record.Managed:
		effect = "it is stopped and removed"
	}
	return inv.order(ctx, c.Instance, store.RequestDelete, effect)
}

// gone orders the end of a record whose machine no provider can see (PROV-9, PROV-10). The leader
// checks it again, and waits until nothing contradicts it.
func (c *InstanceDelete) gone(ctx context.Context, inv *Invocation, v store.Versioned[store.Instance]) error {
	of := v.Record.Spec.Provider
	effect := "its record ends; should its agent come back, it stops its workload"
	if of != store.ProviderNone {
		id, has, err := inv.configuredWith(ctx, of, v.Record.Site)
		if err != nil {
			return err
		}
		if has {
			return failureRun(Usage, "leasehold instance delete "+c.Instance,
				"--gone is for machines that no provider can see: coordinator %s is configured with provider %s, "+
					"which says when the machine of %s is gone",
				id, of, c.Instance)
		}
		effect = "its record ends once its lease has ended and no coordinator has been configured with provider " + of +
			" for orphan_grace (leasehold config show); should the machine be seen again, it is shown as one without a " +
			"record, and removed"
	}
	act := fmt.Sprintf("the record of instance %s (%s) of group %s is deleted, and nothing makes "+
		"sure that its machine is gone",
		v.Record.ID, v.Record.Phase, v.Record.Group)
	if err := inv.confirm(ctx, c.Confirm, c.Instance, act); err != nil {
		return err
	}
	r := inv.request(store.RequestGone, v.Record.Group, c.Instance)
	if err := inv.leave(ctx, r, []store.Condition{store.Exists(v.Key)},
		fmt.Sprintf("the record of instance %s was deleted in the meantime", c.Instance)); err != nil {
		return err
	}
	return inv.ordered(ctx, r, c.Instance, effect)
}

// configuredWith returns a running coordinator that is configured with a provider, and sees its
// machines at a site; "" is a machine whose site is not recorded, which all of them see.
func (inv *Invocation) configuredWith(ctx context.Context, name, site string) (id string, has bool, err error) {
	replicas, err := readKind[store.Replica](ctx, inv, inv.keys(), store.KindReplicas, 0)
	if err != nil {
		return "", false, err
	}
	for _, id := range slices.Sorted(maps.Keys(replicas)) {
		r := replicas[id]
		if slices.Contains(r.Providers, name) && (site == "" || r.Capabilities[name].Site == site) {
			return id, true, nil
		}
	}
	return "", false, nil
}

// order writes an order about an instance.
func (inv *Invocation) order(ctx context.Context, id string, kind store.RequestKind, effect string) error {
	v, _, err := inv.instance(ctx, id)
	if err != nil {
		return err
	}
	return inv.orderInstance(ctx, v, inv.request(kind, v.Record.Group, id), effect)
}

// orderInstance writes an order about an instance, unless it is being deleted already.
func (inv *Invocation) orderInstance(ctx context.Context, v store.Versioned[store.Instance], r store.Request,
	effect string,
) error {
	if v.Record.Phase == store.Deleting {
		inv.note("%s is already being deleted", r.Instance)
		return nil
	}
	if err := inv.leave(ctx, r, []store.Condition{inv.ordersOn(v.Key, v.Modified)},
		fmt.Sprintf("instance %s was removed in the meantime", r.Instance)); err != nil {
		return err
	}
	return inv.ordered(ctx, r, r.Instance, effect)
}
