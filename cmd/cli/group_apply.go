package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/cmd/foresee"
	"github.com/leasehold/leasehold/store"
)

// GroupApply is the command group apply.
type GroupApply struct {
	Files
	DryRun     bool     `help:"Show what would change and what would follow, without changing anything."`
	Wait       bool     `help:"Wait until the groups match their specs."`
	NoStart    bool     `help:"Create a new group without starting it: nothing runs until leasehold group start."`
	IfRevision *int64   `help:"Apply only if the group is still at this revision (0: only if it does not exist)." placeholder:"N"`
	Confirm    []string `help:"Confirm a smaller size by naming the group." placeholder:"NAME"`
}

// Run applies the files. All groups in them are written, or none.
func (c *GroupApply) Run(ctx context.Context, inv *Invocation) error {
	groups, err := inv.readFiles(ctx, c.Files)
	if err != nil {
		return err
	}
	if c.IfRevision != nil && len(groups) != 1 {
		return failureRun(Usage, "leasehold group apply --help",
			"--if-revision applies to one group, and there are %d in %s", len(groups),
			strings.Join(c.Files.Files, " and "))
	}
	var changes []groupChange
	for _, g := range groups {
		ch, err := inv.planChange(ctx, g)
		if err == nil {
			err = inv.refuseIfDeleting(ch, c.DryRun)
		}
		if err != nil {
			return err
		}
		if c.NoStart && !ch.isNew() {
			return failure(Usage,
				"leasehold group apply "+c.flags()+", and leasehold group stop "+ch.name+" to keep it stopped",
				"--no-start is for a new group, and group %s exists (revision %d); nothing was changed", ch.name,
				ch.rev())
		}
		if c.NoStart {
			ch.after.Unstarted = true
		}
		if c.IfRevision != nil && store.Revision(*c.IfRevision) != ch.rev() {
			return c.moved(ch)
		}
		changes = append(changes, ch)
	}
	if err := inv.judgeChanges(ctx, changes); err != nil {
		return err
	}
	if c.DryRun {
		return inv.dryRun(ctx, changes, c.Files)
	}
	for _, ch := range changes {
		if ch.shrinks() {
			act := ch.describeShrinking()
			if err := inv.confirm(ctx, c.Confirm, ch.name, act); err != nil {
				return err
			}
		}
	}
	return c.apply(ctx, inv, changes)
}

// apply writes the changes, reports the result for each group, and waits if requested.
func (c *GroupApply) apply(ctx context.Context, inv *Invocation, changes []groupChange) error {
	begun := inv.env.Now()
	var writes []groupChange
	for _, ch := range changes {
		if !ch.unchanged() {
			writes = append(writes, ch)
		}
	}
	var rev store.Revision
	var err error
	if len(writes) > 0 {
		if rev, err = inv.write(ctx, writes,
			"leasehold group diff "+c.flags()+", then leasehold group apply again"); err != nil {
			return err
		}
	}
	var refused error
	for i := range changes {
		ch := &changes[i]
		switch {
		case ch.unchanged():
			if err := inv.reportUnchanged(ctx, *ch, ch.rev()); err != nil {
				refused = cmp.Or(refused, err) // the first: the next command reports the others
			}
		case ch.isNew():
			fmt.Fprintf(inv.env.Stdout, "%s created rev %d\n", ch.name, rev)
			ch.groupRev = rev
		default:
			fmt.Fprintf(inv.env.Stdout, "%s changed rev %d\n", ch.name, rev)
			ch.groupRev = rev
		}
		for _, w := range ch.after.Warnings() {
			inv.warn("%s: %s", ch.name, w)
		}
	}
	if err := inv.warnOfProviders(ctx, changes); err != nil {
		return err
	}
	if err := inv.warnOfSecrets(ctx, changes); err != nil {
		return err
	}
	if refused != nil || !c.Wait {
		return refused
	}
	for _, ch := range changes {
		if err := inv.wait(ctx, awaited{spec: ch.after, since: ch.rev(), after: rev, begun: begun}); err != nil {
			return err
		}
	}
	return nil
}

// planChange returns what applying a group from a file would write. Fields that only commands set
// are kept.
func (inv *Invocation) planChange(ctx context.Context, g fileGroup) (groupChange, error) {
	ch, err := inv.readChange(ctx, g.Group.Name)
	if err != nil {
		return ch, err
	}
	if (ch.static != nil) != (g.Override != nil) {
		return ch, failure(Conflict, "run the same command again",
			"group %s: it was made static, or its static group was removed, a moment ago; nothing was changed", ch.name)
	}
	ch.after, ch.file = g.Group, &g.Entry
	if g.Override != nil {
		ch.overrideAfter = *g.Override
	}
	ch.keepState()
	if ch.broken != nil {
		inv.warnOfBroken(ch)
	}
	return ch, nil
}

func (inv *Invocation) warnOfBroken(ch groupChange) {
	inv.warn("%s: the spec at revision %d cannot be used (%s); it is replaced as a whole", ch.name, ch.groupRev,
		joined(ch.broken))
}

// refuseIfDeleting refuses a change to a group that is being deleted: the change would be lost with
// the group, although the command reported it as applied. A dry run only warns.
func (inv *Invocation) refuseIfDeleting(ch groupChange, look bool) error {
	switch {
	case !ch.after.Deleting:
		return nil
	case look:
		inv.warn("%s is being deleted: no change can be applied until it is gone", ch.name)
		return nil
	default:
		return failure(Conflict,
			"leasehold group delete "+ch.name+" --wait, which ends when it is gone, then run the same command",
			"group %s is being deleted, and this change would be deleted with it; nothing was changed", ch.name)
	}
}

func (c *GroupApply) moved(ch groupChange) error {
	what := fmt.Sprintf("group %s is at revision %d, not %d", ch.name, ch.rev(), *c.IfRevision)
	switch {
	case ch.isNew():
		what = fmt.Sprintf("group %s does not exist, and revision %d was expected", ch.name, *c.IfRevision)
	case *c.IfRevision == 0:
		what = fmt.Sprintf("group %s already exists, at revision %d", ch.name, ch.rev())
	}
	return failure(Conflict, fmt.Sprintf("leasehold group apply %s --dry-run", c.flags()),
		"%s: the other edit stands, and nothing was written", what)
}

// warnOfProviders warns if no running coordinator has what a group names: its provider, load
// balancers and authorities.
func (inv *Invocation) warnOfProviders(ctx context.Context, changes []groupChange) error {
	listing, err := inv.list(ctx, inv.keys().Of(store.KindReplicas), 0)
	if err != nil {
		return err
	}
	replicas, err := decodeAll[store.Replica](listing)
	if err != nil {
		return err
	}
	had := foresee.HadBy(replicas)
	for _, ch := range changes {
		for _, lacks := range had.Lacks(&ch.after) {
			inv.warn("%s: %s", ch.name, lacks)
		}
		for _, w := range had.Foreign(&ch.after) {
			inv.warn("%s: %s", ch.name, w)
		}
	}
	return nil
}
