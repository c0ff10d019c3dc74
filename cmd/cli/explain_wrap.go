package cli

import (
	"strings"
	"unicode/utf8"

	"github.com/leasehold/leasehold/cmd/output"
)

// columns is how wide lines are on a terminal.
const columns = 80

// folded breaks a text into lines of at most so many characters, between words. A word that is longer stands alone.
func folded(text string, width int) []string {
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

// writeWrapped writes a text after a first part: on a terminal wrapped, and what follows indented as far as the first part; else
// as one line.
func writeWrapped(b *strings.Builder, scr output.Screen, first, text string) {
	text = output.OneLine(text)
	if !scr.Terminal {
		b.WriteString(first + text + "\n")
		return
	}
	indent := utf8.RuneCountInString(first)
	for i, line := range folded(text, columns-indent) {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", indent))
		} else {
			b.WriteString(first)
		}
		b.WriteString(line + "\n")
	}
}
