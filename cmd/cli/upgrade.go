package cli

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// Upgrades are the commands about upgrades of Leasehold itself.
type Upgrades struct {
	Check UpgradeCheck `cmd:"" help:"Check whether Leasehold can be upgraded, and list the steps."`
	Key   UpgradeKey   `cmd:"" help:"Make a key pair to sign agents, without a coordinator or etcd."`
	Sign  UpgradeSign  `cmd:"" help:"Sign agents, for machines that install only signed versions, without a coordinator or etcd."`
}

// UpgradeCheck is the command upgrade check.
type UpgradeCheck struct {
	To string `help:"Version to upgrade to (default: this program's)." placeholder:"VERSION"`
}

// Run shows what prevents the upgrade, and its steps.
func (c *UpgradeCheck) Run(ctx context.Context, inv *Invocation) error {
	to := c.To
	if to == "" {
		to = inv.env.Version
	}
	members := inv.askMembers(ctx)
	state, err := inv.readState(ctx, inv.flags.Shard)
	if err != nil {
		return err
	}
	state.Etcd = <-members
	found, err := inv.formats(ctx)
	if err != nil {
		return err
	}
	release := story.Release{Version: to}
	if to == inv.env.Version {
		release.Formats = &story.Formats{
			Schema: store.Schema, Oldest: protocol.Oldest, Newest: protocol.Newest, Etcd: inv.env.Etcd,
		}
	}
	u := story.PlanUpgrade(&state.Shard, release, found, inv.env.Now())
	done, err := inv.records(u)
	if err != nil {
		return err
	}
	if !done {
		if err := inv.showUpgrade(u); err != nil {
			return err
		}
	}
	if n := len(u.Against); n > 0 {
		return failure(Failed, "fix the problems above, then run this command again",
			"the upgrade to %s cannot begin: %s", output.OneLine(to), counted(n, "problem", "problems"))
	}
	return nil
}

// formats reads which schemas the records have, and what agents speak.
func (inv *Invocation) formats(ctx context.Context) (found story.Found, err error) {
	keys := inv.keys()
	kinds := append(store.DurableKinds(), store.KindReplicas, store.KindAlive)
	for _, kind := range kinds {
		prefix := keys.Of(kind)
		if kind == store.KindShard || kind == store.KindServed {
			prefix = keys.Prefix() + kind
		}
		l, err := inv.list(ctx, prefix, 0)
		if err != nil {
			return found, err
		}
		for _, kv := range l.KVs {
			if is, _, _ := keys.Split(kv.Key); is != kind {
				continue
			}
			// Status reports records that cannot be read at all.
			if schema, err := store.SchemaOf(kv.Value); err == nil && schema > store.Schema {
				found.Newer = append(found.Newer, story.Newer{Key: kv.Key[len(keys.Prefix()):], Schema: schema})
			}
			if v, err := store.Decode[store.Alive](kv); err == nil && kind == store.KindAlive {
				found.Agents = append(found.Agents, v.Record)
			}
		}
	}
	return found, nil
}

func (inv *Invocation) showUpgrade(u story.Upgrade) error {
	scr := inv.screen()
	kind := "upgrade"
	if u.Down {
		kind = "downgrade, if CHANGELOG.md names no change of formats in between,"
	}
	if len(u.Steps) == 0 {
		fmt.Fprintf(scr.W, "%s to %s: nothing to do\n", kind, output.OneLine(u.To))
	} else {
		fmt.Fprintf(scr.W, "%s to %s, in this order\n", kind, output.OneLine(u.To))
		t := output.Table{Columns: []output.Column{
			{Title: "STEP", Right: true}, {Title: "WHAT"}, {Title: "FROM"}, {Title: "HOW", Cut: true},
		}}
		for i, step := range u.Steps {
			t.Add(fmt.Sprint(i+1), output.OneLine(step.What), output.OneLine(step.From), step.How)
		}
		if err := t.Write(scr, inv.wide()); err != nil {
			return err
		}
	}
	if u.Unchecked {
		inv.note("formats of records, the agents' protocol and etcd were not compared: leasehold upgrade check of %s itself "+
			"does that", output.OneLine(u.To))
	}
	return writeProblems(scr, u.Against)
}
