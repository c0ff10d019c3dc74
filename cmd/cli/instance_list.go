package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// InstanceList is the command instance list.
type InstanceList struct {
	Group     string `short:"g" help:"Only those of this group." placeholder:"NAME"`
	AllShards bool   `help:"The instances of every shard in this etcd."`
}

// Run lists the instances, each with its session. As JSON they are the records as stored.
func (c *InstanceList) Run(ctx context.Context, s *Session) error {
	names, err := s.shards(ctx, c.AllShards)
	if err != nil {
		return err
	}
	raw := []json.RawMessage{}
	t := output.Table{Columns: []output.Column{
		{Title: "INSTANCE"},
		{Title: "SHARD", Wide: !c.AllShards},
		{Title: "GROUP", Wide: true},
		{Title: "SLOT", Right: true},
		{Title: "PHASE"},
		{Title: "NOW", Cut: true},
		{Title: "AGENT"},
		{Title: "ZONE"},
		{Title: "TEMPLATE"},
		{Title: "REPLACES", Wide: true},
		{Title: "ADDRESS", Wide: true},
		{Title: "REF", Wide: true},
		{Title: "LAST", Wide: true},
		{Title: "IN-PHASE"},
		{Title: "AGE"},
	}}
	for _, name := range names {
		keys := store.KeysOf(name)
		listing, all, below, err := s.instancesOf(ctx, keys, c.Group)
		if err != nil {
			return err
		}
		sessions, err := s.sessionsOf(ctx, keys.Of(store.KindAlive)+below, listing.Revision)
		if err != nil {
			return err
		}
		for n, kv := range listing.KVs { // in the order of the keys, as etcdctl shows them
			if c.Group == "" || all[n].Record.Group == c.Group {
				raw = append(raw, asJSON(kv.Value))
			}
		}
		slices.SortStableFunc(all, func(a, b store.Versioned[store.Instance]) int {
			if d := strings.Compare(a.Record.Group, b.Record.Group); d != 0 {
				return d
			}
			return a.Record.Slot - b.Record.Slot
		})
		for _, v := range all {
			if i := v.Record; c.Group == "" || i.Group == c.Group {
				t.Add(instanceRow(s, name, i, sessions[i.ID])...)
			}
		}
	}
	if c.Group != "" && len(t.Rows) == 0 {
		if err := s.knownGroup(ctx, names, c.Group); err != nil {
			return err
		}
	}
	if done, err := s.records(raw); done {
		return err
	}
	if len(t.Rows) == 0 {
		s.note("no instances")
		return nil
	}
	return t.Write(s.screen(), s.wide())
}

func instanceRow(s *Session, shard string, i store.Instance, a *store.Alive) []string {
	now := s.env.Now()
	return []string{
		i.ID, shard, i.Group, slotOf(i), string(i.Phase), instanceNow(i, now), agentState(a), orDash(i.Zone), i.Template, orDash(i.Replaces),
		orDash(i.Address), orDash(i.Ref), orDash(strings.TrimSpace(i.Last.Rule + " " + i.Last.Why)), output.Age(now, i.Since), output.Age(now, i.Created),
	}
}

// slotOf is the number of an instance's slot; "-" for one on demand, which has none.
func slotOf(i store.Instance) string {
	if i.Slot < 0 {
		return "-"
	}
	return fmt.Sprint(i.Slot)
}

// agentState is the state of the agent's stream; "-" without a session.
func agentState(a *store.Alive) string {
	if a == nil {
		return "-"
	}
	return string(a.State)
}

// instancesOf reads the instances of a group, "" for all, and perhaps some others; below is how all their names begin. Those of a group are named after it,
// but for machines that were adopted under a name that somebody else gave them: so all are read if the group has more than are found.
func (s *Session) instancesOf(ctx context.Context, keys store.Keys, group string) (l store.Listing, all []store.Versioned[store.Instance], below string, err error) {
	if isName(group) {
		below = group + "-"
	}
	for {
		if l, err = s.list(ctx, keys.Of(store.KindInstances)+below, 0); err != nil {
			return l, nil, "", err
		}
		if all, err = decodeInstances(l); err != nil || below == "" {
			return l, all, "", err
		}
		status, _, err := findRecord[store.Status](ctx, s, keys.Status(group))
		if err != nil {
			return l, nil, "", err
		}
		if !lacks(all, group, status.Record) {
			return l, all, below, nil
		}
		below = ""
	}
}

// lacks says whether a group has more instances, by its status, than there are among these.
func lacks(all []store.Versioned[store.Instance], group string, status store.Status) bool {
	left := status.OnDemand
	for _, n := range status.Phases {
		left += n
	}
	for _, v := range all {
		if v.Record.Group == group {
			left--
		}
	}
	return left > 0
}

// sessionsOf reads the sessions below a prefix, by instance.
func (s *Session) sessionsOf(ctx context.Context, prefix string, at store.Revision) (map[string]*store.Alive, error) {
	l, err := s.list(ctx, prefix, at)
	if err != nil {
		return nil, err
	}
	all, err := decodeAll[store.Alive](l)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*store.Alive, len(all))
	for i := range all {
		byID[all[i].Record.Instance] = &all[i].Record
	}
	return byID, nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
