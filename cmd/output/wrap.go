package output

import (
	"strings"
	"unicode/utf8"
)

// The widths of lines of text on a terminal: at most, so that they are easy to read, and at least.
const (
	LineWidth = 80
	minWidth  = 40
)

// LineWidth returns the width of lines of text.
func (s Screen) LineWidth() int {
	if s.Width <= 0 {
		return LineWidth
	}
	return max(minWidth, min(LineWidth, s.Width))
}

// Fit shortens a text to a number of columns, with … as its end.
func Fit(text string, columns int) string {
	if r := []rune(text); len(r) > columns {
		return string(r[:columns-1]) + "…"
	}
	return text
}

// Folded breaks a text into lines of at most the given number of characters, between words. A
// longer word has a line of its own.
func Folded(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

// WriteWrapped writes a text after a prefix: on a terminal wrapped and indented to the end of the
// prefix, elsewhere as one line.
func WriteWrapped(b *strings.Builder, scr Screen, first, text string) {
	text = OneLine(text)
	if !scr.Terminal {
		b.WriteString(first + text + "\n")
		return
	}
	indent := utf8.RuneCountInString(first)
	for i, line := range Folded(text, max(minOf, scr.LineWidth()-indent)) {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", indent))
		} else {
			b.WriteString(first)
		}
		b.WriteString(line + "\n")
	}
}
