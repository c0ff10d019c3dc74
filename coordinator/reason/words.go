package reason

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Age returns how long ago something was, in at most two units: 41s, 3m, 2h14m, 6d. It is never
// negative: a clock ahead of ours gives 0s. The zero time has the age "-".
func Age(now, then time.Time) string {
	if then.IsZero() {
		return "-"
	}
	return Span(now.Sub(then))
}

// Span formats a duration as Age does.
func Span(d time.Duration) string {
	switch d = max(d, 0).Truncate(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 10*time.Minute && d%time.Minute != 0:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour && int(d.Minutes())%60 != 0:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	}
}

// Counted formats a number with its noun.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Number formats a number with a noun whose plural ends in s.
func Number(n int, of string) string { return Counted(n, of, of+"s") }

// Verb returns the form of a verb that a number asks for.
func Verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func are(n int) string { return Verb(n, "is", "are") }

// areOf is the verb after a number of others: 0 of 1 slot is, 1 of 2 slots is, 2 of 2 slots are.
func areOf(n, of int) string {
	if of == 1 {
		return "is"
	}
	return are(n)
}

func has(n int) string { return Verb(n, "has", "have") }

// maxNames limits the names in one sentence.
const maxNames = 10

// Names lists the first names of many, as in a sentence.
func Names(names []string) string { return FirstNames(names, maxNames) }

// FirstNames lists at most the given number of names, and counts the others.
func FirstNames(names []string, most int) string {
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// OneLine makes a text safe for one cell of one row: it removes all control characters.
func OneLine(s string) string {
	clean := func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			return '?'
		default:
			return r
		}
	}
	return strings.Map(clean, s)
}

// plainWord is a word that no shell changes.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_-]+$`)

// ShellWord quotes a word for a shell if necessary: people copy the commands that are shown to
// them, and what stands in them may come from a URL.
func ShellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
