package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// Status is the command status.
type Status struct {
	AllShards bool     `help:"Show every shard in this etcd." xor:"shards"`
	Watch     bool     `short:"w" help:"Print the status, then a line for each change, until interrupted." xor:"shards"`
	Every     Interval `help:"How often --watch asks etcd (default: ${default})." default:"2s" placeholder:"DURATION"`
}

// shardState is the content of a shard at one revision, without instances.
type shardState struct {
	story.Shard

	raw statusDocument
}

// statusDocument is the status in JSON: the records as stored.
type statusDocument struct {
	Shard    string            `json:"shard"`
	Revision store.Revision    `json:"revision"`
	Record   json.RawMessage   `json:"record"`
	Served   json.RawMessage   `json:"served"`
	Backup   json.RawMessage   `json:"backup"`
	Webhooks []json.RawMessage `json:"webhooks"`
	Etcd     *store.Members    `json:"etcd,omitempty"`
	Leader   json.RawMessage   `json:"leader"`
	Replicas []json.RawMessage `json:"replicas"`
	Groups   []json.RawMessage `json:"groups"`
	Status   []json.RawMessage `json:"status"`
	Strays   []json.RawMessage `json:"strays"`
	Requests []json.RawMessage `json:"requests"`
	Health   health            `json:"health"`
	Problems []problem         `json:"problems"`
}

// Run shows the status.
func (c *Status) Run(ctx context.Context, inv *Invocation) error {
	if c.Watch {
		return inv.watchStatus(ctx, c.Every.D())
	}
	names, err := inv.shards(ctx, c.AllShards)
	if err != nil {
		return err
	}
	now := inv.env.Now()
	members := inv.askMembers(ctx)
	var documents []statusDocument
	for i, name := range names {
		state, err := inv.readState(ctx, name)
		if err != nil {
			return err
		}
		state.Etcd = <-members // nil from the second shard on: it was shown with the first
		state.raw.Etcd = state.Etcd
		found := story.Problems(&state.Shard, now)
		state.raw.Problems = found
		if documents = append(documents, state.raw); inv.documents() {
			continue
		}
		if i > 0 {
			fmt.Fprintln(inv.env.Stdout)
		}
		if err := inv.showState(state, found, now); err != nil {
			return err
		}
	}
	if !c.AllShards {
		_, err = inv.records(documents[0])
		return err
	}
	if len(names) == 0 {
		inv.note("no shard in this etcd")
	}
	_, err = inv.records(documents)
	return err
}

// readState reads everything that the status of a shard shows.
func (inv *Invocation) readState(ctx context.Context, name string) (st shardState, err error) {
	keys := store.KeysOf(name)
	st.Name = name
	if st.Groups, st.Revision, err = inv.groups(ctx, keys, 0); err != nil {
		return st, err
	}
	st.raw = statusDocument{Shard: name, Revision: st.Revision}
	lists := map[string]store.Listing{}
	for _, kind := range []string{
		store.KindLeader, store.KindReplicas, store.KindStrays, store.KindRequests,
		store.KindWebhooks,
	} {
		if lists[kind], err = inv.list(ctx, keys.Of(kind), st.Revision); err != nil {
			return st, err
		}
	}
	st.Spoiled = map[string]error{}
	st.Replicas = decodeSome[store.Replica](lists[store.KindReplicas]) // a damaged one is rewritten by its replica
	if st.Strangers, err = inv.readStrangers(ctx, keys, st.Revision); err != nil {
		return st, err
	}
	st.Webhooks = decodeSome[store.Webhook](lists[store.KindWebhooks]) // the leader rewrites a damaged one
	st.Requests, st.Unreadable = decodeReadable[store.Request](lists[store.KindRequests])
	if st.Lacking, err = inv.lackingFiles(ctx, keys, st.Groups, st.Revision); err != nil {
		return st, err
	}
	if st.Secrets, err = inv.secretsAt(ctx, keys, st.Revision); err != nil {
		return st, err
	}
	if kv, leads := store.LeaderNow(lists[store.KindLeader].KVs); leads {
		st.Leads, st.raw.Leader = true, asJSON(kv.Value)
		if st.Leader, err = store.Decode[store.Leader](kv); err != nil {
			st.Spoiled[kv.Key] = err
		}
	}
	if st.Shard.Shard, st.raw.Record, err = findShown[store.Shard](ctx, inv, keys.Shard(), st.Spoiled); err != nil {
		return st, err
	}
	if st.Served, st.raw.Served, err = findShown[store.Served](ctx, inv, keys.Served(), st.Spoiled); err != nil {
		return st, err
	}
	if st.Backup, st.raw.Backup, err = findShown[store.Backup](ctx, inv, keys.Backup(), st.Spoiled); err != nil {
		return st, err
	}
	if err := inv.spoiledInstances(ctx, keys, &st); err != nil {
		return st, err
	}
	st.raw.Replicas = stored(lists[store.KindReplicas].KVs)
	st.raw.Webhooks = stored(lists[store.KindWebhooks].KVs)
	st.raw.Strays = stored(lists[store.KindStrays].KVs)
	st.raw.Requests = stored(lists[store.KindRequests].KVs)
	st.raw.Groups, st.raw.Status = []json.RawMessage{}, []json.RawMessage{}
	for _, g := range st.Groups {
		if !g.Gone() {
			st.raw.Groups = append(st.raw.Groups, recordOf(g))
		}
		if g.Raw != nil {
			st.raw.Status = append(st.raw.Status, g.Raw)
		}
	}
	st.raw.Health = healthOf(st.Groups)
	return st, nil
}

// findShown is findRecord for callers that show the rest even if the record cannot be read.
func findShown[T any](ctx context.Context, inv *Invocation, key string, spoiled map[string]error) (store.Versioned[T],
	json.RawMessage, error,
) {
	kv, err := inv.find(ctx, key)
	if err != nil || kv.Modified == 0 {
		return store.Versioned[T]{Key: key}, nil, err
	}
	v, err := store.Decode[T](kv)
	if err != nil {
		spoiled[key] = err
		v.Record = *new(T)
	}
	return v, asJSON(kv.Value), nil
}

// spoiledInstances notes which instance records the leader cannot read. The statuses name them, so
// the instances need not be read.
func (inv *Invocation) spoiledInstances(ctx context.Context, keys store.Keys, st *shardState) error {
	for _, g := range st.Groups {
		for _, d := range g.Status.Record.Damaged {
			if d.What != store.DamageUnreadable {
				continue
			}
			kv, err := inv.find(ctx, d.Key)
			if err != nil {
				return err
			}
			if bad := keys.Readable(kv); kv.Modified != 0 && bad != nil {
				st.Spoiled[d.Key] = bad
			}
		}
	}
	return nil
}

// findRecord reads a record that may be missing.
func findRecord[T any](ctx context.Context, inv *Invocation, key string) (store.Versioned[T], json.RawMessage, error) {
	kv, err := inv.get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return store.Versioned[T]{Key: key}, nil, nil
	}
	if err != nil {
		return store.Versioned[T]{}, nil, err
	}
	v, err := store.Decode[T](kv)
	return v, asJSON(kv.Value), err
}

// showState prints a shard for people: its leader, its groups, and last its problems, next to the
// prompt.
func (inv *Invocation) showState(st shardState, found []problem, now time.Time) error {
	scr := inv.screen()
	fmt.Fprintln(scr.W, headline(scr, st, now))
	if inv.wide() {
		fmt.Fprintln(scr.W, st.raw.Health.line())
	}
	if len(st.Groups) == 0 {
		fmt.Fprintln(scr.W, "no groups")
	} else {
		t := output.Table{Columns: append(output.GroupColumns(),
			output.Column{Title: "SPEC", Right: true, Wide: true}, output.Column{Title: "IN-FORCE", Right: true, Wide: true})}
		for _, g := range st.Groups {
			t.Add(append(output.GroupCells(g.Name, story.RowOf(g), now), revision(g.Revision()),
				revision(g.Status.Record.AcceptedRevision))...)
		}
		if err := t.Write(scr, inv.wide()); err != nil {
			return err
		}
	}
	return writeProblems(scr, found)
}

// headline describes the leader and replicas of the shard.
func headline(scr output.Screen, st shardState, now time.Time) string {
	parts := []string{st.Name}
	if st.Leads {
		parts = append(parts, fmt.Sprintf("leader %s %s", st.Leader.Record.Replica,
			output.Age(now, st.Leader.Record.Since)))
	} else {
		parts = append(parts, scr.Alarm("no leader"))
		if st.Served.Present() {
			parts = append(parts, fmt.Sprintf("last served %s ago by %s", output.Age(now, st.Served.Record.At),
				st.Served.Record.Replica))
		}
	}
	parts = append(parts, fmt.Sprintf("replicas %d%s", len(st.Replicas), mixture(st.Replicas)),
		fmt.Sprintf("rev %d", st.Revision))
	if at := st.Backup.Record.At; !at.IsZero() {
		parts = append(parts, fmt.Sprintf("backup %s ago", output.Age(now, at)))
	}
	if st.Shard.Shard.Record.Hold != nil {
		parts = append(parts, scr.Alarm("ON HOLD"))
	}
	return strings.Join(parts, "  ")
}

// mixture lists the releases of the replicas if they differ: an upgrade is in progress or
// unfinished.
func mixture(replicas []store.Versioned[store.Replica]) string {
	count := map[string]int{}
	for _, r := range replicas {
		count[output.OneLine(r.Record.Version)]++
	}
	if len(count) < 2 {
		return ""
	}
	var parts []string
	for _, version := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d of %s", count[version], cmp.Or(version, "no version")))
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func revision(r store.Revision) string {
	if r == 0 {
		return "-"
	}
	return fmt.Sprint(int64(r))
}
