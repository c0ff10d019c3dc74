package cli

import (
	"context"
	"encoding/json"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// GroupList is the command group list.
type GroupList struct {
	AllShards bool `help:"List the groups of every shard in this etcd."`
}

// Run lists the groups. As JSON they are the specs as stored.
func (c *GroupList) Run(ctx context.Context, inv *Invocation) error {
	names, err := inv.shards(ctx, c.AllShards)
	if err != nil {
		return err
	}
	raw := []json.RawMessage{}
	t := output.Table{Columns: []output.Column{
		{Title: "GROUP"},
		{Title: "SHARD", Wide: !c.AllShards},
		{Title: "STATE"},
		{Title: "HEALTH", Right: true},
		{Title: "RUN/SIZE", Right: true},
		{Title: "PROVIDER"},
		{Title: "NOW", Cut: true},
		{Title: "STATIC", Wide: true},
		{Title: "SPEC", Right: true, Wide: true},
		{Title: "FOR"},
	}}
	for _, name := range names {
		all, _, err := inv.groups(ctx, store.KeysOf(name), 0)
		if err != nil {
			return err
		}
		for _, g := range all {
			if !g.Gone() {
				raw = append(raw, recordOf(g))
			}
			v := story.RowOf(g)
			provider := g.Spec.Provider
			if provider == "" {
				provider = "-"
			}
			t.Add(g.Name, g.Shard, v.State, v.Health, v.Run, provider, v.Now, yesOrDash(g.IsStatic()),
				revision(g.Revision()), output.Age(inv.env.Now(), v.Since))
		}
	}
	if done, err := inv.records(raw); done {
		return err
	}
	if len(t.Rows) == 0 {
		inv.note("no groups; create one with: leasehold group apply -f FILE")
		return nil
	}
	return t.Write(inv.screen(), inv.wide())
}
