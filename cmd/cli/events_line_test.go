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

// On a narrow terminal an entry is folded between words, and its further lines are indented.
//
// proves OBS-1
func TestEventLineOnANarrowTerminal(t *testing.T) {
	e := store.JournalEntry{
		At: noon, Rule: "ROLL-1", Group: "web", What: "roll to t9f9b5b83 is complete",
		Why: "4 of 4 are healthy and up to date",
	}
	for width, want := range map[int]string{
		0:   "12:00:00 ROLL-1   web            roll to t9f9b5b83 is complete: 4 of 4 are healthy and up to date\n",
		120: "12:00:00 ROLL-1   web            roll to t9f9b5b83 is complete: 4 of 4 are healthy and up to date\n",
		60: "12:00:00 ROLL-1   web            roll to t9f9b5b83 is\n" +
			"         complete: 4 of 4 are healthy and up to date\n",
		30: "12:00:00 ROLL-1   web            \n         roll to t9f9b5b83 is\n" +
			"         complete: 4 of 4 are\n         healthy and up to\n         date\n",
	} {
		if got := eventLine(output.Screen{Terminal: true, Width: width}, e, noon, false); got != want {
			t.Errorf("%d columns:\n%swant\n%s", width, got, want)
		}
	}
}
