package groupfile

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// The bounds of what a file may say, so that reading one ends soon, whatever is in it (SEC-5). Aliases are not followed, so what a file says is not more
// than what it has.
const (
	MaxValues   = 100_000 // a group of the most of everything has below 20,000
	MaxDepth    = 50      // lists and fields in each other; a group has 6
	MaxKey      = 300     // bytes; names of variables and headers have up to 100
	maxProblems = 100     // that are told
	maxShown    = 1000    // bytes of one of them
)

// Beyond says what of a document is more than any that we read has, and where; "" if nothing is. It counts its values off those left.
func Beyond(root *yaml.Node, left *int) (at *yaml.Node, what string) { return beyond(root, left, 0) }

func beyond(n *yaml.Node, left *int, depth int) (*yaml.Node, string) {
	if *left--; *left < 0 {
		return n, fmt.Sprintf("more than %d values in one file", MaxValues)
	}
	if depth > MaxDepth {
		return n, fmt.Sprintf("more than %d lists and fields in each other", MaxDepth)
	}
	for i, part := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && len(part.Value) > MaxKey {
			return part, fmt.Sprintf("a key of %d bytes: at most %d can be", len(part.Value), MaxKey)
		}
		if at, what := beyond(part, left, depth+1); what != "" {
			return at, what
		}
	}
	return nil, ""
}

// With adds a problem, up to a readable number of them.
func (ps Problems) With(p Problem) Problems {
	switch {
	case len(ps) < maxProblems:
	case len(ps) == maxProblems:
		p.Field, p.What = "", "there are more problems: correct these first"
	default:
		return ps
	}
	return append(ps, p)
}

// Full says that no more problems are told.
func (ps Problems) Full() bool { return len(ps) > maxProblems }

// short is a text as far as it is shown.
func short(s string) string {
	if len(s) > maxShown {
		return s[:maxShown-3] + "..."
	}
	return s
}
