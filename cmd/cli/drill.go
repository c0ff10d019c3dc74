package cli

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// Drills are the commands that cause a failure on purpose (DAY-6).
type Drills struct {
	Machine  DrillMachine  `cmd:"" help:"End the machine of one instance, without warning, and show what was promised and what was seen."`
	Zone     DrillZone     `cmd:"" help:"End all machines of a group in a zone, without warning, and show what was promised and what was seen."`
	Agent    DrillAgent    `cmd:"" help:"Kill the agent of one instance, and show what was promised and what was seen."`
	Workload DrillWorkload `cmd:"" help:"Kill the workload of one instance, and show what was promised and what was seen."`
	List     DrillList     `cmd:"" help:"List the drills that the journal knows, with what was promised and what was seen."`
}

// drillOne is a drill of one instance.
type drillOne struct {
	Group    string   `arg:"" help:"Name of the group."`
	Instance string   `short:"i" help:"The instance (default: the oldest running one)." placeholder:"ID"`
	Confirm  []string `help:"Confirm the drill by naming the group." placeholder:"NAME"`
}

// DrillMachine is the command drill machine.
type DrillMachine struct{ drillOne }

// DrillAgent is the command drill agent.
type DrillAgent struct{ drillOne }

// DrillWorkload is the command drill workload.
type DrillWorkload struct{ drillOne }

// DrillZone is the command drill zone.
type DrillZone struct {
	Group   string   `arg:"" help:"Name of the group."`
	Zone    string   `arg:"" help:"Name of the zone."`
	Confirm []string `help:"Confirm the drill by naming the group." placeholder:"NAME"`
}

// What a drill of one instance does.
const (
	drilledMachine  = "1 machine is ended by its provider"
	drilledAgent    = "an agent is killed"
	drilledWorkload = "a workload is killed"
)

// Run ends the machine and follows what happens.
func (c *DrillMachine) Run(ctx context.Context, inv *Invocation) error {
	return c.run(ctx, inv, store.RequestDrill, drilledMachine)
}

// Run kills the agent and follows what happens.
func (c *DrillAgent) Run(ctx context.Context, inv *Invocation) error {
	return c.run(ctx, inv, store.RequestDrillAgent, drilledAgent)
}

// Run kills the workload and follows what happens.
func (c *DrillWorkload) Run(ctx context.Context, inv *Invocation) error {
	return c.run(ctx, inv, store.RequestDrillWorkload, drilledWorkload)
}

func (c *drillOne) run(ctx context.Context, inv *Invocation, kind store.RequestKind, what string) error {
	d, err := c.drill(ctx, inv, kind, what)
	if err != nil {
		return err
	}
	return inv.drill(ctx, d, c.Confirm)
}

// drill returns the drill that the command asks for.
func (c *drillOne) drill(ctx context.Context, inv *Invocation, kind store.RequestKind, what string) (drill, error) {
	g, targets, err := inv.drillTargets(ctx, c.Group, func(i store.Instance) bool {
		return c.Instance == "" || i.ID == c.Instance
	})
	if err != nil {
		return drill{}, err
	}
	if len(targets) == 0 {
		return drill{}, failureRun(NotFound, "leasehold instance list "+c.Group,
			"group %s has no running instance%s", c.Group,
			prefixed(" ", c.Instance))
	}
	return drill{g, inv.request(kind, "", targets[0].ID), targets[:1], what}, nil
}

// Run ends the machines and follows what happens.
func (c *DrillZone) Run(ctx context.Context, inv *Invocation) error {
	d, err := c.drill(ctx, inv)
	if err != nil {
		return err
	}
	return inv.drill(ctx, d, c.Confirm)
}

// drill returns the drill that the command asks for.
func (c *DrillZone) drill(ctx context.Context, inv *Invocation) (drill, error) {
	g, targets, err := inv.drillTargets(ctx, c.Group, func(i store.Instance) bool { return i.Zone == c.Zone })
	if err != nil {
		return drill{}, err
	}
	if len(targets) == 0 {
		return drill{}, failureRun(NotFound, "leasehold instance list "+c.Group,
			"group %s has no running instance in zone %s", c.Group, c.Zone)
	}
	r := inv.request(store.RequestDrill, c.Group, "")
	r.Zone = c.Zone
	return drill{g, r, targets, machinesAre(len(targets)) + " ended by its provider"}, nil
}

func prefixed(prefix, word string) string {
	if word == "" {
		return ""
	}
	return prefix + word
}

// drillTargets returns the wanted running instances, oldest first.
func (inv *Invocation) drillTargets(ctx context.Context, name string, wanted func(store.Instance) bool) (group,
	[]store.Instance, error,
) {
	g, err := inv.group(ctx, name)
	if err != nil {
		return g, nil, err
	}
	listing, err := inv.list(ctx, inv.keys().Of(store.KindInstances)+name+"-", 0)
	if err != nil {
		return g, nil, err
	}
	all, err := decodeInstances(listing)
	if err != nil {
		return g, nil, err
	}
	var targets []store.Instance
	for _, v := range all {
		if i := v.Record; i.Group == name && i.Managed && i.Phase == store.Running && wanted(i) {
			targets = append(targets, i)
		}
	}
	slices.SortStableFunc(targets, func(a, b store.Instance) int { return a.Created.Compare(b.Created) })
	return g, targets, nil
}

// drill is a failure to order.
type drill struct {
	group   group
	request store.Request
	targets []store.Instance
	what    string // describes the consequences, for the confirmation
}

// orderDrill orders the failure.
func (inv *Invocation) orderDrill(ctx context.Context, d drill, given []string) error {
	if err := inv.checkBaseOf("group "+d.group.Name, d.group.Revision()); err != nil {
		return err
	}
	leaders, err := inv.list(ctx, inv.keys().Of(store.KindLeader), 0)
	if err != nil {
		return err
	}
	if len(leaders.KVs) == 0 {
		return failureRun(Failed, "leasehold status",
			"no coordinator is running, and a drill is not left for later; nothing was ordered")
	}
	var ids []string
	for _, i := range d.targets {
		ids = append(ids, i.ID)
	}
	what := fmt.Sprintf("drill in group %s: %s, without warning: %s", d.group.Name, d.what, someOf(ids))
	if err := inv.confirm(ctx, given, d.group.Name, what); err != nil {
		return err
	}
	return inv.leave(ctx, d.request, []store.Condition{store.Exists(inv.keys().Instance(ids[0]))},
		"instance "+ids[0]+" is gone")
}

// drill orders the failure, follows it, and compares it with what was promised.
func (inv *Invocation) drill(ctx context.Context, d drill, given []string) error {
	if err := inv.orderDrill(ctx, d, given); err != nil {
		return err
	}
	g, begun := d.group, inv.env.Now()
	seen, err := inv.followDrill(ctx, g.Name, d.request.ID, begun)
	if err != nil {
		return err
	}
	if seen.Refused != "" {
		return failureRun(Failed, "leasehold explain "+g.Name,
			"group %s could not tolerate it: %s; nothing was done", g.Name,
			seen.Refused)
	}
	return inv.showDrill(ctx, g, seen)
}

// followDrill follows the journal until the drill is over.
func (inv *Invocation) followDrill(ctx context.Context, group, order string, begun time.Time) (
	review.DrillSeen, error,
) {
	limit := inv.waitLimit()
	keys := inv.keys()
	f := drillFollower{group: group, changed: make(chan struct{}, 1), entries: map[string]store.JournalEntry{}}
	var prefixes []string
	end := begun.Add(limit + clocksAhead)
	for t := begun.UTC().Add(-clocksBehind).Truncate(time.Hour); !t.After(end); t = t.Add(time.Hour) {
		prefixes = append(prefixes, keys.Of(store.KindEvents)+t.Format("20060102T15"))
	}
	following, stop := context.WithCancel(ctx)
	var follower sync.WaitGroup
	follower.Go(func() {
		_ = store.Follow(following, inv.st, keys.Prefix(), prefixes, &f) // it ends only with its context
	})
	defer follower.Wait()
	defer stop()
	inv.note("ordered %s; following it for at most %s", order, output.Span(limit))
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	shown := 0
	for {
		seen := review.SeenOfDrill(f.all(), order)
		for lines := drillLines(seen); shown < len(lines); shown++ {
			inv.note("%s", lines[shown])
		}
		if seen.Over() {
			return seen, nil
		}
		select {
		case <-ctx.Done():
			return seen, failureRun(Interrupted, "leasehold events -g "+group+" --follow",
				"stopped following: the drill goes on, and so does the healing")
		case <-deadline.C:
			why := "not all slots are served again"
			if slices.ContainsFunc(seen.Instances, func(i review.DrilledSeen) bool { return i.Seen.IsZero() }) {
				why = "no failure was seen: it may not have been caused, or was over at once"
			}
			return seen, failureRun(TimedOut, "leasehold explain "+group, "gave up after %s: %s", output.Span(limit), why)
		case <-f.changed:
		}
	}
}

// drillLines returns the steps of a drill so far. Later calls only append to them.
func drillLines(seen review.DrillSeen) (lines []string) {
	for _, i := range seen.Instances {
		if !i.Ended.IsZero() {
			lines = append(lines, i.Instance+map[store.DrillKind]string{
				store.DrillMachine: " is ended by its provider", store.DrillAgent: ": its agent is ordered to kill itself",
				store.DrillWorkload: ": its agent is ordered to kill the workload",
			}[seen.Kind])
		}
	}
	for _, i := range seen.Instances {
		if !i.Served.IsZero() {
			lines = append(lines, "the slot of "+i.Instance+" is served again")
		}
	}
	return lines
}

// drillFollower collects the journal's entries about a group.
type drillFollower struct {
	group   string
	changed chan struct{}

	mu      sync.Mutex
	entries map[string]store.JournalEntry
}

func (f *drillFollower) take(kv store.KV) {
	if v, err := store.Decode[store.JournalEntry](kv); err == nil && v.Record.Group == f.group {
		f.entries[kv.Key] = v.Record
	}
}

func (f *drillFollower) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// Part takes a part of a listing.
func (f *drillFollower) Part(kvs []store.KV) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, kv := range kvs {
		f.take(kv)
	}
}

// Reset ends a listing.
func (f *drillFollower) Reset(store.Revision) { f.signal() }

// Apply takes changes.
func (f *drillFollower) Apply(b store.Batch) {
	f.mu.Lock()
	for _, e := range b.Events {
		if !e.Deleted {
			f.take(e.KV)
		}
	}
	f.mu.Unlock()
	f.signal()
}

// Interrupted changes nothing: what was seen stays seen.
func (f *drillFollower) Interrupted(error) {}

func (f *drillFollower) all() []store.JournalEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []store.JournalEntry
	for _, e := range f.entries {
		all = append(all, e)
	}
	return all
}

// showDrill shows what was promised beside what happened.
func (inv *Invocation) showDrill(ctx context.Context, g group, seen review.DrillSeen) error {
	blamed, err := inv.blamedIn(ctx, g.Name, seen)
	if err != nil {
		return err
	}
	lines := seen.Promises(g.Spec, blamed)
	done, err := inv.records(map[string]any{"group": g.Name, "promises": lines, "seen": seen})
	if err == nil && !done {
		err = inv.promiseTable(lines)
	}
	if err != nil || !slices.ContainsFunc(lines, func(p review.Promise) bool { return !p.Kept }) {
		return err
	}
	return failureRun(Failed, "leasehold explain "+g.Name, "the drill has shown something else than what was promised")
}

func (inv *Invocation) promiseTable(lines []review.Promise) error {
	t := output.Table{Columns: []output.Column{
		{Title: "WHAT"}, {Title: "PROMISED", Cut: true}, {Title: "SEEN"}, {Title: "KEPT"},
	}}
	for _, p := range lines {
		kept := "yes"
		if !p.Kept {
			kept = "NO"
		}
		t.Add(p.What, p.Promised, p.Seen, kept)
	}
	return t.Write(inv.screen(), inv.wide())
}

// blamedIn returns the slots that count a failure of a drilled instance.
func (inv *Invocation) blamedIn(ctx context.Context, name string, seen review.DrillSeen) (blamed []string, err error) {
	listing, err := inv.list(ctx, inv.keys().Of(store.KindSlots)+name+"/", 0)
	if err != nil {
		return nil, err
	}
	slots, err := decodeAll[store.Slot](listing)
	if err != nil {
		return nil, err
	}
	for _, v := range slots {
		blamed = append(blamed, seen.Blames(&v.Record)...)
	}
	return blamed, nil
}
