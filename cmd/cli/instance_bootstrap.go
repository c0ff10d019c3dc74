package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/bootstrap"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/userdata"
	"github.com/leasehold/leasehold/store"
)

// InstanceBootstrap is the command instance bootstrap (PROV-9).
type InstanceBootstrap struct {
	New         bool          `default:"true" help:"Make a new instance on demand, whose machine you set up (the default)."`
	Group       string        `short:"g" required:"" help:"Group whose workload, variables and checks it gets." placeholder:"NAME"`
	Zone        string        `help:"Zone to record it in." placeholder:"ZONE"`
	Valid       time.Duration `default:"1h" help:"How long the script can be used to join."`
	CloudConfig bool          `help:"Print a cloud-config instead of a shell script."`
}

// machineDocument is what a machine needs, in JSON.
type machineDocument struct {
	Instance  string               `json:"instance"`
	Until     time.Time            `json:"valid_until"`
	Bootstrap provider.Bootstrap   `json:"bootstrap"`
	Agent     provider.AgentSource `json:"agent"`
}

// bootstrapWait is how long the command waits for the leader, unless --timeout says otherwise.
const bootstrapWait = 30 * time.Second

// Run orders an instance and prints the script for its machine. The join token in it is made here,
// and etcd only gets its hash.
func (c *InstanceBootstrap) Run(ctx context.Context, inv *Invocation) error {
	g, err := inv.group(ctx, c.Group)
	if err != nil {
		return err
	}
	if g.Leaving() || g.Bad == nil && g.Spec.Stopped {
		return failure(Failed, "leasehold group show "+c.Group,
			"group %s is stopped or being deleted: no instance is created in it, and no order was given", c.Group)
	}
	switch {
	case c.Valid < time.Minute || c.Valid > store.MaxBootstrapValid:
		return failure(Usage, "leasehold instance bootstrap --help", "--valid: %s: must be 1m to %s", c.Valid,
			store.Duration(store.MaxBootstrapValid))
	case c.CloudConfig && inv.documents():
		return failure(Usage, "leasehold instance bootstrap --help", "--cloud-config and -o %s exclude each other",
			inv.flags.Output)
	}
	shard, err := c.shard(ctx, inv)
	if err != nil {
		return err
	}
	token := store.NewToken()
	rec, err := c.order(ctx, inv, store.TokenHash(token))
	if err != nil {
		return err
	}
	return c.print(inv, shard, rec, token)
}

// shard reads the shard's data for the machine. A machine can join only over encrypted streams.
func (c *InstanceBootstrap) shard(ctx context.Context, inv *Invocation) (bootstrap.Shard, error) {
	v, err := inv.readShard(ctx)
	if err != nil {
		return bootstrap.Shard{}, err
	}
	replicas, err := readKind[store.Replica](ctx, inv, inv.keys(), store.KindReplicas, 0)
	if err != nil {
		return bootstrap.Shard{}, err
	}
	shard := bootstrap.Shard{ID: v.Record.ID, Name: inv.flags.Shard, Settings: v.Record.Settings, Replicas: replicas}
	for _, id := range slices.Sorted(maps.Keys(replicas)) {
		if shard.CA == "" {
			shard.CA = replicas[id].CA
		}
	}
	switch {
	case len(shard.Coordinators()) == 0:
		return shard, failure(Failed, "leasehold status", "no coordinator serves agents: the machine could not join")
	case shard.CA == "":
		return shard, failure(Failed, "leasehold pki init --help",
			"the coordinators have no certificate authority: a machine that is set up by hand can only "+
				"join where streams are encrypted")
	}
	return shard, nil
}

// order makes the leader create the record, and returns it. If it fails for any reason, the order
// is withdrawn: a record that is created later would be useless, since its token is lost.
func (c *InstanceBootstrap) order(ctx context.Context, inv *Invocation, hash string) (store.Instance, error) {
	r := inv.request(store.RequestBootstrap, c.Group, "")
	r.Token, r.Valid, r.Zone = hash, store.Duration(c.Valid), c.Zone
	key := inv.keys().Request(r.ID)
	limit := inv.flags.Timeout
	if limit <= 0 {
		limit = bootstrapWait
	}
	rev, err := inv.commit(ctx, "give order", store.Txn{
		Conditions: []store.Condition{store.Absent(key)}, Writes: []store.Write{store.Put(key, store.Encode(r))},
	})
	if refused := (*Failure)(nil); errors.As(err, &refused) && refused.Code == Failed {
		return store.Instance{}, err // there is nothing to withdraw
	}
	if err == nil {
		err = c.carriedOut(ctx, inv, r, rev, limit)
	}
	if err != nil {
		return c.withdraw(context.WithoutCancel(ctx), inv, r, err)
	}
	return c.made(ctx, inv, r)
}

// carriedOut waits until the leader ends the order.
func (c *InstanceBootstrap) carriedOut(ctx context.Context, inv *Invocation, r store.Request, from store.Revision,
	limit time.Duration,
) error {
	leaders, err := inv.list(ctx, inv.keys().Of(store.KindLeader), 0)
	if err != nil {
		return err
	}
	if len(leaders.KVs) == 0 {
		inv.warn("no coordinator is running: waiting for one, at most %s", output.Span(limit))
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for b := range inv.st.Watch(waiting, inv.keys().Request(r.ID), from+1) {
		if slices.ContainsFunc(b.Events, func(e store.Event) bool { return e.Deleted }) {
			return nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return failure(Interrupted, "leasehold instance bootstrap --help",
			"stopped waiting: the order was withdrawn, and nothing was made")
	case waiting.Err() != nil:
		return failure(TimedOut, "leasehold status",
			"no leader carried the order out within %s: it was withdrawn, and nothing was made", output.Span(limit))
	default:
		return inv.unreachable("wait for the leader", store.ErrUnavailable)
	}
}

// withdraw takes an order back, and returns the error that made it necessary. If a leader was
// faster, it returns the record.
func (c *InstanceBootstrap) withdraw(ctx context.Context, inv *Invocation, r store.Request, why error) (store.Instance,
	error,
) {
	key := inv.keys().Request(r.ID)
	_, err := inv.commit(ctx, "withdraw order", store.Txn{
		Conditions: []store.Condition{store.Exists(key)}, Writes: []store.Write{store.Delete(key)},
	})
	switch {
	case err == nil:
		return store.Instance{}, why
	case errors.Is(err, store.ErrConflict):
		return c.made(ctx, inv, r)
	default:
		inv.warn("it is not known whether an instance was made: leasehold instance list -g %s shows it; "+
			"without its script it ends by itself after %s",
			c.Group, output.Span(c.Valid))
		return store.Instance{}, why
	}
}

// made returns the record that a leader made for the order, or why it refused.
func (c *InstanceBootstrap) made(ctx context.Context, inv *Invocation, r store.Request) (store.Instance, error) {
	l, err := inv.list(ctx, inv.keys().Instance(c.Group+"-x-"), 0) // the names of instances on demand
	if err != nil {
		return store.Instance{}, err
	}
	for _, kv := range l.KVs {
		if v, err := store.Decode[store.Instance](kv); err == nil && v.Record.Token == r.Token {
			return v.Record, nil
		}
	}
	entries, _, err := inv.journal(ctx, r.At.Add(-time.Hour)) // clocks differ
	if err != nil {
		return store.Instance{}, err
	}
	for _, kv := range entries {
		v, err := store.Decode[store.JournalEntry](kv)
		if err == nil && reason.IsRefusal(&v.Record) && reason.Follows(&v.Record, r.ID) {
			return store.Instance{}, failure(Failed, "leasehold group show "+c.Group, "the leader refused: %s", v.Record.Why)
		}
	}
	return store.Instance{}, failure(Failed, "leasehold events -g "+c.Group,
		"the order was not carried out, and nothing was made")
}

// print writes what the machine needs on the standard output, so that it can be piped to the
// machine.
func (c *InstanceBootstrap) print(inv *Invocation, shard bootstrap.Shard, rec store.Instance, token string) error {
	document, agent := shard.Document(rec, token), shard.Agent("")
	until := rec.Created.Add(rec.Spec.RegistrationTimeout.D())
	if done, err := inv.records(machineDocument{rec.ID, until, document, agent}); done {
		return err
	}
	script := userdata.Script
	if c.CloudConfig {
		script = userdata.CloudConfig
	}
	text, err := script(document, agent)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(inv.env.Stdout, text); err != nil {
		return fmt.Errorf("print the script: %w", err)
	}
	inv.note("instance %s of group %s awaits its machine until %s", rec.ID, rec.Group, until.UTC().Format(time.RFC3339))
	inv.note("run the script there as root, for example by piping it to: ssh root@HOST sh; " +
		"one machine can join with it, so keep it secret until then")
	if len(agent.Addresses) == 0 {
		inv.warn("no coordinator serves the agent (--downloads): the machine needs leasehold-agent on its PATH")
	}
	inv.note("watch it with: leasehold instance show %s", rec.ID)
	return nil
}
