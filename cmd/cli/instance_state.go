package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// InstanceRestart is the command instance restart.
type InstanceRestart struct {
	Instance string `arg:"" help:"ID of the instance."`
}

// Run orders the restart.
func (c *InstanceRestart) Run(ctx context.Context, inv *Invocation) error {
	return inv.order(ctx, c.Instance, store.RequestRestart, "its machine is restarted in place, at once")
}

// InstanceDrain is the command instance drain.
type InstanceDrain struct {
	Instance string   `arg:"" help:"ID of the instance."`
	Confirm  []string `help:"Confirm the removal by naming the instance." placeholder:"ID"`
}

// Run orders the instance to be drained and removed.
func (c *InstanceDrain) Run(ctx context.Context, inv *Invocation) error {
	v, _, err := inv.instance(ctx, c.Instance)
	if err != nil {
		return err
	}
	if v.Record.Phase == store.Draining {
		inv.note("%s is already draining; see leasehold instance show %s", c.Instance, c.Instance)
		return nil
	}
	act := fmt.Sprintf("instance %s (%s) of group %s drains and is removed, before its slot has a replacement",
		c.Instance, v.Record.Phase, v.Record.Group)
	if err := inv.confirm(ctx, c.Confirm, c.Instance, act); err != nil {
		return err
	}
	return inv.orderInstance(ctx, v, inv.request(store.RequestDrain, v.Record.Group, c.Instance),
		"it drains and is removed; then its slot is filled again")
}

// InstanceDrained is the command instance drained (DRAIN-1).
type InstanceDrained struct {
	Instance string `arg:"" help:"ID of the instance."`
}

// Run declares the drain finished: the work of the instance has been taken over.
func (c *InstanceDrained) Run(ctx context.Context, inv *Invocation) error {
	v, _, err := inv.instance(ctx, c.Instance)
	if err != nil {
		return err
	}
	if p := v.Record.Phase; p != store.Draining && p != store.Deleting {
		return failure(Failed, "leasehold instance drain "+c.Instance+" starts to drain it",
			"instance %s does not drain: it is %s, and no order was given", c.Instance, p)
	}
	return inv.orderInstance(ctx, v, inv.request(store.RequestDrained, v.Record.Group, c.Instance),
		"its drain is over: it is stopped and removed")
}

// InstanceProtect is the command instance protect (REC-13).
type InstanceProtect struct {
	Instance string `arg:"" help:"ID of the instance."`
	FromHeal bool   `xor:"mode" help:"Do not heal it either: it is left alone even if it fails."`
	Off      bool   `xor:"mode" help:"End the protection."`
	Why      string `help:"The reason, shown for all work that waits for it." placeholder:"REASON"`
	Span
}

// Run orders the protection, or its end.
func (c *InstanceProtect) Run(ctx context.Context, inv *Invocation) error {
	v, _, err := inv.instance(ctx, c.Instance)
	if err != nil {
		return err
	}
	mode, effect := store.ProtectRemoval, "it is protected from scale-down, age limits and rolls"
	switch {
	case c.FromHeal:
		mode, effect = store.ProtectHeal, "it is left alone, even if it fails"
	case c.Off:
		mode, effect = store.ProtectOff, "it is no longer protected"
	}
	r := inv.request(store.RequestProtect, v.Record.Group, c.Instance)
	ends, err := c.end(r.At)
	switch {
	case err != nil:
		return err
	case c.Off && (!ends.IsZero() || c.Why != ""):
		return failureRun(Usage, "leasehold instance protect "+c.Instance+" --off", "--off takes nothing beside it")
	case ends.Sub(r.At) > store.MaxProtection:
		return failure(Usage, "leave out --for and --until: the protection lasts until --off",
			"the protection would last until %s: it must be at most %s", ends.Format(time.RFC3339),
			store.Duration(store.MaxProtection))
	case !ends.IsZero():
		r.For = store.Duration(ends.Sub(r.At).Round(time.Second))
		effect += " until " + ends.Format(time.RFC3339)
	}
	r.Mode, r.Why = mode, c.Why
	return inv.orderInstance(ctx, v, r, effect)
}
