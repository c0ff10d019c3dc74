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
	"github.com/leasehold/leasehold/store"
)

// Status is the command status.
type Status struct {
	AllShards bool `help:"Show every shard in this etcd."`
}

// shardState is the content of a shard at one revision, without instances.
type shardState struct {
	name      string
	revision  store.Revision
	shard     store.Versioned[store.Shard]
	served    store.Versioned[store.Served]
	leader    store.Versioned[store.Leader]
	leads     bool
	replicas  []store.Versioned[store.Replica]
	groups    []group
	strangers strangers
	spoiled   map[string]error // keys that cannot be decoded, except orders
	requests  []store.Versioned[store.Request]
	// unreadable are orders that were written by hand and cannot be decoded.
	unreadable map[string]error
	secrets    map[string]store.Secret        // by name; nil: they could not be read
	lacking    map[string]map[string][]string // see lackingFiles
	raw        statusDocument
}

// statusDocument is the status in JSON: the records as stored.
type statusDocument struct {
	Shard    string            `json:"shard"`
	Revision store.Revision    `json:"revision"`
	Record   json.RawMessage   `json:"record"`
	Served   json.RawMessage   `json:"served"`
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
func (c *Status) Run(ctx context.Context, s *Session) error {
	names, err := s.shards(ctx, c.AllShards)
	if err != nil {
		return err
	}
	now := s.env.Now()
	var documents []statusDocument
	for i, name := range names {
		state, err := s.readState(ctx, name)
		if err != nil {
			return err
		}
		found := problems(state, now)
		state.raw.Problems = found
		if documents = append(documents, state.raw); s.flags.Output == "json" || s.flags.Output == "yaml" {
			continue
		}
		if i > 0 {
			fmt.Fprintln(s.env.Stdout)
		}
		if err := s.showState(state, found, now); err != nil {
			return err
		}
	}
	if !c.AllShards {
		_, err = s.records(documents[0])
		return err
	}
	if len(names) == 0 {
		s.note("no shard in this etcd")
	}
	_, err = s.records(documents)
	return err
}

// readState reads everything that the status of a shard shows.
func (s *Session) readState(ctx context.Context, name string) (st shardState, err error) {
	keys := store.KeysOf(name)
	st.name = name
	if st.groups, st.revision, err = s.groups(ctx, keys, 0); err != nil {
		return st, err
	}
	st.raw = statusDocument{Shard: name, Revision: st.revision}
	lists := map[string]store.Listing{}
	for _, kind := range []string{store.KindLeader, store.KindReplicas, store.KindStrays, store.KindRequests} {
		if lists[kind], err = s.list(ctx, keys.Of(kind), st.revision); err != nil {
			return st, err
		}
	}
	st.spoiled = map[string]error{}
	st.replicas = decodeSome[store.Replica](lists[store.KindReplicas]) // a damaged one is rewritten by its replica
	if st.strangers, err = s.readStrangers(ctx, keys, st.revision); err != nil {
		return st, err
	}
	st.requests, st.unreadable = decodeReadable[store.Request](lists[store.KindRequests])
	if st.lacking, err = s.lackingFiles(ctx, keys, st.groups, st.revision); err != nil {
		return st, err
	}
	if st.secrets, err = s.secretsAt(ctx, keys, st.revision); err != nil {
		return st, err
	}
	if kv, leads := store.LeaderNow(lists[store.KindLeader].KVs); leads {
		st.leads, st.raw.Leader = true, asJSON(kv.Value)
		if st.leader, err = store.Decode[store.Leader](kv); err != nil {
			st.spoiled[kv.Key] = err
		}
	}
	if st.shard, st.raw.Record, err = findShown[store.Shard](ctx, s, keys.Shard(), st.spoiled); err != nil {
		return st, err
	}
	if st.served, st.raw.Served, err = findShown[store.Served](ctx, s, keys.Served(), st.spoiled); err != nil {
		return st, err
	}
	if err := s.spoiledInstances(ctx, keys, &st); err != nil {
		return st, err
	}
	st.raw.Replicas = stored(lists[store.KindReplicas].KVs)
	st.raw.Strays = stored(lists[store.KindStrays].KVs)
	st.raw.Requests = stored(lists[store.KindRequests].KVs)
	st.raw.Groups, st.raw.Status = []json.RawMessage{}, []json.RawMessage{}
	for _, g := range st.groups {
		if !g.gone() {
			st.raw.Groups = append(st.raw.Groups, g.record())
		}
		if g.Raw != nil {
			st.raw.Status = append(st.raw.Status, g.Raw)
		}
	}
	st.raw.Health = healthOf(st.groups)
	return st, nil
}

// findShown is findRecord for callers that show the rest even if the record cannot be read.
func findShown[T any](ctx context.Context, s *Session, key string, spoiled map[string]error) (store.Versioned[T],
	json.RawMessage, error,
) {
	kv, err := s.find(ctx, key)
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
func (s *Session) spoiledInstances(ctx context.Context, keys store.Keys, st *shardState) error {
	for _, g := range st.groups {
		for _, d := range g.Status.Record.Damaged {
			if d.What != store.DamageUnreadable {
				continue
			}
			kv, err := s.find(ctx, d.Key)
			if err != nil {
				return err
			}
			if bad := keys.Readable(kv); kv.Modified != 0 && bad != nil {
				st.spoiled[d.Key] = bad
			}
		}
	}
	return nil
}

// findRecord reads a record that may be missing.
func findRecord[T any](ctx context.Context, s *Session, key string) (store.Versioned[T], json.RawMessage, error) {
	kv, err := s.get(ctx, key)
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
func (s *Session) showState(st shardState, found []problem, now time.Time) error {
	scr := s.screen()
	fmt.Fprintln(scr.W, headline(scr, st, now))
	if s.wide() {
		fmt.Fprintln(scr.W, st.raw.Health.line())
	}
	if len(st.groups) == 0 {
		fmt.Fprintln(scr.W, "no groups")
	} else {
		t := output.Table{Columns: []output.Column{
			{Title: " "},
			{Title: "GROUP"},
			{Title: "STATE"},
			{Title: "HEALTH", Right: true},
			{Title: "RUN/SIZE", Right: true},
			{Title: "NOW", Cut: true},
			{Title: "FOR"},
			{Title: "SPEC", Right: true, Wide: true},
			{Title: "IN-FORCE", Right: true, Wide: true},
		}}
		for _, g := range st.groups {
			v := viewOf(g)
			t.Add(v.mark, g.Name, v.state, v.health, v.run, v.now, output.Age(now, v.since), revision(g.revision()),
				revision(g.Status.Record.AcceptedRevision))
		}
		if err := t.Write(scr, s.wide()); err != nil {
			return err
		}
	}
	return writeProblems(scr, found)
}

// headline describes the leader and replicas of the shard.
func headline(scr output.Screen, st shardState, now time.Time) string {
	parts := []string{st.name}
	if st.leads {
		parts = append(parts, fmt.Sprintf("leader %s %s", st.leader.Record.Replica,
			output.Age(now, st.leader.Record.Since)))
	} else {
		parts = append(parts, scr.Alarm("no leader"))
		if st.served.Present() {
			parts = append(parts, fmt.Sprintf("last served %s ago by %s", output.Age(now, st.served.Record.At),
				st.served.Record.Replica))
		}
	}
	parts = append(parts, fmt.Sprintf("replicas %d%s", len(st.replicas), mixture(st.replicas)),
		fmt.Sprintf("rev %d", st.revision))
	if st.shard.Record.Hold != nil {
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
