// Package clip shortens texts of unknown length, which came from outside, to what a message or a
// record has room for. Every package may use it.
package clip

import (
	"strings"
	"unicode/utf8"
)

// Start returns the beginning of a text in valid UTF-8, of at most so many bytes.
func Start(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// End returns the last part of a text in valid UTF-8, of at most so many bytes.
func End(text string, most int) string {
	if len(text) > most {
		text = text[len(text)-most:]
		for len(text) > 0 && !utf8.RuneStart(text[0]) {
			text = text[1:]
		}
	}
	return strings.ToValidUTF8(text, "?")
}

// Marked is Start with … after a text that was cut.
func Marked(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	return Start(text, most) + "…"
}
