package cli

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// InstanceReplace is the command instance replace.
type InstanceReplace struct {
	Instance string `arg:"" help:"ID of the instance."`
}

// Run orders the replacement.
func (c *InstanceReplace) Run(ctx context.Context, s *Session) error {
	return s.order(ctx, c.Instance, store.RequestReplace,
		"a replacement is created first; once it is healthy, this instance is removed")
}

// InstanceDelete is the command instance delete.
type InstanceDelete struct {
	Instance string   `arg:"" help:"ID of the instance."`
	Gone     bool     `help:"The machine was set up by hand and is gone for good: end the record without waiting for its agent."`
	Confirm  []string `help:"Confirm the removal by naming the instance." placeholder:"ID"`
}

// Run orders the removal.
func (c *InstanceDelete) Run(ctx context.Context, s *Session) error {
	v, _, err := s.instance(ctx, c.Instance)
	if err != nil {
		return err
	}
	if c.Gone {
		return c.gone(ctx, s, v)
	}
	act := fmt.Sprintf("instance %s (%s) of group %s is removed now, before its slot has a replacement", v.Record.ID,
		v.Record.Phase, v.Record.Group)
	if err := s.confirm(ctx, c.Confirm, c.Instance, act); err != nil {
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
	return s.order(ctx, c.Instance, store.RequestDelete, effect)
}

// gone orders the end of a record whose machine no provider can see (PROV-9).
func (c *InstanceDelete) gone(ctx context.Context, s *Session, v store.Versioned[store.Instance]) error {
	if v.Record.Spec.Provider != store.ProviderNone {
		return failureRun(Usage, "leasehold instance delete "+c.Instance,
			"--gone is for machines that were set up by hand: the machine of %s is kept by provider %s, "+
				"which says when it is gone",
			c.Instance, v.Record.Spec.Provider)
	}
	act := fmt.Sprintf("the record of instance %s (%s) of group %s is deleted, and nothing makes "+
		"sure that its machine is gone",
		v.Record.ID, v.Record.Phase, v.Record.Group)
	if err := s.confirm(ctx, c.Confirm, c.Instance, act); err != nil {
		return err
	}
	r := s.request(store.RequestGone, v.Record.Group, c.Instance)
	if err := s.leave(ctx, r, []store.Condition{store.Exists(v.Key)},
		fmt.Sprintf("the record of instance %s was deleted in the meantime", c.Instance)); err != nil {
		return err
	}
	return s.ordered(ctx, r, c.Instance, "its record ends; should its agent come back, it stops its workload")
}

// order writes an order about an instance.
func (s *Session) order(ctx context.Context, id string, kind store.RequestKind, effect string) error {
	v, _, err := s.instance(ctx, id)
	if err != nil {
		return err
	}
	return s.orderInstance(ctx, v, s.request(kind, v.Record.Group, id), effect)
}

// orderInstance writes an order about an instance, unless it is being deleted already.
func (s *Session) orderInstance(ctx context.Context, v store.Versioned[store.Instance], r store.Request,
	effect string,
) error {
	if v.Record.Phase == store.Deleting {
		s.note("%s is already being deleted", r.Instance)
		return nil
	}
	if err := s.leave(ctx, r, []store.Condition{s.ordersOn(v.Key, v.Modified)},
		fmt.Sprintf("instance %s was removed in the meantime", r.Instance)); err != nil {
		return err
	}
	return s.ordered(ctx, r, r.Instance, effect)
}
