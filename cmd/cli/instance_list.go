package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// InstanceList is the command instance list.
type InstanceList struct {
	Of        string `arg:"" optional:"" name:"group" help:"List only instances of this group."`
	Group     string `short:"g" help:"List only instances of this group." placeholder:"NAME"`
	Limit     int    `help:"List at most N instances, sorted by name, and the number of the others (default: all)." placeholder:"N"`
	AllShards bool   `help:"List the instances of every shard in this etcd."`
}

// Run lists the instances, each with its health and its session. As JSON they are the records as
// stored.
func (c *InstanceList) Run(ctx context.Context, inv *Invocation) error {
	if c.Limit < 0 {
		return failure(Usage, "leasehold instance list --help", "--limit: %d: must be at least 1, or 0 for all",
			c.Limit)
	}
	if c.Of != "" && c.Group != "" && c.Of != c.Group {
		return failure(Usage, "leasehold instance list "+reason.ShellWord(c.Of), "%s and -g %s: give one group", c.Of,
			c.Group)
	}
	c.Group = cmp.Or(c.Group, c.Of)
	names, err := inv.shards(ctx, c.AllShards)
	if err != nil {
		return err
	}
	raw := []json.RawMessage{}
	t := output.Table{Columns: []output.Column{
		{Title: "INSTANCE"},
		{Title: "HEALTH"},
		{Title: "SHARD", Wide: !c.AllShards},
		{Title: "GROUP", Wide: true},
		{Title: "SLOT", Right: true},
		{Title: "PHASE"},
		{Title: "NOW", Cut: true},
		{Title: "AGENT", Spare: 3},
		{Title: "ZONE", Spare: 2},
		{Title: "TEMPLATE", Spare: 1},
		{Title: "REPLACES", Wide: true},
		{Title: "ADDRESS", Wide: true},
		{Title: "REF", Wide: true},
		{Title: "LAST", Wide: true},
		{Title: "IN-PHASE", Spare: 4},
		{Title: "AGE"},
	}}
	more := 0
	for _, name := range names {
		room := c.Limit - len(t.Rows)
		if c.Limit == 0 {
			room = unlimited
		}
		some, err := inv.instancesOf(ctx, store.KeysOf(name), c.Group, room)
		if err != nil {
			return err
		}
		raw = append(raw, some.raw...)
		more += some.more
		slices.SortStableFunc(some.records, func(a, b store.Instance) int {
			if d := strings.Compare(a.Group, b.Group); d != 0 {
				return d
			}
			return a.Slot - b.Slot
		})
		for _, i := range some.records {
			t.Add(instanceRow(inv, name, i, some.sessions[i.ID], some.reports[i.ID])...)
		}
	}
	if c.Group != "" && len(t.Rows)+more == 0 {
		if err := inv.knownGroup(ctx, names, c.Group); err != nil {
			return err
		}
	}
	done, err := inv.records(raw)
	switch {
	case done:
	case len(t.Rows) == 0:
		inv.note("no instances")
	default:
		err = t.Write(inv.screen(), inv.wide())
	}
	if err == nil && more > 0 {
		inv.note("%s", c.left(len(t.Rows), more))
	}
	return err
}

// left returns how many are not shown, and their states.
func (c *InstanceList) left(shown, more int) string {
	how := "a larger --limit"
	if c.Group == "" {
		how += ", or -g GROUP"
	}
	return fmt.Sprintf("%s of %s instances, by name; more: %s", output.Thousands(shown), output.Thousands(shown+more),
		how)
}

func instanceRow(inv *Invocation, shard string, i store.Instance, a *store.Alive, r *story.LastReport) []string {
	now, health := inv.env.Now(), story.HealthOf(i, a, r)
	busy, last := story.InstanceNow(i, now), strings.TrimSpace(i.Last.Rule+" "+reason.Text(i.Last.Cause, i.Last.Why))
	if health.Ill() { // more important than earlier decisions
		last = health.Rule + " " + health.Why
	}
	if health.Word == story.Unhealthy { // the column AGENT shows a stream that is not healthy
		busy = strings.TrimSuffix(health.Why+","+busy, ",-")
	}
	return []string{
		i.ID, health.Word, shard, i.Group, slotOf(i), string(i.Phase), busy, agentState(a), orDash(i.Zone), i.Template,
		orDash(i.Replaces),
		orDash(i.Address), orDash(i.Ref), orDash(last), output.Age(now, i.Since), output.Age(now, i.Created),
	}
}

// slotOf returns the number of an instance's slot; "-" for one on demand, which has none.
func slotOf(i store.Instance) string {
	if i.Slot < 0 {
		return "-"
	}
	return fmt.Sprint(i.Slot)
}

// agentState returns the state of the agent's stream; "-" without a session.
func agentState(a *store.Alive) string {
	if a == nil {
		return "-"
	}
	return string(a.State)
}

// someInstances are the instances of one shard that are listed.
type someInstances struct {
	raw      []json.RawMessage // in the order of their keys, as etcdctl shows them
	records  []store.Instance  // in the same order
	sessions map[string]*store.Alive
	reports  map[string]*story.LastReport
	more     int // instances beyond the limit
}

// unlimited is the limit for all instances.
const unlimited = math.MaxInt

// minRead is the least number of keys per request if it is unknown to which group they belong.
const minRead = 1_000

// instancesOf reads the instances of a group ("": all groups) and their sessions, at most room of
// them. Instances are named after their group, except machines adopted under another name: all are
// read if the group has more than were found by name.
func (inv *Invocation) instancesOf(ctx context.Context, keys store.Keys, group string, room int) (some someInstances,
	err error,
) {
	below := ""
	if isName(group) {
		below = group + "-"
	}
	for {
		err := atOneRevision(0, func() (err error) {
			some, err = inv.readInstances(ctx, keys, group, below, room)
			return err
		})
		if err != nil || group == "" || len(some.records) < room && below == "" {
			return some, err
		}
		status, _, err := findRecord[store.Status](ctx, inv, keys.Status(group))
		if err != nil {
			return some, err
		}
		left := status.Record.OnDemand - len(some.records)
		for _, n := range status.Record.Phases {
			left += n
		}
		if left <= 0 {
			return some, nil
		}
		if len(some.records) == room {
			some.more = left
			return some, nil
		}
		below = ""
	}
}

// readInstances reads the instances of a group, "" for all, whose names begin with the prefix, and
// their sessions at the same revision.
func (inv *Invocation) readInstances(ctx context.Context, keys store.Keys, group, below string,
	room int,
) (some someInstances, err error) {
	most := max(room, 1) // one key returns the total count
	switch {
	case room == unlimited:
		most = 0
	case group != "":
		most = max(room, minRead)
	}
	var at store.Revision
	var specs store.InstanceSpecs
	err = inv.parts(ctx, keys.Of(store.KindInstances)+below, "", most, 0, func(part store.Part) bool {
		at = part.Revision
		for n, kv := range part.KVs {
			if len(some.records) == room {
				some.more = len(part.KVs) - n + part.Behind
				return false
			}
			v, err := specs.Decode(kv)
			if err != nil {
				v.Record = unreadableInstance(keys, kv)
			}
			if group == "" || v.Record.Group == group {
				some.raw, some.records = append(some.raw, asJSON(kv.Value)), append(some.records, v.Record)
			}
		}
		if len(some.records) == room {
			some.more = part.Behind
			return false
		}
		return true
	})
	if group != "" {
		some.more = 0 // the others may belong to other groups: the status knows
	}
	if err != nil || len(some.records) == 0 {
		return some, err
	}
	if inv.documents() {
		return some, nil // JSON and YAML show the records alone
	}
	first, last := some.records[0].ID, some.records[len(some.records)-1].ID
	if some.sessions, err = inv.sessionsOf(ctx, keys, first, last, most, at); err != nil {
		return some, err
	}
	some.reports, err = inv.reportsOf(ctx, keys, first, last, most, at)
	return some, err
}

// sessionsOf reads the sessions of the instances from one name to another, by instance.
func (inv *Invocation) sessionsOf(ctx context.Context, keys store.Keys, first, last string, most int,
	at store.Revision,
) (map[string]*store.Alive, error) {
	byID := map[string]*store.Alive{}
	err := inv.parts(ctx, keys.Of(store.KindAlive), keys.Alive(first), most, at, func(part store.Part) bool {
		for _, kv := range part.KVs {
			if kv.Key > keys.Alive(last) {
				return false
			}
			v, err := store.Decode[store.Alive](kv)
			if err != nil {
				continue // its replica will rewrite it
			}
			byID[v.Record.Instance] = &v.Record
		}
		return true
	})
	return byID, err
}

// phaseUnreadable is the phase of an instance whose record cannot be read.
const phaseUnreadable = "unreadable"

// unreadableInstance returns what is known about an instance whose record cannot be read: it is
// listed, too (SAFE-16).
func unreadableInstance(keys store.Keys, kv store.KV) store.Instance {
	_, id, _ := keys.Split(kv.Key)
	i := store.Instance{
		ID: id, Slot: -1, Managed: true, Phase: phaseUnreadable,
		Last: store.Decision{Rule: "SAFE-16", Why: "leasehold repair " + store.KindInstances + "/" + id},
	}
	if group, slot, onDemand, ok := store.PlaceOf(id); ok {
		i.Group, i.Slot, i.Managed = group, slot, !onDemand
	}
	return i
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
