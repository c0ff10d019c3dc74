package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// request is an order to the leader from whoever runs this command (REC-16).
func (s *Session) request(kind store.RequestKind, group, instance string) store.Request {
	return store.Request{Schema: store.Schema, ID: s.env.RandomID(), Kind: kind, Group: group, Instance: instance, By: s.who(), At: s.env.Now().UTC()}
}

// leave leaves an order for the leader, if the condition still holds. It is carried out by whoever leads then, in the transaction
// that removes it, so that it happens once. gone is what it means if the condition does not hold any more.
func (s *Session) leave(ctx context.Context, r store.Request, holds []store.Condition, gone string) error {
	key := s.keys().Request(r.ID)
	_, err := s.commit(ctx, "give order", store.Txn{
		Conditions: append([]store.Condition{store.Absent(key)}, holds...),
		Writes:     []store.Write{store.Put(key, store.Encode(r))},
	})
	if errors.Is(err, store.ErrConflict) {
		return failure(Conflict, "check leasehold status, then run the command again", "%s; no order was given", gone)
	}
	return err
}

// ordered tells the operator that an order was left, what follows from it, and where that can be watched.
func (s *Session) ordered(ctx context.Context, r store.Request, about, effect string) error {
	fmt.Fprintf(s.env.Stdout, "%s %s ordered %s\n", about, r.Kind, r.ID)
	watch := "leasehold events --follow"
	if r.Group != "" {
		watch = "leasehold events -g " + r.Group + " --follow"
	}
	s.note("%s; watch it with: %s", effect, watch)
	return s.warnWithoutLeader(ctx)
}

// warnWithoutLeader says that what was asked for has to wait.
func (s *Session) warnWithoutLeader(ctx context.Context) error {
	leaders, err := s.list(ctx, s.keys().Of(store.KindLeader), 0)
	if err != nil {
		return err
	}
	if len(leaders.KVs) == 0 {
		s.warn("no coordinator is running: the order is carried out when one is")
	}
	return nil
}

// orderGroup leaves an order about a group.
func (s *Session) orderGroup(ctx context.Context, g group, kind store.RequestKind, effect string) error {
	r := s.request(kind, g.Name, "")
	key := s.keys().Status(g.Name)
	if !g.Status.Present() {
		key = s.keys().Group(g.Name)
		if g.Stored.Modified == 0 {
			key = s.keys().Static(g.Name)
		}
	}
	if err := s.leave(ctx, r, []store.Condition{store.Exists(key)}, fmt.Sprintf("group %s was removed in the meantime", g.Name)); err != nil {
		return err
	}
	return s.ordered(ctx, r, g.Name, effect)
}
