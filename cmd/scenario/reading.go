package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/store"
	"go.yaml.in/yaml/v4"
)

// reading is the state of one reading of one file.
type reading struct {
	file     string
	problems groupfile.Problems
	applied  groupfile.Problems // of files that events apply
	setting  Setting
	groups   []store.Group // all that there are at any time
	known    []string      // their names
	zones    []string      // of the provider
	sections []Section
}

// Section is a mapping of a scenario, with the fields that it may have.
type Section struct {
	Path   string
	Fields []Field
}

func (r *reading) wrong(at *yaml.Node, field, format string, args ...any) {
	p := groupfile.Problem{File: r.file, Field: field, What: fmt.Sprintf(format, args...)}
	if at != nil {
		p.Line, p.Column = at.Line, at.Column
	}
	r.problems = r.problems.With(p)
}

func (r *reading) sorted() groupfile.Problems {
	slices.SortStableFunc(r.problems, func(a, b groupfile.Problem) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	return append(r.problems, r.applied...)
}

func isNothing(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}

// nearest names what was probably meant, for the end of a message; "" if nothing is near.
func nearest(name string, known []string) string {
	best, score := "", 0.0
	for _, k := range known {
		if s := levenshtein.Similarity(strings.ToLower(name), k, nil); s > score {
			best, score = k, s
		}
	}
	if score < 0.5 {
		return ""
	}
	return fmt.Sprintf(": did you mean %s?", best)
}
