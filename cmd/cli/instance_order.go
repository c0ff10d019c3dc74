package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// InstanceReplace is the command instance replace.
type InstanceReplace struct {
	Instance string `arg:"" help:"ID of the instance."`
}

// Run orders the replacement.
func (c *InstanceReplace) Run(ctx context.Context, s *Session) error {
	return s.order(ctx, c.Instance, store.RequestReplace, "a replacement is made first; once it is healthy, this instance goes")
}

// InstanceDelete is the command instance delete.
type InstanceDelete struct {
	Instance string   `arg:"" help:"ID of the instance."`
	Confirm  []string `help:"Confirm that this instance may go." placeholder:"ID"`
}

// Run orders the removal.
func (c *InstanceDelete) Run(ctx context.Context, s *Session) error {
	v, _, err := s.instance(ctx, c.Instance)
	if err != nil {
		return err
	}
	act := fmt.Sprintf("instance %s (%s) of group %s goes now, before there is another in its slot", v.Record.ID, v.Record.Phase, v.Record.Group)
	if err := s.confirm(ctx, c.Confirm, c.Instance, act); err != nil {
		return err
	}
	return s.order(ctx, c.Instance, store.RequestDelete, "it is stopped and removed; then its slot is filled again")
}

// order leaves an order for the leader (REC-16). It is carried out by whoever leads then, in the transaction that
// removes it, so that it happens once.
func (s *Session) order(ctx context.Context, id string, kind store.RequestKind, effect string) error {
	v, _, err := s.instance(ctx, id)
	if err != nil {
		return err
	}
	if v.Record.Phase == store.Deleting {
		s.note("%s is being deleted already", id)
		return nil
	}
	by := s.env.User
	if name, _, _ := strings.Cut(s.flags.User, ":"); name != "" {
		by = name
	}
	r := store.Request{
		Schema: store.Schema, ID: s.env.RandomID(), Kind: kind, Group: v.Record.Group, Instance: id, By: by, At: s.env.Now().UTC(),
	}
	key := s.keys().Request(r.ID)
	_, err = s.commit(ctx, "give order", store.Txn{
		Conditions: []store.Condition{store.Absent(key), store.Exists(v.Key)},
		Writes:     []store.Write{store.Put(key, store.Encode(r))},
	})
	if err != nil {
		return s.orderLost(id, err)
	}
	fmt.Fprintf(s.env.Stdout, "%s %s ordered %s\n", id, kind, r.ID)
	s.note("%s; watch it with: leasehold events -g %s --follow", effect, v.Record.Group)
	leaders, err := s.list(ctx, s.keys().Of(store.KindLeader), 0)
	if err != nil {
		return err
	}
	if len(leaders.KVs) == 0 {
		s.warn("no coordinator is at work: the order is carried out when one is")
	}
	return nil
}

// orderLost says why an order was not left: the instance went between reading and writing.
func (s *Session) orderLost(id string, err error) error {
	if errors.Is(err, store.ErrConflict) {
		return failure(Conflict, "leasehold instance list", "instance %s went away meanwhile; no order was left", id)
	}
	return err
}
