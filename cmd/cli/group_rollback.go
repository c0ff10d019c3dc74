package cli

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// GroupRollback is the command group rollback (ROLL-4).
type GroupRollback struct {
	Group  string `arg:"" help:"Name of the group."`
	DryRun bool   `help:"Show what would change and what would follow, and change nothing."`
	Wait   bool   `help:"Wait until all instances are on the template that was good."`
}

// Run puts back what the instances were made from when the whole group was last healthy: provider, template, workload, vars and checks.
// All else stays as it is.
func (c *GroupRollback) Run(ctx context.Context, s *Session) error {
	begun := s.env.Now()
	ch, err := s.readExisting(ctx, c.Group)
	if err != nil {
		return err
	}
	status, _, err := findRecord[store.Status](ctx, s, s.keys().Status(c.Group))
	if err != nil {
		return err
	}
	good := status.Record.LastGood
	if err := rollbackOf(ch, good); err != nil {
		return err
	}
	ch.after.Provider, ch.after.Template = good.Spec.Provider, good.Spec.Template
	ch.after.Workload, ch.after.Vars, ch.after.Secrets, ch.after.Checks = good.Spec.Workload, good.Spec.Vars, good.Spec.Secrets, good.Spec.Checks
	if err := ch.after.Validate(); err != nil {
		return failure(Failed, "leasehold group edit "+c.Group, "group %s: with the template %s, of revision %d, its spec would be wrong: %s", c.Group, good.Template, good.Revision, joined(err))
	}
	fmt.Fprintf(s.env.Stdout, "%s: back to template %s, of revision %d\n", c.Group, good.Template, good.Revision)
	if c.DryRun {
		if err := s.dryRunOne(ctx, ch); err != nil {
			return err
		}
		fmt.Fprintf(s.env.Stdout, "Nothing changed. Do it: leasehold group rollback %s\n", c.Group)
		return nil
	}
	if err := writeChanges(s, ch.before, ch.after); err != nil {
		return err
	}
	if err := s.writeOne(ctx, &ch, "rolled back", "leasehold group show "+c.Group+", then leasehold group rollback "+c.Group); err != nil {
		return err
	}
	s.warnOfRest(ch)
	return s.waitFor(ctx, c.Wait, ch, begun)
}

// rollbackOf says why a group cannot be rolled back to what was good, if so.
func rollbackOf(ch change, good *store.GoodSpec) error {
	history := "leasehold group history " + ch.name
	switch {
	case good == nil:
		return failure(Failed, history+", then leasehold group edit "+ch.name, "group %s: there is no template to go back to: the whole group was never healthy", ch.name)
	case good.Spec.TemplateHash() == ch.before.InstanceSpec().TemplateHash():
		return failure(Failed, history, "group %s: there is nothing to go back to: its template %s is the last one that was good", ch.name, good.Template)
	case ch.static != nil:
		return failure(Failed, "put template "+good.Template+" back into the shard's file, then leasehold config apply -f FILE; or leasehold group edit "+ch.name+", if it is the instance type or a variable",
			"group %s is static: what it is made from stands in the shard's file; the last template that was good is %s, of revision %d", ch.name, good.Template, good.Revision)
	default:
		return nil
	}
}
