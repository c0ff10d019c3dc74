package cli

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// An entry is one line, and none of its texts reaches the terminal as an escape sequence,
// also of one that another program wrote to etcd.
//
// proves WEB-2
func TestEventLineOfAHostileEntry(t *testing.T) {
	const evil = "\x1b]0;pwned\x07\tx\r\ny"
	e := store.JournalEntry{
		At: noon, By: evil, Rule: evil, Group: evil, Instance: evil, What: evil, Why: evil,
	}
	for _, terminal := range []bool{false, true} {
		text := eventLine(output.Screen{Terminal: terminal}, e, noon, true)
		if strings.ContainsAny(text, "\x1b\x07\r") || strings.Count(text, "\n") != 1 {
			t.Errorf("terminal %t: %q", terminal, text)
		}
		if !terminal && strings.Count(text, "\t") != 7 {
			t.Errorf("wrong number of columns: %q", text)
		}
	}
}
