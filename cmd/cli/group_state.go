package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// GroupStop is the command group stop (REC-11).
type GroupStop struct {
	Group   string   `arg:"" help:"Name of the group."`
	Wait    bool     `help:"Wait until all instances are gone."`
	Confirm []string `help:"Confirm the removal of all instances by naming the group." placeholder:"NAME"`
}

// Run stops the group: its instances are drained and deleted, its size is kept.
func (c *GroupStop) Run(ctx context.Context, inv *Invocation) error {
	begun := inv.env.Now()
	ch, err := inv.readExisting(ctx, c.Group)
	if err != nil {
		return err
	}
	if !ch.after.Stopped {
		act := fmt.Sprintf("all instances of group %s (%s wanted) are drained and deleted; its size is kept", c.Group,
			isAre(ch.after.Size))
		if err := inv.confirm(ctx, c.Confirm, c.Group, act); err != nil {
			return err
		}
	}
	ch.after.Stopped = true
	if err := inv.writeOne(ctx, &ch, "stopped",
		"leasehold group show "+c.Group+", then leasehold group stop "+c.Group); err != nil {
		return err
	}
	inv.note("its instances are drained and deleted; it is started again with: leasehold group start %s", c.Group)
	if ch.after.Paused {
		inv.warn("%s is paused: its instances stay until leasehold group resume %s", c.Group, c.Group)
	}
	return inv.waitFor(ctx, c.Wait, ch, begun)
}

// GroupStart is the command group start.
type GroupStart struct {
	Group string `arg:"" help:"Name of the group."`
	Wait  bool   `help:"Wait until the group matches its spec."`
}

// Run starts a group that was stopped or never started. Slots that were given up are retried
// (REC-11).
func (c *GroupStart) Run(ctx context.Context, inv *Invocation) error {
	begun := inv.env.Now()
	ch, err := inv.readExisting(ctx, c.Group)
	if err != nil {
		return err
	}
	errored, err := inv.erroredSlots(ctx, c.Group)
	if err != nil {
		return err
	}
	ch.after.Stopped, ch.after.Unstarted = false, false
	if err := inv.start(ctx, &ch, errored); err != nil {
		return err
	}
	inv.warnOfRest(ch)
	return inv.waitFor(ctx, c.Wait, ch, begun)
}

// start writes the changed specs and, in the same transaction, orders a retry of slots that were
// given up.
func (inv *Invocation) start(ctx context.Context, ch *groupChange, errored int) error {
	again := "leasehold group show " + ch.name + ", then leasehold group start " + ch.name
	if errored == 0 {
		return inv.writeOne(ctx, ch, "started", again)
	}
	retry := inv.request(store.RequestRetry, ch.name, "")
	if ch.unchanged() {
		if err := inv.leave(ctx, retry, ch.asRead(inv.keys()),
			fmt.Sprintf("group %s: it was changed in the meantime", ch.name)); err != nil {
			return err
		}
		fmt.Fprintf(inv.env.Stdout, "%s unchanged rev %d\n", ch.name, ch.rev())
	} else {
		rev, err := inv.writeWith(ctx, []groupChange{*ch}, []store.Request{retry}, again)
		if err != nil {
			return err
		}
		ch.groupRev = rev
		fmt.Fprintf(inv.env.Stdout, "%s started rev %d\n", ch.name, rev)
	}
	return inv.ordered(ctx, retry, ch.name,
		counted(errored, "slot that was given up is retried", "slots that were given up are retried"))
}

// erroredSlots counts the slots of a group that were given up.
func (inv *Invocation) erroredSlots(ctx context.Context, name string) (int, error) {
	listing, err := inv.list(ctx, inv.keys().Of(store.KindSlots)+name+"/", 0)
	if err != nil {
		return 0, err
	}
	slots, err := decodeAll[store.Slot](listing)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, v := range slots {
		if v.Record.Errored != "" {
			n++
		}
	}
	return n, nil
}

// GroupRestart is the command group restart (ROLL-1).
type GroupRestart struct {
	Group    string `arg:"" help:"Name of the group."`
	Recreate bool   `help:"Replace machines instead of restarting them in place."`
	Wait     bool   `help:"Wait until all instances are restarted."`
}

// Run orders a relaunch of all instances of the group, within its budgets.
func (c *GroupRestart) Run(ctx context.Context, inv *Invocation) error {
	begun := inv.env.Now()
	ch, err := inv.readExisting(ctx, c.Group)
	if err != nil {
		return err
	}
	action, how := store.ActionRestart, "restarted in place"
	if c.Recreate {
		action, how = store.ActionRecreate, "replaced by new ones"
	}
	ch.after.Relaunch = store.Relaunch{Number: ch.after.Relaunch.Number + 1, Action: action}
	what := fmt.Sprintf("restart %d", ch.after.Relaunch.Number)
	if err := inv.writeOne(ctx, &ch, what,
		"leasehold group show "+c.Group+", then leasehold group restart "+c.Group); err != nil {
		return err
	}
	inv.note("all its instances are %s as its budgets allow; watch it with: leasehold events -g %s --follow", how,
		c.Group)
	inv.warnOfRest(ch)
	return inv.waitFor(ctx, c.Wait, ch, begun)
}

// warnOfRest warns that nothing happens as long as the group is paused or not started.
func (inv *Invocation) warnOfRest(ch groupChange) {
	switch {
	case ch.after.Stopped:
		inv.warn("%s is stopped: nothing happens until leasehold group start %s", ch.name, ch.name)
	case ch.after.Unstarted:
		inv.warn("%s was never started: nothing happens until leasehold group start %s", ch.name, ch.name)
	case ch.after.Paused:
		inv.warn("%s is paused: nothing happens until leasehold group resume %s", ch.name, ch.name)
	}
}

// waitFor waits for the effect of what was written, with --wait.
func (inv *Invocation) waitFor(ctx context.Context, wanted bool, ch groupChange, begun time.Time) error {
	if !wanted {
		return nil
	}
	return inv.wait(ctx, awaited{spec: ch.after, since: ch.rev(), after: ch.rev(), begun: begun})
}
