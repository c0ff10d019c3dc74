package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// GroupDelete is the command group delete (REC-7).
type GroupDelete struct {
	Group   string   `arg:"" help:"Name of the group."`
	Wait    bool     `help:"Wait until the group and all its instances are gone."`
	Confirm []string `help:"Confirm the deletion by naming the group." placeholder:"NAME"`
}

// Run marks the group for deletion. The leader removes its instances, then the group. For that it
// needs a usable spec: if the spec is gone or invalid, a usable one is written in its place.
func (c *GroupDelete) Run(ctx context.Context, inv *Invocation) error {
	begun := inv.env.Now()
	d, err := inv.readDoomed(ctx, c.Group)
	if err != nil {
		return err
	}
	if d.already {
		fmt.Fprintf(inv.env.Stdout, "%s unchanged rev %s\n", c.Group, revision(d.rev()))
		inv.note("it is already being deleted; watch it with: leasehold events -g %s --follow", c.Group)
		d.warnOfPause(inv)
		return inv.waitFor(ctx, c.Wait, d.groupChange, begun)
	}
	if err := inv.confirm(ctx, c.Confirm, c.Group, d.act); err != nil {
		return err
	}
	again := "leasehold group show " + c.Group + ", then leasehold group delete " + c.Group
	if d.unusable {
		return inv.removeKey(ctx, d.groupChange, again)
	}
	d.after.Deleting = true
	rev, err := inv.write(ctx, []groupChange{d.groupChange}, again)
	if err != nil {
		return err
	}
	d.groupRev = rev
	fmt.Fprintf(inv.env.Stdout, "%s deleting rev %d\n", c.Group, rev)
	if d.instead != "" {
		inv.note("%s", d.instead)
	}
	d.warnOfPause(inv)
	inv.note("a coordinator now removes its instances, then the group; watch it with: leasehold events -g %s --follow",
		c.Group)
	return inv.waitFor(ctx, c.Wait, d.groupChange, begun)
}

// doomed is a group that will be deleted.
type doomed struct {
	groupChange
	already  bool
	unusable bool   // no spec with this name could ever be in force
	act      string // the consequences, for the confirmation
	instead  string // which spec replaces one that is gone or wrong
}

func (d doomed) warnOfPause(inv *Invocation) {
	if d.after.Paused {
		inv.warn("%s is paused: its instances stay until leasehold group resume %s", d.name, d.name)
	}
}

// readDoomed reads what exists of a group, even if only its status.
func (inv *Invocation) readDoomed(ctx context.Context, name string) (doomed, error) {
	d := doomed{groupChange: groupChange{name: name}}
	if !isName(name) {
		return d, inv.noGroup(ctx, name)
	}
	var err error
	if d.groupChange, err = inv.readChange(ctx, name); err != nil {
		return d, err
	}
	if !d.isNew() && (d.broken == nil || d.static != nil) {
		d.after, d.already = *d.before, d.before.Deleting
		d.act = fmt.Sprintf("group %s and its instances (%s wanted) are deleted permanently", name, isAre(d.after.Size))
		return d, nil
	}
	status, _, err := findRecord[store.Status](ctx, inv, inv.keys().Status(name))
	if err != nil {
		return d, err
	}
	if d.isNew() && !status.Present() {
		return d, inv.noGroup(ctx, name)
	}
	what := "its key in groups/ was missing"
	if d.broken != nil {
		what = fmt.Sprintf("its spec of revision %d could not be used (%s)", d.groupRev, joined(d.broken))
	}
	if accepted := status.Record.Accepted; accepted != nil {
		d.after, d.already = *accepted, accepted.Deleting
		d.act = fmt.Sprintf("group %s and its instances (%s wanted by the spec in force) are deleted permanently", name,
			isAre(accepted.Size))
		d.instead = fmt.Sprintf("%s: the spec in force, of revision %d, is written in its place, to be deleted", what,
			status.Record.AcceptedRevision)
		return d, nil
	}
	d.after = store.DefaultGroup()
	d.after.Name, d.after.Provider = name, "none"
	d.after.Complete()
	d.unusable = d.after.Validate() != nil
	d.act = fmt.Sprintf("group %s, of which no spec is in force, is deleted permanently, "+
		"with any instances that it has", name)
	d.instead = what + ", and no spec is in force: an empty one is written in its place, to be deleted"
	return d, nil
}

// removeKey removes a key that no leader could ever accept: it was written by hand, under a name
// that no group can have.
func (inv *Invocation) removeKey(ctx context.Context, c groupChange, again string) error {
	if c.groupRev == 0 {
		return failureRun(Failed, "leasehold group show "+c.name,
			"group %s has no key in groups/ to remove, and no group can have this name", c.name)
	}
	key := inv.keys().Group(c.name)
	rev, err := inv.commit(ctx, "remove group",
		store.Txn{Conditions: []store.Condition{store.At(key, c.groupRev)}, Writes: []store.Write{store.Delete(key)}})
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		return inv.conflictError(ctx, []groupChange{c}, conflict, again)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(inv.env.Stdout, "%s removed rev %d\n", c.name, rev)
	inv.note("no group can have this name, so it never had an instance: its key in groups/ is removed")
	return nil
}
