package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// GroupRollback is the command group rollback (ROLL-4).
type GroupRollback struct {
	Group   string   `arg:"" help:"Name of the group."`
	To      *int64   `help:"Restore the whole spec of this revision, if etcd's history still has it (default: restore the last good template)." placeholder:"REVISION"`
	DryRun  bool     `help:"Show what would change and what would follow, without changing anything."`
	Wait    bool     `help:"Wait until all instances run the restored template."`
	Confirm []string `help:"Confirm a smaller size by naming the group." placeholder:"NAME"`
}

// Run restores the template with which the whole group was last healthy: provider, template,
// workload, vars, secrets, checks, files, slots and the probe of busy. Everything else stays
// unchanged. With --to it restores a whole spec; only fields that commands set stay unchanged.
func (c *GroupRollback) Run(ctx context.Context, inv *Invocation) error {
	begun := inv.env.Now()
	var ch groupChange
	var to string
	var err error
	if c.To != nil {
		ch, err = inv.rollbackTo(ctx, c.Group, store.Revision(*c.To))
		to = fmt.Sprintf("the spec of revision %d", *c.To)
	} else {
		ch, to, err = inv.rollbackToGood(ctx, c.Group)
	}
	if err != nil {
		return err
	}
	if err := inv.refuseIfDeleting(ch, c.DryRun); err != nil {
		return err
	}
	command := "leasehold group rollback " + c.Group
	if c.To != nil {
		command += fmt.Sprintf(" --to %d", *c.To)
	}
	fmt.Fprintf(inv.env.Stdout, "%s: back to %s\n", c.Group, to)
	restored := ch.after.InstanceSpec()
	fmt.Fprintln(inv.env.Stdout, reason.LeftBy(&restored, c.To != nil))
	if c.DryRun {
		if err := inv.dryRunOne(ctx, ch); err != nil {
			return err
		}
		if ch.shrinks() {
			command += " --confirm=" + c.Group
		}
		fmt.Fprintf(inv.env.Stdout, "Nothing changed. Do it: %s%s\n", command, inv.shardFlag())
		return nil
	}
	if err := writeChanges(inv, ch.before, ch.after); err != nil {
		return err
	}
	if ch.shrinks() {
		if err := inv.confirm(ctx, c.Confirm, ch.name, ch.describeShrinking()); err != nil {
			return err
		}
	}
	if err := inv.writeOne(ctx, &ch, "rolled back", "leasehold group show "+c.Group+", then "+command); err != nil {
		return err
	}
	inv.warnOfRest(ch)
	return inv.waitFor(ctx, c.Wait, ch, begun)
}

// rollbackToGood returns the change back to the last template with which the whole group was
// healthy.
func (inv *Invocation) rollbackToGood(ctx context.Context, name string) (ch groupChange, to string, err error) {
	if ch, err = inv.readExisting(ctx, name); err != nil {
		return ch, "", err
	}
	status, _, err := findRecord[store.Status](ctx, inv, inv.keys().Status(name))
	if err != nil {
		return ch, "", err
	}
	good := status.Record.LastGood
	if err := rollbackOf(ch, good); err != nil {
		return ch, "", err
	}
	ch.after.Restore(good.Spec)
	if err := ch.after.Validate(); err != nil {
		return ch, "", failureRun(Failed, "leasehold group edit "+name,
			"group %s: with the template %s, of revision %d, its spec would be invalid: %s", name, good.Template,
			good.Revision, joined(err))
	}
	return ch, fmt.Sprintf("template %s, of revision %d", good.Template, good.Revision), nil
}

// rollbackTo returns the change back to the spec that was written at this revision. It works even
// if the present spec cannot be used.
func (inv *Invocation) rollbackTo(ctx context.Context, name string, to store.Revision) (groupChange, error) {
	if !isName(name) {
		return groupChange{}, inv.noGroup(ctx, name)
	}
	history := "leasehold group history " + name
	ch, err := inv.readChange(ctx, name)
	switch {
	case err != nil:
		return ch, err
	case ch.isNew():
		return ch, inv.noGroup(ctx, name)
	case ch.static != nil:
		return ch, failure(Failed, "restore it in the shard's file, then leasehold config apply -f FILE",
			"group %s is static: its spec is in the shard's file, and only that file has its history", name)
	case to <= 0 || to > ch.groupRev:
		return ch, failure(NotFound, history, "revision %d is not one of group %s: its newest is %d", to, name, ch.groupRev)
	}
	key := inv.keys().Group(name)
	listing, err := inv.list(ctx, key, to)
	if errors.Is(err, store.ErrCompacted) {
		return ch,
			failure(NotFound,
				history+"; leasehold group apply -f FILE, with the spec from elsewhere; or leasehold group rollback "+name+
					", to the last good template",
				"revision %d of group %s is no longer in etcd's history, which has been compacted since (compact_after)",
				to, name)
	}
	if err != nil {
		return ch, err
	}
	i := slices.IndexFunc(listing.KVs, func(kv store.KV) bool { return kv.Key == key })
	if i < 0 {
		return ch, failure(NotFound, history, "revision %d is not one of group %s: the group did not exist then", to,
			name)
	}
	old := listing.KVs[i]
	if old.Modified != to {
		return ch, failure(NotFound, fmt.Sprintf("%s; or leasehold group rollback %s --to %d", history, name,
			old.Modified),
			"revision %d is not one of group %s: its spec then was the one of revision %d", to, name, old.Modified)
	}
	spec, err := store.ReadGroup(old.Value)
	if err == nil && spec.Name != name {
		err = fmt.Errorf("its name is %q", spec.Name)
	}
	if err != nil {
		return ch, failure(Failed, history, "group %s: the spec of revision %d cannot be used: %s", name, to,
			joined(err))
	}
	if ch.broken != nil {
		inv.warnOfBroken(ch)
	}
	ch.after = spec
	ch.after.OperatorState = ch.before.OperatorState
	return ch, nil
}

// rollbackOf returns why a group cannot be rolled back to the last good template, if so.
func rollbackOf(ch groupChange, good *store.GoodSpec) error {
	history := "leasehold group history " + ch.name
	switch {
	case good == nil:
		return failure(Failed, history+", then leasehold group edit "+ch.name,
			"group %s: there is no template to roll back to: the whole group was never healthy", ch.name)
	case good.Spec.TemplateHash() == ch.before.InstanceSpec().TemplateHash():
		return failure(Failed, history,
			"group %s: there is nothing to roll back to: its template %s is the last good one", ch.name, good.Template)
	case ch.static != nil:
		return failure(Failed,
			"put template "+good.Template+" back into the shard's file, then leasehold config apply -f FILE; "+
				"or leasehold group edit "+ch.name+", if it is the instance type or a variable",
			"group %s is static: its template is in the shard's file; the last good template is %s, of revision %d",
			ch.name, good.Template, good.Revision)
	default:
		return nil
	}
}
