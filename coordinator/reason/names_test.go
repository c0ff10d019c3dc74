package reason

import (
	"strings"
	"testing"
)

// Names in a sentence are ten at most, and the others are counted.
func TestNamesInASentence(t *testing.T) {
	names := strings.Split("a b c d e f g h i j k l", " ")
	for n, want := range map[int]string{
		1: "a", 2: "a, b", maxNames: "a, b, c, d, e, f, g, h, i, j",
		maxNames + 1: "a, b, c, d, e, f, g, h, i, j and 1 more",
		maxNames + 2: "a, b, c, d, e, f, g, h, i, j and 2 more",
	} {
		if got := Names(names[:n]); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}
