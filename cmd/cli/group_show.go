package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// GroupShow is the command group show.
type GroupShow struct {
	Group string `arg:"" help:"Name of the group."`
}

// groupDocument is one group in JSON: its records as stored.
type groupDocument struct {
	Group    json.RawMessage `json:"group"`    // override of a static group
	Revision store.Revision  `json:"revision"` // its revision, for group apply --if-revision
	Static   json.RawMessage `json:"static,omitempty"`
	InForce  json.RawMessage `json:"in_force,omitempty"` // the static group merged with its override
	Status   json.RawMessage `json:"status"`
}

// Run shows the group.
func (c *GroupShow) Run(ctx context.Context, inv *Invocation) error {
	g, err := inv.group(ctx, c.Group)
	if err != nil {
		return err
	}
	if done, err := inv.records(documentOf(g)); done {
		return err
	}
	listing, err := inv.list(ctx, inv.keys().Of(store.KindSlots)+g.Name+"/", 0)
	if err != nil {
		return err
	}
	slots, err := decodeAll[store.Slot](listing)
	if err != nil {
		return err
	}
	slices.SortFunc(slots, func(a, b store.Versioned[store.Slot]) int { return a.Record.Number - b.Record.Number })
	leaders, err := inv.list(ctx, inv.keys().Of(store.KindLeader), 0)
	if err != nil {
		return err
	}
	scr, v, now := inv.screen(), story.RowOf(g), inv.env.Now()
	fmt.Fprintf(scr.W, "%s  %s  %s healthy  %s running  for %s\n", g.Name, v.State, v.Health, v.Run,
		output.Age(now, v.Since))
	fmt.Fprintf(scr.W, "now: %s\n", output.OneLine(v.Now))
	for _, line := range story.NowLines(g.Status.Record, slots, now) {
		fmt.Fprintln(scr.W, output.OneLine(line))
	}
	if err := showSpec(scr, g); err != nil {
		return err
	}
	leads := len(leaders.KVs) > 0
	found := story.GroupProblems(g, leads, now)
	if !leads {
		found = append(found, problem{
			What:  "no coordinator is running: no work is done for this group",
			About: inv.flags.Shard, Remedies: story.Inspect("leasehold status"),
		})
	}
	return writeProblems(scr, found)
}

// documentOf returns the group for JSON.
func documentOf(g group) groupDocument {
	d := groupDocument{Group: asJSON(g.Stored.Value), Revision: g.Stored.Modified, Status: g.Raw}
	if g.IsStatic() {
		d.Static = asJSON(g.Static.Value)
		if g.Bad == nil {
			d.InForce = store.Encode(g.Spec)
		}
	}
	return d
}

// showSpec shows the spec.
func showSpec(scr output.Screen, g group) error {
	if g.IsStatic() {
		beside := "no overrides"
		if g.Stored.Modified != 0 {
			beside = fmt.Sprintf("overrides of revision %d", g.Stored.Modified)
		}
		fmt.Fprintf(scr.W, "static: written by config apply at revision %d; %s (REC-6)\n", g.Static.Modified, beside)
	}
	if g.Bad == nil && g.Spec.Source != "" {
		fmt.Fprintf(scr.W, "source: %s (leasehold apply)\n", output.OneLine(g.Spec.Source))
	}
	switch {
	case g.Gone():
		fmt.Fprintln(scr.W, "spec: none in groups/")
	case g.Bad == nil:
		fmt.Fprintf(scr.W, "spec: revision %d, template %s%s\n", g.Revision(), g.Spec.InstanceSpec().TemplateHash(),
			inForceNow(g))
		text, err := groupfile.Write(g.Spec)
		if err != nil {
			return err
		}
		fmt.Fprintf(scr.W, "%s\n", indented(text))
	default:
		fmt.Fprintf(scr.W, "spec: revision %d, which cannot be used%s\n", g.Revision(), inForceNow(g))
	}
	return nil
}

// inForceNow describes whether the spec in groups/ is the one in force.
func inForceNow(g group) string {
	switch at := g.Status.Record.AcceptedRevision; {
	case g.StatusBad != nil:
		return "; its status, which says whether it is in force, cannot be read"
	case at == 0:
		return "; none is in force yet"
	case at == g.Revision():
		return ", in force"
	default:
		return fmt.Sprintf("; the spec of revision %d is in force", at)
	}
}

// indented indents a text, without its last line break.
func indented(text []byte) string {
	var out []byte
	for i, b := range text {
		if i == 0 || text[i-1] == '\n' {
			out = append(out, "  "...)
		}
		if b != '\n' || i != len(text)-1 {
			out = append(out, b)
		}
	}
	return string(out)
}
