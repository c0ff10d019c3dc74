package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// Shortest is the length, in bytes, from which a value is removed from texts.
const Shortest = 6

// longLine is the length from which a line of a multi-line value is removed: shorter lines say
// little and occur elsewhere too.
const longLine = 12

// maxForms bounds the number of forms; only values that are replaced very often come near it. The
// oldest are dropped first.
const maxForms = 2000

// form is a text that would reveal a secret.
type form struct{ text, instead string }

// veil removes values from texts.
type veil struct {
	forms []form // oldest first
	order []form // longest first, so that no part of a longer form is left over
}

// NewVeil returns a function that removes these values, by name, from texts.
func NewVeil(values map[string]string) func(text string) string {
	var v veil
	for name, value := range values {
		v.add(name, value)
	}
	return v.over
}

func (v *veil) add(name, value string) {
	if len(value) < Shortest {
		return
	}
	instead := "[secret " + name + "]"
	put := func(text string, least int) {
		if len(text) >= least && !slices.ContainsFunc(v.forms, func(f form) bool { return f.text == text }) {
			v.forms = append(v.forms, form{text, instead})
		}
	}
	put(value, Shortest)
	put(hex.EncodeToString([]byte(value)), Shortest)
	put(strings.ToUpper(hex.EncodeToString([]byte(value))), Shortest)
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		// In base64 of a longer text the value begins at one of three offsets; the characters at
		// both ends depend on their neighbours.
		for before := range 3 {
			text := enc.EncodeToString(append(make([]byte, before), value...))
			from := (before*8 + 5) / 6
			to := (before + len(value)) * 8 / 6
			put(text[from:to], Shortest)
		}
	}
	put(url.QueryEscape(value), Shortest)
	put(url.PathEscape(value), Shortest)
	for _, html := range []bool{true, false} { // only Go escapes < > & by default
		var quoted strings.Builder
		enc := json.NewEncoder(&quoted)
		enc.SetEscapeHTML(html)
		if enc.Encode(value) == nil {
			put(quoted.String()[1:quoted.Len()-2], Shortest) // without quotes and line end
		}
	}
	if lines := strings.Split(value, "\n"); len(lines) > 1 {
		for _, line := range lines {
			put(strings.TrimSpace(line), longLine)
		}
	}
	v.forms = v.forms[max(0, len(v.forms)-maxForms):]
	v.order = slices.Clone(v.forms)
	slices.SortStableFunc(v.order, func(a, b form) int { return len(b.text) - len(a.text) })
}

func (v *veil) over(text string) string {
	for _, f := range v.order {
		text = strings.ReplaceAll(text, f.text, f.instead)
	}
	return text
}

// overEnd also removes the rest of a form that a cut has left at the beginning.
func (v *veil) overEnd(text string) string {
	text = v.over(text)
	for _, f := range v.order {
		for n := min(len(f.text)-1, len(text)); n >= Shortest/2; n-- {
			if strings.HasPrefix(text, f.text[len(f.text)-n:]) {
				return f.instead + text[n:]
			}
		}
	}
	return text
}
