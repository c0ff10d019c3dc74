package main

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
)

// slugs names headings as GitHub does, so that a link works in both places.
type slugs struct{ taken map[string]bool }

// Generate names a heading by its text.
func (s *slugs) Generate(value []byte, _ ast.NodeKind) []byte {
	slug := slugOf(string(value))
	for n := 1; s.taken[slug]; n++ {
		slug = fmt.Sprintf("%s-%d", slugOf(string(value)), n)
	}
	s.taken[slug] = true
	return []byte(slug)
}

// Put takes a name that a page gives by itself.
func (s *slugs) Put(value []byte) { s.taken[string(value)] = true }

func slugOf(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}
