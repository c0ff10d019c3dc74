package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

func told(variable, name, value string, revision uint64) Received {
	return Received{Variable: variable, Name: name, Value: []byte(value), Revision: revision}
}

// proves SEC-6
func TestNoFormOfAValueIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[!-~]{6,60}`).Draw(t, "value")
		around := rapid.StringMatching(`[g-z ]{0,9}`)
		before, after := around.Draw(t, "before"), around.Draw(t, "after")
		h := New()
		h.Tell([]Received{told("X", "db", value, 1)})
		quoted, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var unescaped strings.Builder
		enc := json.NewEncoder(&unescaped)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(value); err != nil {
			t.Fatal(err)
		}
		for what, form := range map[string]string{
			"JSON of other programs": unescaped.String()[1 : unescaped.Len()-2], // without quotes and line end
			"plain":                  value, "hex": hex.EncodeToString([]byte(value)), "HEX": fmt.Sprintf("%X", value),
			"base64":          base64.RawStdEncoding.EncodeToString([]byte(value))[:len(value)*8/6],
			"base64 for URLs": base64.RawURLEncoding.EncodeToString([]byte(value))[:len(value)*8/6],
			"URL":             url.QueryEscape(value), "JSON": string(quoted[1 : len(quoted)-1]),
		} {
			if got := h.Veil(before + form + after); strings.Contains(got, form) &&
				!strings.Contains("[secret db]"+before+after, form) {
				t.Fatalf("%s: %q shows %q", what, got, value)
			}
		}
		// As part of a longer text in base64, wherever it begins there.
		for n := range 3 {
			long := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("u", n) + value + "tail"))
			if got := h.Veil(long); !strings.Contains(got, "[secret db]") {
				t.Fatalf("%q within base64: %q", value, got)
			}
		}
	})
}

// proves SEC-6
func TestWhatIsVeiled(t *testing.T) {
	h := New()
	h.Tell([]Received{
		told("A", "db", "hunter2-and-more", 1), told("B", "pin", "12345", 2),
		told("C", "pem", "-----BEGIN-----\nMIIEvQIBADANBgkq\nshort\n", 3), told("D", "part", "hunter2", 4),
	})
	for text, want := range map[string]string{
		"nothing":                  "nothing",
		"db=hunter2-and-more.":     "db=[secret db].",
		"hunter2":                  "[secret part]",
		"pin 12345 is too short":   "pin 12345 is too short",
		"a line: MIIEvQIBADANBgkq": "a line: [secret pem]",
		"a short line stays":       "a short line stays",
		"hunter2-and-more hunter2": "[secret db] [secret part]",
	} {
		if got := h.Veil(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	// A text that was cut may begin within a value.
	if got := string(h.VeilEnd([]byte("and-more\nnext"))); got != "[secret db]\nnext" {
		t.Errorf("a cut text became %q", got)
	}
	if got := string(h.VeilEnd([]byte("er2-and-more hunter2-and-more"))); strings.Contains(got, "er2") {
		t.Errorf("a cut text became %q", got)
	}
	// A value that was replaced is still what the workload was started with.
	h.Tell([]Received{told("A", "db", "another-value", 9)})
	if got := h.Veil("hunter2-and-more another-value"); got != "[secret db] [secret db]" {
		t.Errorf("after a change: %q", got)
	}
	var none *Holder
	if none.Veil("x") != "x" || none.Missing() != "" || none.Blind() || none.Environ() != nil || none.Tell(nil) ||
		string(none.VeilEnd([]byte("x"))) != "x" {
		t.Error("a holder that is none knows secrets")
	}
}

// proves SEC-6
func TestWhatIsMissing(t *testing.T) {
	h := New()
	if h.Missing() != "" || h.Blind() {
		t.Error("without secrets something is missing")
	}
	h.Want(map[string]string{"A": "a", "B": "b"})
	if h.Missing() != "no coordinator has sent its secrets yet" || !h.Blind() {
		t.Errorf("missing %q, blind %t", h.Missing(), h.Blind())
	}
	if !h.Tell([]Received{told("A", "a", "value-a", 1), {Variable: "B", Name: "b", Problem: "there is none"}}) {
		t.Error("no news")
	}
	if h.Missing() != "secret b (B): there is none" || h.Blind() || !slices.Equal(h.Environ(), []string{"A=value-a"}) {
		t.Errorf("missing %q, blind %t, environment %d", h.Missing(), h.Blind(), len(h.Environ()))
	}
	list := []Received{told("A", "a", "value-a", 1), told("B", "b", "value-b", 2)}
	before := h.Number()
	if !h.Tell(list) || h.Tell(list) || h.Missing() != "" || h.Number() != before+1 {
		t.Errorf("missing %q, number %d after %d", h.Missing(), h.Number(), before)
	}
	// A replica that cannot read what another one could takes nothing away; that a secret is gone
	// does.
	list[0] = Received{Variable: "A", Name: "a", Revision: 1, Problem: "no keys"}
	if h.Tell(list) || h.Missing() != "" {
		t.Errorf("missing %q", h.Missing())
	}
	list[0] = Received{Variable: "A", Name: "a", Problem: "there is none"}
	if !h.Tell(list) || h.Missing() == "" {
		t.Error("nothing is missing though a secret is gone")
	}
	if !h.Tell(nil) && h.Missing() != "" || len(h.Environ()) != 0 {
		t.Errorf("without secrets: missing %q", h.Missing())
	}
}

// proves SEC-6
func TestValuesAreNotPrinted(t *testing.T) {
	h := New()
	one := told("A", "a", "hunter2", 1)
	h.Tell([]Received{one})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		if got := fmt.Sprintf(verb+verb+verb, h, one, []Received{one}); strings.Contains(got, "hunter2") ||
			strings.Contains(got, "104 117 110") || strings.Contains(got, "68756e") {
			t.Errorf("%s prints %q", verb, got)
		}
	}
}
