package reason

import (
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// Left is what a rollback does not bring back.
type Left struct {
	// Secrets are the names of those that the restored workload gets: with the values of now.
	Secrets []string
	Beside  bool // size, budgets, rollout and windows, too
}

// LeftBy returns what a rollback to a spec does not bring back. Whole: all of the spec is restored,
// not only what instances are made from.
func LeftBy(spec *store.InstanceSpec, whole bool) Left {
	secrets := slices.Sorted(maps.Values(spec.Secrets))
	return Left{Secrets: slices.Compact(secrets), Beside: !whole}
}

// String says it in a line.
func (l Left) String() string {
	text := "not brought back: what the workloads have written, and the values of secrets"
	if len(l.Secrets) > 0 {
		text += " (" + strings.Join(l.Secrets, ", ") + ")"
	}
	if l.Beside {
		text += "; size, budgets, rollout and windows stay as they are"
	}
	return text
}
