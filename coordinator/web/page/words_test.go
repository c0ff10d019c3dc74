package page

import "testing"

// proves WEB-2: names and texts that are made into links stay text
func TestLinkedTextStaysText(t *testing.T) {
	for _, c := range []struct {
		text, want string
		ids        []string
	}{
		{"it waits for web-1", `it waits for <a href="/i/web-1">web-1</a>`, []string{"web-1"}},
		{"web-1, web-12", `<a href="/i/web-1">web-1</a>, <a href="/i/web-12">web-12</a>`, []string{"web-1", "web-12"}},
		{"<script>a</script>", `&lt;script&gt;a&lt;/script&gt;`, []string{""}},
		{`<a>"x: <b>`, `<a href="/i/%3Ca%3E%22x">&lt;a&gt;&#34;x</a>: &lt;b&gt;`, []string{`<a>"x`}},
		{"nothing", "nothing", nil},
	} {
		if got := string(linked(c.text, c.ids)); got != c.want {
			t.Errorf("%q with %q: got %s, want %s", c.text, c.ids, got, c.want)
		}
	}
	if got := plain("The [page](page.md) of `top` [1]"); got != "The page of top [1]" {
		t.Errorf("plain: %q", got)
	}
}
