package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// showPlan shows what a coordinator would do first with the changed spec. It is the coordinator's own planner on what etcd
// says now; what only a coordinator knows (its provider's machines, clocks of a tenure) is taken to be in order.
func (s *Session) showPlan(ctx context.Context, ch change) error {
	snapshot, err := s.snapshot(ctx, ch)
	if err != nil {
		return err
	}
	first := plan.Compute(snapshot, s.env.Now())
	steps, status := stepsOf(first, snapshot, ch.name)
	var b strings.Builder
	fmt.Fprintf(&b, "picture rev %d; first step of the plan:\n", snapshot.Revision)
	if len(steps) == 0 {
		b.WriteString("  nothing to do\n")
	}
	for _, step := range steps {
		b.WriteString("  " + output.OneLine(step) + "\n")
	}
	if status != nil {
		for _, held := range status.Blocked {
			fmt.Fprintf(&b, "  held  %s %s: %s\n", held.Rule, output.OneLine(held.What), output.OneLine(held.Why))
		}
		if status.Outdated > 0 {
			fmt.Fprintf(&b, "  %d of another template: this version replaces none for that by itself; see leasehold instance replace\n", status.Outdated)
		}
	}
	_, err = io.WriteString(s.env.Stdout, b.String())
	return err
}

// stepsOf sums up the actions of a plan that change a machine's fate, in the plan's order, and picks out the status that
// the plan would write. The names of instances to come are made up anew each time, so that none is shown.
func stepsOf(p plan.Plan, from plan.Snapshot, group string) (steps []string, status *store.Status) {
	count, first := map[string]int{}, map[string]int{}
	known := map[string]bool{}
	for _, m := range from.Groups[0].Instances {
		known[m.Record.ID] = true
	}
	for _, a := range p.Actions {
		step := fmt.Sprintf("%s  %s %s: %s", a.Rule, a.Instance, a.What, a.Why)
		if a.From == "" && a.To == store.Pending {
			step = fmt.Sprintf("%s  create: %s", a.Rule, a.Why)
		}
		for _, w := range a.Writes {
			if w.Key == from.Keys.Status(group) && !w.Delete {
				if v, err := store.Decode[store.Status](store.KV{Key: w.Key, Value: w.Value}); err == nil {
					status = &v.Record
				}
			}
			if kind, id, _ := from.Keys.Split(w.Key); kind == store.KindInstances && !known[id] {
				step = strings.ReplaceAll(step, id+" ", "")
			}
		}
		if a.Group != group || a.Silent || a.Instance == "" {
			continue
		}
		same := step
		if a.From == "" && a.To == store.Pending && a.Rule == "REC-3" { // each says how many there are before it
			same = a.Rule
		}
		if count[same]++; count[same] == 1 {
			first[same] = len(steps)
			steps = append(steps, step)
		}
	}
	for same, i := range first {
		if n := count[same]; n > 1 {
			rule, rest, _ := strings.Cut(steps[i], "  ")
			steps[i] = fmt.Sprintf("%s  %d × %s", rule, n, rest)
		}
	}
	return steps, status
}

// snapshot is what etcd says of one group, as the planner takes it, with the changed spec in the place of the present one.
func (s *Session) snapshot(ctx context.Context, ch change) (plan.Snapshot, error) {
	keys, now := s.keys(), s.env.Now()
	listing, err := s.list(ctx, keys.Of(store.KindInstances)+ch.name+"-", 0)
	if err != nil {
		return plan.Snapshot{}, err
	}
	at := listing.Revision
	sn := plan.Snapshot{
		Keys: keys, Revision: at, Zones: map[string][]string{ch.after.Provider: ch.after.Template.Zones}, SessionTTL: 5 * time.Second,
		GraceEnd: now.Add(time.Hour), GraceWhy: "a dry run judges nobody lost",
	}
	if sn.Shard, _, err = findRecord[store.Shard](ctx, s, keys.Shard()); err != nil {
		return sn, err
	}
	g := plan.Group{
		Name: ch.name, SlotDue: map[int]plan.Due{},
		Spec: plan.Spec{Key: keys.Group(ch.name), Modified: at, Group: ch.after},
	}
	if g.Status, _, err = findRecord[store.Status](ctx, s, keys.Status(ch.name)); err != nil {
		return sn, err
	}
	slots, err := s.list(ctx, keys.Of(store.KindSlots)+ch.name+"/", at)
	if err != nil {
		return sn, err
	}
	if g.Slots, err = decodeAll[store.Slot](slots); err != nil {
		return sn, err
	}
	for _, slot := range g.Slots {
		if r := slot.Record.Retry; r != nil {
			g.SlotDue[slot.Record.Number] = plan.Due{store.TimerRetry: r.Start.Add(r.For.D())}
		}
	}
	if g.Instances, err = s.members(ctx, listing, ch.name); err != nil {
		return sn, err
	}
	sn.Groups = []plan.Group{g}
	return sn, nil
}

// members are the instances of a group with the evidence that etcd has of them.
func (s *Session) members(ctx context.Context, listing store.Listing, group string) ([]plan.Instance, error) {
	records, err := decodeAll[store.Instance](listing)
	if err != nil {
		return nil, err
	}
	alive, err := s.byID(ctx, store.KindAlive, group, listing.Revision)
	if err != nil {
		return nil, err
	}
	reports, err := s.byID(ctx, store.KindReports, group, listing.Revision)
	if err != nil {
		return nil, err
	}
	var members []plan.Instance
	for _, v := range records {
		if v.Record.Group != group {
			continue
		}
		m := plan.Instance{Versioned: v, PhaseStart: v.Record.Since}
		id := v.Record.ID
		if kv, ok := alive[id]; ok {
			if m.Alive, err = store.Decode[store.Alive](kv); err != nil {
				return nil, err
			}
		}
		m.Alive.Key = s.keys().Alive(id)
		if kv, ok := reports[id]; ok {
			if m.Report, err = store.Decode[store.Report](kv); err != nil {
				return nil, err
			}
		}
		m.Report.Key = s.keys().Report(id)
		members = append(members, m)
	}
	return members, nil
}

// byID lists the keys of a kind that are named after a group's instances.
func (s *Session) byID(ctx context.Context, kind, group string, at store.Revision) (map[string]store.KV, error) {
	l, err := s.list(ctx, s.keys().Of(kind)+group+"-", at)
	if err != nil {
		return nil, err
	}
	byID := map[string]store.KV{}
	for _, kv := range l.KVs {
		_, id, _ := s.keys().Split(kv.Key)
		byID[id] = kv
	}
	return byID, nil
}
