// Package suggest finds the name that was probably meant by a misspelt one.
package suggest

import (
	"strings"

	"github.com/agext/levenshtein"
)

// threshold is the similarity, from 0 to 1, below which two names are unrelated.
const threshold = 0.5

// Nearest returns the known name that is most similar, or "" if none is similar.
func Nearest(name string, known []string) string {
	var s Search
	for _, k := range known {
		s.Consider(name, k, k, 1)
	}
	return s.Best()
}

// DidYouMean returns the end of a message that suggests the most similar known name; "" if none is
// similar.
func DidYouMean(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}

// Search compares a name with candidates of different weight. The zero value is ready to use.
type Search struct {
	best  string
	score float64
}

// Consider compares a name with a candidate, which stands for as. A weight below 1 makes it yield
// to candidates that are about as similar; of equals the first is kept.
func (s *Search) Consider(name, candidate, as string, weight float64) {
	score := weight * levenshtein.Similarity(strings.ToLower(name), strings.ToLower(candidate), nil)
	if score > s.score {
		s.best, s.score = as, score
	}
}

// Best returns the most similar candidate, or "" if none is similar.
func (s *Search) Best() string {
	if s.score < threshold {
		return ""
	}
	return s.best
}
