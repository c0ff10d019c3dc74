package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/suggest"
)

// judgeSources refuses a group that names a metric which no running coordinator has: its size would
// follow nothing (AUTO-1).
func (s *Session) judgeSources(ctx context.Context, changes []change) error {
	if !slices.ContainsFunc(changes, func(ch change) bool { return len(ch.after.Sources()) > 0 }) {
		return nil
	}
	replicas, err := s.replicas(ctx)
	if err != nil || len(replicas) == 0 {
		return err
	}
	var had []string
	for _, r := range replicas {
		had = append(had, r.Record.Sources...)
	}
	had = sorted(had)
	for _, ch := range changes {
		for _, name := range ch.after.Sources() {
			if !slices.Contains(had, name) {
				return unknownSource(ch.name, name, had)
			}
		}
	}
	return nil
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

func unknownSource(group, name string, known []string) error {
	have := "they have none"
	next := "name it under metrics in the file of --providers of each coordinator, and start them anew"
	if len(known) > 0 {
		have = "they have: " + strings.Join(known, ", ")
		var search suggest.Search
		for _, k := range known {
			search.Consider(name, k, k, 1)
		}
		if best := search.Best(); best != "" {
			next = "use from: " + best + ", or " + next
		}
	}
	return failure(Usage, next, "%s: no running coordinator has the metric %q; %s (AUTO-1)", group, name, have)
}
