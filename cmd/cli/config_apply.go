package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/groupdiff"
	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/store"
)

// Config are the commands about static groups, the shard's settings, and the sources of values.
type Config struct {
	Apply ConfigApply `cmd:"" help:"Apply files of static groups to the shard."`
	Set   ConfigSet   `cmd:"" help:"Change settings of the shard."`
	Show  ConfigShow  `cmd:"" help:"Show this program's settings and their sources, the shard's settings, and its static groups."`
}

// ConfigApply is the command config apply (REC-6).
type ConfigApply struct {
	Files
	DryRun  bool     `help:"Show what would change, without changing anything."`
	Prune   bool     `help:"Delete static groups that are not in the files, and all their instances."`
	Confirm []string `help:"Confirm a smaller size or, with --prune, a deletion, by naming the group." placeholder:"NAME"`
}

// Run writes the groups in the files to static/. All are written, or none.
func (c *ConfigApply) Run(ctx context.Context, inv *Invocation) error {
	changes, err := c.changes(ctx, inv)
	if err != nil {
		return err
	}
	if err := inv.judgeChanges(ctx, changes); err != nil {
		return err
	}
	if c.DryRun {
		return c.dryRun(inv, changes)
	}
	var writes []groupChange
	for _, ch := range changes {
		if ch.staticUnchanged() {
			continue
		}
		act := ch.toConfirm()
		if act != "" {
			if err := inv.confirm(ctx, c.Confirm, ch.name, act); err != nil {
				return err
			}
		}
		writes = append(writes, ch)
	}
	if len(writes) > groupfile.MaxGroups {
		return failure(Usage, "apply without --prune first",
			"there are %d groups to write, and at most %d can be written at once", len(writes), groupfile.MaxGroups)
	}
	var rev store.Revision
	if len(writes) > 0 {
		if rev, err = inv.write(ctx, writes,
			"leasehold config apply "+c.flags()+" --dry-run, then leasehold config apply again"); err != nil {
			return err
		}
	}
	var refused error
	for _, ch := range changes {
		if ch.staticUnchanged() {
			refused = cmp.Or(refused, inv.reportUnchanged(ctx, ch, ch.staticRev))
		} else {
			fmt.Fprintln(inv.env.Stdout, ch.became(rev))
		}
		for _, w := range ch.after.Warnings() {
			inv.warn("%s: %s", ch.name, w)
		}
	}
	return cmp.Or(refused, inv.warnOfProviders(ctx, changes))
}

// changes returns the changes for the files: the groups in them and, with --prune, the static
// groups that are not.
func (c *ConfigApply) changes(ctx context.Context, inv *Invocation) ([]groupChange, error) {
	files, err := inv.parseFiles(c.Files)
	if err != nil {
		return nil, err
	}
	groups, err := judgeFiles(c.Files, files, nil)
	if err != nil {
		return nil, err
	}
	var changes []groupChange
	for _, g := range groups {
		ch, err := inv.planStatic(ctx, g.Group)
		if err == nil {
			err = inv.refuseIfDeleting(ch, c.DryRun)
		}
		if err != nil {
			return nil, err
		}
		ch.file = &g.Entry
		changes = append(changes, ch)
	}
	if !c.Prune {
		return changes, nil
	}
	listing, err := inv.list(ctx, inv.keys().Of(store.KindStatic), 0)
	if err != nil {
		return nil, err
	}
	for _, kv := range listing.KVs {
		_, name, _ := inv.keys().Split(kv.Key)
		if slices.ContainsFunc(changes, func(ch groupChange) bool { return ch.name == name }) {
			continue
		}
		ch, err := inv.readChange(ctx, name)
		if err != nil {
			return nil, err
		}
		if ch.static == nil {
			continue // it was removed in the meantime
		}
		gone := *ch.static
		gone.Deleting = true
		ch.staticAfter = &gone
		ch.after = ch.inForceWith(gone)
		changes = append(changes, ch)
	}
	return changes, nil
}

// planStatic returns the change of static/ for a group from a file. Its override stays.
func (inv *Invocation) planStatic(ctx context.Context, g store.Group) (groupChange, error) {
	ch, err := inv.readChange(ctx, g.Name)
	var unusable *Failure
	if errors.As(err, &unusable) && unusable.Code == Failed && ch.staticRev != 0 && ch.static == nil {
		inv.warn("%s; it is replaced as a whole", unusable.What)
		err = nil
	}
	if err != nil {
		return ch, err
	}
	if ch.static != nil {
		g.OperatorState = ch.static.OperatorState
	}
	ch.staticAfter = &g
	switch {
	case ch.staticRev == 0 && ch.groupRev != 0:
		return ch, notStatic(ch)
	case ch.broken != nil:
		inv.warn("%s: its override of revision %d cannot be used (%s): it stays stored and is still not in force",
			ch.name, ch.groupRev, joined(ch.broken))
	}
	ch.after = ch.inForceWith(g)
	if ch.lostOverride != nil {
		inv.warn("%s: %s; until then the last accepted spec stays in force", ch.name, ch.lostOverride.Missing(*ch.before))
	}
	if err := ch.after.Validate(); err != nil {
		return ch, failure(Failed, "leasehold group edit "+ch.name,
			"group %s: with its override (revision %d) it would be invalid: %s", ch.name, ch.groupRev, joined(err))
	}
	return ch, nil
}

// inForceWith returns the spec in force with this static group.
func (c groupChange) inForceWith(static store.Group) store.Group {
	if c.groupRev == 0 && c.lostOverride == nil {
		return static
	}
	return c.overrideBefore.Over(static)
}

// notStatic returns why a group that is in groups/ as a whole cannot become static: its spec cannot
// be expressed as an override.
func notStatic(ch groupChange) error {
	next := fmt.Sprintf("take %s out of the file, or leasehold group delete %s and, when it is gone, "+
		"leasehold config apply again", ch.name, ch.name)
	if ch.broken != nil {
		return failure(Failed, next,
			"group %s is in groups/ already (revision %d), with a spec that cannot be used: %s", ch.name, ch.groupRev,
			joined(ch.broken))
	}
	var fields []string
	for _, path := range groupfile.NotBesideStatic(groupdiff.Paths(*ch.before)) {
		name, rest, _ := strings.Cut(path, ".")
		if name == "template" {
			name, _, _ = strings.Cut("template."+rest, "[")
		}
		if name, _, _ = strings.Cut(name, "["); !slices.Contains(fields, name) {
			fields = append(fields, name)
		}
	}
	return failure(Failed, next,
		"group %s is in groups/ already (revision %d), as a complete spec: only size, "+
			"template.instance_type and vars of a static group can be overridden, and it has %s (REC-6); nothing was changed",
		ch.name, ch.groupRev, strings.Join(fields, ", "))
}

// staticUnchanged reports whether static/ has the group already.
func (c groupChange) staticUnchanged() bool {
	return c.static != nil && string(store.Encode(*c.static)) == string(store.Encode(*c.staticAfter))
}

// pruned reports whether the group is deleted because it is missing from the files.
func (c groupChange) pruned() bool {
	return c.staticAfter.Deleting && (c.static == nil || !c.static.Deleting)
}

// toConfirm returns what an operator must confirm; "" if nothing.
func (c groupChange) toConfirm() string {
	switch {
	case c.pruned():
		return fmt.Sprintf("group %s is not in the files: it and its instances (%s wanted) are deleted permanently",
			c.name, isAre(c.after.Size))
	case c.shrinks():
		return c.describeShrinking()
	default:
		return ""
	}
}

// became says what the command did with the group.
func (c groupChange) became(rev store.Revision) string {
	switch {
	case c.pruned():
		return fmt.Sprintf("%s deleting rev %d", c.name, rev)
	case c.isNew():
		return fmt.Sprintf("%s created rev %d", c.name, rev)
	default:
		return fmt.Sprintf("%s changed rev %d", c.name, rev)
	}
}

// dryRun shows what would change.
func (c *ConfigApply) dryRun(inv *Invocation, changes []groupChange) error {
	for _, ch := range changes {
		switch {
		case ch.staticUnchanged():
			fmt.Fprintf(inv.env.Stdout, "%s: unchanged, rev %d\n", ch.name, ch.staticRev)
		case ch.pruned():
			fmt.Fprintf(inv.env.Stdout, "%s: rev %d, would be deleted\n", ch.name, ch.staticRev)
		case ch.isNew():
			fmt.Fprintf(inv.env.Stdout, "%s: new, there is no such group\n", ch.name)
		default:
			fmt.Fprintf(inv.env.Stdout, "%s: rev %d\n", ch.name, ch.staticRev)
		}
		if err := writeChanges(inv, ch.static, *ch.staticAfter); err != nil {
			return err
		}
		for _, w := range ch.after.Warnings() {
			inv.warn("%s: %s", ch.name, w)
		}
	}
	fmt.Fprintln(inv.env.Stdout, "Nothing changed.")
	return nil
}
