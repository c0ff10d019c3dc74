package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// request returns an order to the leader from the user of this command (REC-16).
func (inv *Invocation) request(kind store.RequestKind, group, instance string) store.Request {
	return store.Request{
		Schema: store.Schema, ID: inv.env.RandomID(), Kind: kind, Group: group, Instance: instance,
		By: inv.who(), At: inv.env.Now().UTC(),
	}
}

// leave writes an order for the leader, if the conditions still hold. The leader carries it out in
// the transaction that removes it, so it happens once. gone is the error text if a condition no
// longer holds.
func (inv *Invocation) leave(ctx context.Context, r store.Request, holds []store.Condition, gone string) error {
	if inv.api != nil && inv.api.once != "" {
		r.ID = inv.api.once
		holds = append([]store.Condition{store.Absent(inv.keys().Gone(inv.keys().Request(r.ID)))}, holds...)
	}
	key := inv.keys().Request(r.ID)
	_, err := inv.commit(ctx, "give order", store.Txn{
		Conditions: append([]store.Condition{store.Absent(key)}, holds...),
		Writes:     []store.Write{store.Put(key, store.Encode(r))},
	})
	if errors.Is(err, store.ErrConflict) {
		if given, readErr := inv.givenBefore(ctx); given || readErr != nil {
			return readErr
		}
		if inv.api != nil && inv.api.based != nil {
			inv.api.raced = true
			gone = "the record was changed in the meantime"
		}
		return failure(Conflict, "check leasehold status, then run the command again", "%s; no order was given", gone)
	}
	if err == nil && inv.api != nil {
		inv.api.ordered = r.ID
	}
	return err
}

// ordersOn returns the condition of an order about a record: it still exists and, if the order is
// based on a revision, is still at that.
func (inv *Invocation) ordersOn(key string, read store.Revision) store.Condition {
	if inv.api != nil && inv.api.based != nil {
		return store.At(key, read)
	}
	return store.Exists(key)
}

// ordered reports that an order was written, its effect, and how to watch it.
func (inv *Invocation) ordered(ctx context.Context, r store.Request, about, effect string) error {
	fmt.Fprintf(inv.env.Stdout, "%s %s ordered %s\n", about, r.Kind, r.ID)
	watch := "leasehold events --follow"
	if r.Group != "" {
		watch = "leasehold events -g " + r.Group + " --follow"
	}
	inv.note("%s; watch it with: %s", effect, watch)
	return inv.warnWithoutLeader(ctx)
}

// warnWithoutLeader warns that an order has to wait for a leader.
func (inv *Invocation) warnWithoutLeader(ctx context.Context) error {
	leaders, err := inv.list(ctx, inv.keys().Of(store.KindLeader), 0)
	if err != nil {
		return err
	}
	if len(leaders.KVs) == 0 {
		inv.warn("no coordinator is running: the order is carried out when one is")
	}
	return nil
}

// orderGroup writes an order about a group.
func (inv *Invocation) orderGroup(ctx context.Context, g group, kind store.RequestKind, effect string) error {
	if err := inv.checkBaseOf("group "+g.Name, g.Revision()); err != nil {
		return err
	}
	r := inv.request(kind, g.Name, "")
	key := inv.keys().Status(g.Name)
	if !g.Status.Present() {
		key = inv.keys().Group(g.Name)
		if g.Stored.Modified == 0 {
			key = inv.keys().Static(g.Name)
		}
	}
	if err := inv.leave(ctx, r, []store.Condition{store.Exists(key)},
		fmt.Sprintf("group %s was removed in the meantime", g.Name)); err != nil {
		return err
	}
	return inv.ordered(ctx, r, g.Name, effect)
}
