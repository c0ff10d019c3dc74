package reason

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// Every kind of cause is a sentence of its own, made from its fields, and comes back from a record
// as it was. A record of a release without fields shows its text.
func TestSentences(t *testing.T) {
	seen := map[string]store.CauseKind{}
	for _, kind := range store.CauseKinds {
		c := store.Cause{
			Kind: kind, By: "ada", Other: "web-1-b", Name: "name", Count: 2, Limit: 3, For: store.Duration(1e9),
			Text: "its words",
		}
		text := Short(c)
		if text == "" || strings.HasSuffix(text, ".") || strings.Contains(text, "%!") {
			t.Errorf("%s: %q", kind, text)
		}
		if other, there := seen[text]; there && text != "its words" {
			t.Errorf("%s and %s: both %q", kind, other, text)
		}
		seen[text] = kind
		if got := Text(Recorded(c), "older words"); got != text {
			t.Errorf("%s: recorded as %q, want %q", kind, got, text)
		}
	}
	for kind := range fixed {
		if seen[fixed[kind]] != kind {
			t.Errorf("%s is not among the kinds", kind)
		}
	}
	for _, kind := range []store.CauseKind{
		"", store.CauseAge, store.CauseUnneeded, store.CauseSmaller, store.CauseGroupEnds, store.CauseCalm,
	} {
		if got := Text(store.Cause{Kind: kind}, "older words"); got != "older words" {
			t.Errorf("%s of an older release: %q", kind, got)
		}
	}
}

// What else there is to know about a cause follows it, in one order.
func TestAlso(t *testing.T) {
	c := store.Cause{Kind: store.CauseDead, Heir: "web-1-h", Also: &store.CauseAlso{
		Keeper: "web-1-k", Until: "web-1-u", Place: "web-1-p", Left: "it was lost", Made: "it is the last good template",
	}}
	want := "takes the place of web-1-p: it is dead; it is the last good template; web-1-k keeps the slot; " +
		"web-1-u keeps the slot until there is a better one; it left because: it was lost; " +
		"web-1-h is healthy in its place"
	if got := Short(c); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if clause := Clause(c, "older words"); clause != strings.TrimSuffix(want, "; web-1-h is healthy in its place") {
		t.Errorf("after because: %s", clause)
	}
}
