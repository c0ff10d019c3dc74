package clip

import "testing"

// A text is cut to its bytes between characters, and what is no UTF-8 becomes valid.
func TestClip(t *testing.T) {
	for _, c := range []struct {
		text               string
		most               int
		start, end, marked string
	}{
		{"", 3, "", "", ""},
		{"abc", 3, "abc", "abc", "abc"},
		{"abcd", 3, "abc", "bcd", "abc…"},
		{"abcd", 0, "", "", "…"},
		{"äöü", 3, "ä", "ü", "ä…"},
		{"äöü", 4, "äö", "öü", "äö…"},
		{"a\xffb", 3, "a?b", "a?b", "a?b"},
		{"\xe2\x82", 1, "?", "", "?"},
	} {
		if got := Start(c.text, c.most); got != c.start {
			t.Errorf("Start(%q, %d) is %q, want %q", c.text, c.most, got, c.start)
		}
		if got := End(c.text, c.most); got != c.end {
			t.Errorf("End(%q, %d) is %q, want %q", c.text, c.most, got, c.end)
		}
		if got := Marked(c.text, c.most); got != c.marked {
			t.Errorf("Marked(%q, %d) is %q, want %q", c.text, c.most, got, c.marked)
		}
	}
}
