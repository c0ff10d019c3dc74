package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/recovery"
	"github.com/leasehold/leasehold/store"
)

// Recover is the command recover (SAFE-17), the last resort after a loss that no history can undo.
type Recover struct {
	ID      string   `help:"The shard's ID, as in the tags of its machines (default: the one that waiting coordinators report)." placeholder:"ID"`
	Silent  bool     `help:"Also restore machines with silent agents, by their tags alone: a roll replaces them after the release."`
	Confirm []string `help:"Confirm the recovery by naming the shard." placeholder:"SHARD"`
}

// Help explains the steps.
func (*Recover) Help() string {
	return `The last resort when etcd's data is gone and neither a snapshot nor etcd's history (leasehold repair) brings it back. Nothing is stopped or made on the way.

1. leasehold recover                       creates the shard under its old ID, on hold; coordinators serve it again
2. leasehold group apply -f FILE           for each group
3. leasehold recover                       shows which machine belongs into which slot, and puts them there
4. leasehold release                       ends the hold

If leasehold init has created the shard again in between, leasehold recover --id ID gives it its old ID back.
Where etcd had users and roles they are lost too: leasehold auth init comes first. The runbook, with the output of each step, is in docs/damage.md.`
}

// Run takes the next step: it creates the shard under its old ID or, if the shard exists, puts
// machines back into their slots.
func (c *Recover) Run(ctx context.Context, inv *Invocation) error {
	if err := inv.onlyShows(c.Confirm); err != nil {
		return err
	}
	kv, err := inv.find(ctx, inv.keys().Shard())
	if err != nil {
		return err
	}
	if kv.Modified == 0 {
		return c.createAgain(ctx, inv)
	}
	shard, err := store.Decode[store.Shard](kv)
	if err != nil {
		return failure(Failed, "leasehold repair", "the shard's record cannot be read: %s", joined(err))
	}
	if other, err := c.otherID(ctx, inv, shard); other || err != nil {
		return err
	}
	if shard.Record.Hold == nil {
		return failure(Failed, `leasehold hold "recovering"`,
			"shard %s is not on hold: machines can be restored only during a hold", inv.flags.Shard)
	}
	known, err := inv.recoverable(ctx)
	if err != nil {
		return err
	}
	known.Silent = c.Silent
	return c.putBack(ctx, inv, recovery.Plan(known))
}

// createAgain creates the shard under its old ID, on hold.
func (c *Recover) createAgain(ctx context.Context, inv *Invocation) error {
	waits, err := inv.waits(ctx)
	if err != nil {
		return err
	}
	id := c.ID
	switch {
	case id == "" && waits == nil:
		return failure(NotFound,
			"leasehold recover --id ID, as the machines are tagged; coordinators keep it in their --state-dir",
			"no coordinator waits for shard %s, so its ID is unknown here", inv.flags.Shard)
	case id == "":
		id = waits.ShardID
	case waits != nil && waits.ShardID != id:
		return failure(Conflict, "leasehold status", "the coordinators wait for the shard with ID %s, not %s",
			waits.ShardID, id)
	}
	act := fmt.Sprintf("shard %s is created again under its old ID %s, on hold, because its records are lost "+
		"permanently", inv.flags.Shard, id)
	if err := inv.confirm(ctx, c.Confirm, inv.flags.Shard, act); err != nil {
		return err
	}
	shard, err := store.NewShard(inv.flags.Shard, id)
	if err != nil {
		return err
	}
	shard.Hold = inv.recoveryHold()
	err = inv.ask(ctx, "create the shard", "create shard "+inv.flags.Shard,
		func(ctx context.Context, st store.Store) error {
			return store.CreateShard(ctx, st, inv.keys(), shard)
		})
	if errors.Is(err, store.ErrExists) {
		return failure(Conflict, "leasehold status", "shard %s was created in the meantime", inv.flags.Shard)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(inv.env.Stdout, "%s created on hold id %s\n", inv.flags.Shard, id)
	inv.noteApplying()
	return nil
}

// otherID handles a shard that leasehold init has created after a loss, with another ID than its
// machines have. It reports whether this is such a shard.
func (c *Recover) otherID(ctx context.Context, inv *Invocation, shard store.Versioned[store.Shard]) (
	other bool, err error,
) {
	if c.ID != "" {
		if c.ID == shard.Record.ID {
			return false, nil
		}
		return true, c.giveBackID(ctx, inv, shard)
	}
	leaders, err := inv.list(ctx, inv.keys().Of(store.KindLeader), 0)
	if err != nil || len(leaders.KVs) > 0 {
		return false, err // the shard is served: waiting replicas belong to another one
	}
	waits, err := inv.waits(ctx)
	if err != nil || waits == nil || waits.ShardID == shard.Record.ID {
		return false, err
	}
	return true, failure(Conflict, "leasehold recover --id "+waits.ShardID,
		"shard %s was created again with ID %s, and the coordinators wait for the one with ID %s", inv.flags.Shard,
		shard.Record.ID, waits.ShardID)
}

// giveBackID replaces the ID that leasehold init made by the shard's old ID, and puts the shard on
// hold. That is possible as long as nothing was created under the other ID, or after that was
// deleted: otherwise its machines would be without records.
func (c *Recover) giveBackID(ctx context.Context, inv *Invocation, shard store.Versioned[store.Shard]) error {
	keys := inv.keys()
	leaders, err := inv.list(ctx, keys.Of(store.KindLeader), 0)
	if err != nil {
		return err
	}
	if len(leaders.KVs) > 0 {
		return failure(Conflict,
			"leasehold status names the coordinators: stop those that serve it, and remove their --state-dir",
			"shard %s is served with ID %s: while it is, it cannot have ID %s", inv.flags.Shard, shard.Record.ID, c.ID)
	}
	var remains int
	var kind string
	count := func(ctx context.Context, st store.Store) (err error) {
		remains, kind, err = store.LeaderRecords(ctx, st, keys)
		return err
	}
	err = inv.ask(ctx, "read the shard", inv.reading(keys.Prefix()), count)
	if err != nil {
		return err
	}
	if remains > 0 {
		return failure(Conflict,
			"leasehold group delete, for each group that was applied since, while its coordinators run; "+
				"then run the same command",
			"shard %s has %d keys below %s/, of machines with ID %s", inv.flags.Shard, remains, kind, shard.Record.ID)
	}
	act := fmt.Sprintf("shard %s gets its old ID %s in the place of %s, and is on hold", inv.flags.Shard, c.ID,
		shard.Record.ID)
	if err := inv.confirm(ctx, c.Confirm, inv.flags.Shard, act); err != nil {
		return err
	}
	if err := inv.forgetNotes(ctx); err != nil {
		return err
	}
	fresh, err := store.NewShard(inv.flags.Shard, c.ID)
	if err != nil {
		return err
	}
	fresh.Settings, fresh.Generation = shard.Record.Settings, shard.Record.Generation+1
	fresh.Hold = inv.recoveryHold()
	if _, err := inv.commit(ctx, "give the shard its old ID", store.Txn{
		Conditions: []store.Condition{shard.Unchanged()},
		Writes:     []store.Write{store.Put(shard.Key, store.Encode(fresh))},
	}); err != nil {
		return err
	}
	fmt.Fprintf(inv.env.Stdout, "%s on hold id %s\n", inv.flags.Shard, c.ID)
	inv.noteApplying()
	return nil
}

// forgetNotes deletes the notes about deletions under the replaced ID: they are about other
// machines than those that come back.
func (inv *Invocation) forgetNotes(ctx context.Context) error {
	notes, err := inv.list(ctx, inv.keys().Of(store.KindGone), 0)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(notes.KVs, repairBatch) {
		var txn store.Txn
		for _, kv := range part {
			txn.Writes = append(txn.Writes, store.Delete(kv.Key))
		}
		if _, err := inv.commit(ctx, "delete notes", txn); err != nil {
			return err
		}
	}
	return nil
}

func (inv *Invocation) recoveryHold() *store.Hold {
	return &store.Hold{By: inv.who(), Why: "its records were lost, and it is being recovered", At: inv.env.Now().UTC()}
}

func (inv *Invocation) noteApplying() {
	inv.note("next: leasehold group apply -f FILE for each group; then wait until leasehold recover shows all machines: " +
		"most agents report within seconds, the last within reconnect_max (30s by default)")
}

// recoverable reads what is known about machines without a record.
func (inv *Invocation) recoverable(ctx context.Context) (known recovery.Shard, err error) {
	groups, at, err := inv.groups(ctx, inv.keys(), 0)
	if err != nil {
		return known, err
	}
	known.Groups = map[string]store.Group{}
	for _, g := range groups {
		switch {
		case g.Status.Record.Accepted != nil:
			known.Groups[g.Name] = *g.Status.Record.Accepted
		case !g.Gone() && g.Bad == nil:
			known.Groups[g.Name] = g.Spec
		}
	}
	if known.Instances, err = readKind[store.Instance](ctx, inv, inv.keys(), store.KindInstances, at); err != nil {
		return known, err
	}
	if known.Strays, err = readKind[store.Stray](ctx, inv, inv.keys(), store.KindStrays, at); err != nil {
		return known, err
	}
	if known.Extras, err = readKind[store.Extra](ctx, inv, inv.keys(), store.KindExtras, at); err != nil {
		return known, err
	}
	maps.DeleteFunc(known.Extras, func(_ string, x store.Extra) bool { return x.Foreign })
	if known.Sessions, err = readKind[store.Alive](ctx, inv, inv.keys(), store.KindAlive, at); err != nil {
		return known, err
	}
	gone, err := readKind[store.Gone](ctx, inv, inv.keys(), store.KindGone+"/"+store.KindInstances, at)
	known.Deleted = gone
	return known, err
}

// readKind reads all readable records of a kind, by name.
func readKind[T any](ctx context.Context, inv *Invocation, keys store.Keys, kind string, at store.Revision) (
	map[string]T, error,
) {
	prefix := keys.Of(kind)
	l, err := inv.list(ctx, prefix, at)
	if err != nil {
		return nil, err
	}
	byName := map[string]T{}
	all, unreadable := decodeReadable[T](l)
	for _, v := range all {
		if unreadable[v.Key] == nil {
			byName[v.Key[len(prefix):]] = v.Record
		}
	}
	return byName, nil
}

// putBack shows where each machine belongs, and orders the leader to put those with a known place
// into their slots.
func (c *Recover) putBack(ctx context.Context, inv *Invocation, plan []recovery.Candidate) error {
	if done, err := inv.records(plan); done || err != nil {
		return err
	}
	if len(plan) == 0 {
		inv.note("no machine without a record is known; most agents report within seconds, " +
			"the last within reconnect_max (30s by default), and providers are listed every few seconds")
		return nil
	}
	if err := showCandidates(inv, plan); err != nil {
		return err
	}
	able := slices.DeleteFunc(slices.Clone(plan), func(m recovery.Candidate) bool { return !m.Adoptable() })
	if n := len(plan) - len(able); n > 0 {
		inv.note("%s cannot be placed: they keep running, and are not removed while their agents report",
			counted(n, "machine", "machines"))
	}
	if slices.ContainsFunc(plan, func(m recovery.Candidate) bool { return m.Problem == recovery.NotListed }) {
		inv.note("the leader lists machines at their providers every few seconds: if one is not listed " +
			"yet, run leasehold recover again")
	}
	if len(able) == 0 {
		return nil
	}
	unproven := slices.DeleteFunc(slices.Clone(able),
		func(m recovery.Candidate) bool { return m.Source == recovery.FromSeal })
	if n := len(unproven); n > 0 {
		inv.warn("%s known by tags alone: the agent has not reported yet, nothing proves the machine's template, "+
			"and a roll replaces it after the release; to keep it, wait until BY says seal and run leasehold recover again",
			machinesAre(n))
	}
	act := "restore " + counted(len(able), "machine to its slot", "machines to their slots")
	if err := inv.confirm(ctx, c.Confirm, inv.flags.Shard, act); err != nil {
		return err
	}
	orders := make([]store.Request, len(able))
	for i, m := range able {
		orders[i] = inv.request(store.RequestAdopt, m.Group, m.Instance)
		orders[i].Slot = &m.Slot
	}
	if err := inv.leaveAll(ctx, orders); err != nil {
		return err
	}
	adopted, err := inv.adopted(ctx, orders)
	if err != nil {
		return err
	}
	fmt.Fprintf(inv.env.Stdout, "%d of %d restored\n", adopted, len(able))
	if adopted < len(able) {
		return failure(Failed, "leasehold events --since 10m shows the reasons; then run leasehold recover again",
			"%s could not be restored", counted(len(able)-adopted, "machine", "machines"))
	}
	inv.note("the shard stays on hold: leasehold status, then leasehold release")
	return nil
}

func machinesAre(n int) string {
	if n == 1 {
		return "1 machine is"
	}
	return fmt.Sprintf("%d machines are", n)
}

func showCandidates(inv *Invocation, plan []recovery.Candidate) error {
	t := output.Table{Columns: []output.Column{
		{Title: "INSTANCE"},
		{Title: "GROUP"},
		{Title: "SLOT", Right: true},
		{Title: "BY"},
		{Title: "AGENT"},
		{Title: "PROVIDER", Wide: true},
		{Title: "ZONE", Wide: true},
		{Title: "WOULD BE", Cut: true},
	}}
	for _, m := range plan {
		slot, agent, would := "-", "silent", "restored to its slot"
		if m.Slot >= 0 {
			slot = fmt.Sprint(m.Slot)
		}
		if m.Heard {
			agent = "reports"
		}
		if m.InPlaceOf != "" {
			would = "restored to its slot, in place of " + m.InPlaceOf + ", which is silent"
		}
		if !m.Adoptable() {
			would = "left: " + m.Problem
		}
		t.Add(m.Instance, orDash(m.Group), slot, orDash(string(m.Source)), agent, orDash(m.Provider), orDash(m.Zone),
			would)
	}
	return t.Write(inv.screen(), inv.wide())
}

// leaveAll writes many orders, in as few transactions as possible.
func (inv *Invocation) leaveAll(ctx context.Context, orders []store.Request) error {
	for part := range slices.Chunk(orders, repairBatch) {
		var txn store.Txn
		for _, r := range part {
			key := inv.keys().Request(r.ID)
			txn.Conditions = append(txn.Conditions, store.Absent(key))
			txn.Writes = append(txn.Writes, store.Put(key, store.Encode(r)))
		}
		if _, err := inv.commit(ctx, "give orders", txn); err != nil {
			return err
		}
	}
	return nil
}

// adopted waits until the leader has handled all orders, and returns how many of the machines have
// a record then.
func (inv *Invocation) adopted(ctx context.Context, orders []store.Request) (adopted int, err error) {
	limit := inv.flags.Timeout
	if limit <= 0 {
		limit = waitTimeout
	}
	start := time.Now() // not the clock of records: the wait must end even if that clock stands still
	line := progressLine{to: inv.aside(), rewrite: inv.env.StderrTerminal}
	defer line.clear()
	for {
		waiting, err := readKind[store.Request](ctx, inv, inv.keys(), store.KindRequests, 0)
		if err != nil {
			return 0, err
		}
		instances, err := readKind[store.Instance](ctx, inv, inv.keys(), store.KindInstances, 0)
		if err != nil {
			return 0, err
		}
		left := 0
		adopted = 0
		for _, r := range orders {
			if _, waits := waiting[r.ID]; waits {
				left++
			}
			if _, recorded := instances[r.Instance]; recorded {
				adopted++
			}
		}
		if left == 0 {
			return adopted, nil
		}
		if time.Since(start) > limit {
			return 0, failure(Failed, "leasehold status",
				"after %s the leader has not carried out %s yet; the orders stand", output.Span(limit),
				counted(left, "order", "orders"))
		}
		line.show(fmt.Sprintf("[%d of %d restored | %s so far, gives up in %s]", adopted, len(orders),
			output.Span(time.Since(start)), output.Span(limit-time.Since(start))))
		pause := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
			pause.Stop()
			return 0, failure(Interrupted, "leasehold status",
				"stopped waiting: the orders stand, and the leader carries them out")
		case <-pause.C:
		}
	}
}
