package yamlfile

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A long problem is cut between two characters.
func TestLongProblems(t *testing.T) {
	for _, before := range []string{"", "x", "xx"} {
		text := Problem{What: before + strings.Repeat("€", maxText), File: "f"}.Error()
		if !utf8.ValidString(text) || len(text) < maxText-4 || len(text) > maxText+10 {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
}
