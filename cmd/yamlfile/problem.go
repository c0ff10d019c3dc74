package yamlfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/provider/clip"
)

const (
	maxProblems = 100  // that are reported
	maxText     = 1000 // bytes of each
	maxValue    = 60   // bytes of a value in a problem
)

// Problem is one problem in a file, and its position.
type Problem struct {
	File   string
	Line   int // from 1; 0: unknown
	Column int
	Field  string // as a path: report.interval; "" if the problem is not about a field
	What   string // what is wrong, and what is allowed
}

func (p Problem) Error() string {
	var b strings.Builder
	if p.Field != "" {
		b.WriteString(clip.Marked(p.Field, maxText) + ": ")
	}
	b.WriteString(clip.Marked(p.What, maxText))
	switch {
	case p.Line > 0:
		fmt.Fprintf(&b, " (%s:%d:%d)", p.File, p.Line, p.Column)
	default:
		fmt.Fprintf(&b, " (%s)", p.File)
	}
	return b.String()
}

// Problems lists all problems of a file, in the order of the file.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
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

// Full reports whether further problems are dropped.
func (ps Problems) Full() bool { return len(ps) > maxProblems }

// Sorted returns the problems in the order of the file.
func (ps Problems) Sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
	return ps
}
