package filetemplate

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

func data() Data {
	return Data{
		Vars: map[string]string{"greeting": "hello"}, Facts: map[string]any{"instance": "web-0-a", "slot": 3, "zone": "a"},
		Peers: []Peer{
			{Instance: "web-0-a", Slot: 0, Zone: "a", Address: "192.0.2.1:80"},
			{Instance: "web-1-b", Slot: 1, Zone: "b", Address: "[2001:db8::1]:81"},
		},
	}
}

// proves FILE-1
func TestRender(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"plain":                              "plain",
		"{{.Vars.greeting}} {{.Facts.slot}}": "hello 3",
		"{{range .Peers}}{{host .Address}}|{{port .Address}};{{end}}":                     "192.0.2.1|80;2001:db8::1|81;",
		"{{range .Peers}}{{if ne .Instance $.Facts.instance}}{{.Instance}}{{end}}{{end}}": "web-1-b",
		"{{with .Vars}}{{.greeting | quote}}{{end}}":                                      `"hello"`,
		`{{index .Vars "greeting"}} {{len .Peers}}`:                                       "hello 2",
		"{{range $i, $p := .Peers}}{{if $i}},{{end}}{{$p.Zone}}{{end}}":                   "a,b",
	} {
		p, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := p.Render(data()); err != nil || string(got) != want {
			t.Errorf("%s becomes %q, %v; want %q", text, got, err, want)
		}
	}
}

// What is wrong has its place in the template, also in a branch that is not taken.
//
// proves FILE-1
func TestErrorsHaveAPlace(t *testing.T) {
	for text, want := range map[string]string{
		"a\n{{.Vars.greting}}": "line 2, column 8: there is no .Vars.greting, there is greeting",
		"a\n  {{if false}}{{.Facts.port}}{{end}}": "line 2, column 23: there is no .Facts.port, " +
			"there is address, group, instance, slot, zone",
		"a\n\n{{.Vars.greeting": "line 3, column 1: unclosed action",
		"{{range .Peers}}x":     "line 1, column 1: unexpected EOF",
		"{{.Nothing}}": "line 1, column 3: can't evaluate field Nothing " +
			"in type filetemplate.Data",
		"{{range .Peers}}{{.Vars.greeting}}{{end}}": "line 1, column 24: can't evaluate field Vars " +
			"in type filetemplate.Peer",
		"{{shell `id`}}":            "line 1, column 1: function \"shell\" not defined",
		"x {{printf `%d` 1}}":       "line 1, column 5: function printf is not supported",
		"{{.Vars.greeting | html}}": "line 1, column 20: function html is not supported",
		"{{define `a`}}b{{end}}": "line 1, column 1: define and block are not supported: " +
			"write what they hold where it is used",
		"{{template `a`}}": "line 1, column 12: template is not supported: " +
			"write what it holds where it is used",
		`{{index .Vars "x"}}{{(index .Peers 9).Zone}}`: "line 1, column 23: error calling index: index out of range: 9",
		"{{call .Vars.greeting}}":                      "line 1, column 3: function call is not supported",
	} {
		p, err := Parse(text)
		if err == nil {
			err = p.Check(map[string]string{"greeting": "hello"}, 2)
		}
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

// Nothing that a template says makes rendering long or its result large.
//
// proves SEC-5
func TestRenderingIsBounded(t *testing.T) {
	for text, want := range map[string]string{
		"{{range 1000000000000}}{{end}}":                                            "too many steps",
		"{{range 1000000000000}}{{$x := 1}}{{end}}":                                 "too many steps",
		"{{range .Peers}}{{range 1000000000000}}{{end}}{{end}}":                     "too many steps",
		"{{range 1000000000000}}{{continue}}{{end}}":                                "too many steps",
		"{{range 1000000000000}}0123456789{{end}}":                                  "larger than 256 KiB",
		"{{$x := `0`}}{{range 100}}{{$x = quote $x}}{{end}}":                        "too long to be quoted",
		"{{range 1000000000000}}" + strings.Repeat("{{$x := 1}}", 5000) + "{{end}}": "too many steps",
		strings.Repeat("x", MaxBytes+1):                                             "larger than 256 KiB",
	} {
		p, err := Parse(text)
		if err == nil {
			_, err = p.Render(data())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
}

// Templates of any shape do no harm, and rendering the same twice gives the same.
func TestAnyTemplate(t *testing.T) {
	part := rapid.SampledFrom([]string{
		"{{", "}}", "range ", ".Peers", "end", "if ", ".Vars", ".greeting", "$x := ", "$x", " | ", "quote ", "host ", "(",
		")",
		"1000000", "`", "\n", "else", "break", "len ", "index ", "{{end}}", "{{range .Peers}}", "text", "with ", "$",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 0, 20).Draw(t, "parts"), "")
		p, err := Parse(text)
		if err != nil {
			return
		}
		a, err := p.Render(data())
		b, again := p.Render(data())
		if string(a) != string(b) || (err == nil) != (again == nil) {
			t.Fatalf("%s: %q %v, then %q %v", text, a, err, b, again)
		}
		if err := p.Check(map[string]string{"greeting": "x"}, 2); err != nil && err.Error() == "" {
			t.Fatal("an error without a text")
		}
	})
}

func TestWhatATemplateUses(t *testing.T) {
	for text, want := range map[string]string{
		"x":                                   "",
		"{{.Vars.greeting}}":                  "var",
		"{{range .Peers}}{{.Zone}}{{end}}":    "peers",
		"{{with $x := .}}{{$x.Peers}}{{end}}": "peers",
		"{{(index .Peers 0).Zone}}{{$.Facts.slot}}": "peers facts",
	} {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for name, ok := range map[string]bool{"var": p.UsesVar("greeting")} {
			if ok {
				got = append(got, name)
			}
		}
		if p.UsesPeers() {
			got = append(got, "peers")
		}
		if p.UsesFacts() {
			got = append(got, "facts")
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s uses %v, want %s", text, got, want)
		}
	}
}
