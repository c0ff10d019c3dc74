package groupfile

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Problem is one thing that is wrong in a file, and where.
type Problem struct {
	File   string
	Line   int // from 1; 0: nowhere in particular
	Column int
	Field  string // as a path: report.interval; "" if it is about no field
	What   string // what is wrong, and what is allowed
}

func (p Problem) Error() string {
	var b strings.Builder
	if p.Field != "" {
		b.WriteString(short(p.Field) + ": ")
	}
	b.WriteString(short(p.What))
	switch {
	case p.Line > 0:
		fmt.Fprintf(&b, " (%s:%d:%d)", p.File, p.Line, p.Column)
	default:
		fmt.Fprintf(&b, " (%s)", p.File)
	}
	return b.String()
}

// Problems is everything that is wrong in a file, in the order of the file.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return ps
}

// reading is the state of one reading of one file.
type reading struct {
	file     string
	problems Problems
}

func (r *reading) wrong(at *yaml.Node, field, format string, args ...any) {
	p := Problem{File: r.file, Field: field, What: fmt.Sprintf(format, args...)}
	if at != nil {
		p.Line, p.Column = at.Line, at.Column
	}
	r.problems = r.problems.With(p)
}
