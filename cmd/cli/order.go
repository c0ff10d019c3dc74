package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// request returns an order to the leader from the user of this command (REC-16).
func (s *Session) request(kind store.RequestKind, group, instance string) store.Request {
	return store.Request{
		Schema: store.Schema, ID: s.env.RandomID(), Kind: kind, Group: group, Instance: instance,
		By: s.who(), At: s.env.Now().UTC(),
	}
}

// leave writes an order for the leader, if the conditions still hold. The leader carries it out in
// the transaction that removes it, so it happens once. gone is the error text if a condition no
// longer holds.
func (s *Session) leave(ctx context.Context, r store.Request, holds []store.Condition, gone string) error {
	if s.api != nil && s.api.once != "" {
		r.ID = s.api.once
		holds = append([]store.Condition{store.Absent(s.keys().Gone(s.keys().Request(r.ID)))}, holds...)
	}
	key := s.keys().Request(r.ID)
	_, err := s.commit(ctx, "give order", store.Txn{
		Conditions: append([]store.Condition{store.Absent(key)}, holds...),
		Writes:     []store.Write{store.Put(key, store.Encode(r))},
	})
	if errors.Is(err, store.ErrConflict) {
		if given, readErr := s.givenBefore(ctx); given || readErr != nil {
			return readErr
		}
		if s.api != nil && s.api.based != nil {
			s.api.raced = true
			gone = "the record was changed in the meantime"
		}
		return failure(Conflict, "check leasehold status, then run the command again", "%s; no order was given", gone)
	}
	if err == nil && s.api != nil {
		s.api.ordered = r.ID
	}
	return err
}

// ordersOn returns the condition of an order about a record: it still exists and, if the order is
// based on a revision, is still at that.
func (s *Session) ordersOn(key string, read store.Revision) store.Condition {
	if s.api != nil && s.api.based != nil {
		return store.At(key, read)
	}
	return store.Exists(key)
}

// ordered reports that an order was written, its effect, and how to watch it.
func (s *Session) ordered(ctx context.Context, r store.Request, about, effect string) error {
	fmt.Fprintf(s.env.Stdout, "%s %s ordered %s\n", about, r.Kind, r.ID)
	watch := "leasehold events --follow"
	if r.Group != "" {
		watch = "leasehold events -g " + r.Group + " --follow"
	}
	s.note("%s; watch it with: %s", effect, watch)
	return s.warnWithoutLeader(ctx)
}

// warnWithoutLeader warns that an order has to wait for a leader.
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

// orderGroup writes an order about a group.
func (s *Session) orderGroup(ctx context.Context, g group, kind store.RequestKind, effect string) error {
	if err := s.checkBaseOf("group "+g.Name, g.Revision()); err != nil {
		return err
	}
	r := s.request(kind, g.Name, "")
	key := s.keys().Status(g.Name)
	if !g.Status.Present() {
		key = s.keys().Group(g.Name)
		if g.Stored.Modified == 0 {
			key = s.keys().Static(g.Name)
		}
	}
	if err := s.leave(ctx, r, []store.Condition{store.Exists(key)},
		fmt.Sprintf("group %s was removed in the meantime", g.Name)); err != nil {
		return err
	}
	return s.ordered(ctx, r, g.Name, effect)
}
