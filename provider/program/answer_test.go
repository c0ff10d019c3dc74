package program

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A program's long text is cut between two characters.
func TestClip(t *testing.T) {
	for _, before := range []string{"", "x", "xx"} {
		if text := Clip(before + strings.Repeat("€", 500)); !utf8.ValidString(text) || len(text) < 500 {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
	if Clip("short") != "short" {
		t.Error("a short text is changed")
	}
}
