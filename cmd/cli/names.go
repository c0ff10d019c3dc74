package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/suggest"
	"github.com/leasehold/leasehold/cmd/yamlfile"
)

// judgeChanges refuses what a file alone does not show to be wrong: names that no coordinator
// knows, and paths that no agent can write.
func (inv *Invocation) judgeChanges(ctx context.Context, changes []groupChange) error {
	if err := inv.judgeSources(ctx, changes); err != nil {
		return err
	}
	return inv.judgePlaces(ctx, changes)
}

// judgeSources refuses a change that adds a metric which no running coordinator has, at its place
// in the file: the group's size would follow nothing, or its analysis would never end waiting
// (AUTO-1, ROLL-5).
func (inv *Invocation) judgeSources(ctx context.Context, changes []groupChange) error {
	if !slices.ContainsFunc(changes, func(ch groupChange) bool { return len(ch.sourceFields()) > 0 }) {
		return nil
	}
	replicas, err := inv.replicas(ctx)
	if err != nil || len(replicas) == 0 {
		return err
	}
	var had []string
	for _, r := range replicas {
		had = append(had, r.Record.Sources...)
	}
	slices.Sort(had)
	had = slices.Compact(had)
	var wrong yamlfile.Problems
	next := ""
	for _, ch := range changes {
		for _, f := range ch.sourceFields() {
			if !slices.Contains(had, f.name) {
				what, step := unknownSource(f, had)
				wrong, next = append(wrong, ch.file.Problem(f.field, what)), cmp.Or(next, step)
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return &misspelt{Problems: wrong, next: next}
}

// sourceField is a field of a group that names an external metric.
type sourceField struct{ field, name, rule string }

// sourceFields returns the fields with which a file adds metrics to a group that stays. Metrics
// that the group names already are left out: status reports them, and they must not prevent another
// change.
func (c *groupChange) sourceFields() (fields []sourceField) {
	if c.file == nil || c.after.Deleting {
		return nil
	}
	var had []string
	if c.before != nil && c.broken == nil {
		had = c.before.Sources()
	}
	add := func(name, rule, list string, i int) {
		if name != "" && !slices.Contains(had, name) {
			fields = append(fields, sourceField{fmt.Sprintf("%s[%d].from", list, i), name, rule})
		}
	}
	if c.after.Scale != nil {
		for i, t := range c.after.Scale.Targets {
			add(t.From, "AUTO-1", "scale.targets", i)
		}
	}
	for i := range c.after.Rollout.Analysis {
		add(c.after.Rollout.Analysis[i].From, "ROLL-5", "rollout.analysis", i)
	}
	return fields
}

func unknownSource(f sourceField, known []string) (what, next string) {
	have := "they have none"
	next = "name it under metrics in the file of --providers of each coordinator, and restart them"
	if len(known) > 0 {
		have = "they have: " + strings.Join(known, ", ")
		var search suggest.Search
		for _, k := range known {
			search.Consider(f.name, k, k, 1)
		}
		if best := search.Best(); best != "" {
			next = "use from: " + best + ", or " + next
		}
	}
	return fmt.Sprintf("no running coordinator has the metric %q; %s (%s)", f.name, have, f.rule), next
}
