package store_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// An error of a file shows the value as it is, what would be right, and the rule.
//
// proves FILE-1, FILE-3, SEC-6
func TestWrongValuesOfFilesAreShown(t *testing.T) {
	for _, c := range []struct {
		field  string
		change func(*store.File)
		shown  string
		rule   string
	}{
		{"path", path("a"), `"a"`, "FILE-1"},
		{"secret", asSecret("Db"), `"Db"`, "SEC-6"},
		{"owner", func(f *store.File) { f.Owner = "a b" }, `"a b"`, "FILE-3"},
		{"mode", func(f *store.File) { f.Mode = "9" }, `"9"`, "FILE-3"},
		{"on_change", func(f *store.File) { f.OnChange.Do = "reboot" }, `"reboot"`, "FILE-3"},
		{"on_change", func(f *store.File) {
			f.OnChange = store.FileChange{Do: store.FileRun, Run: []string{"", "x"}}
		}, `{"run":["","x"]}`, "FILE-3"},
		{"on_change", func(f *store.File) {
			f.OnChange = store.FileChange{Do: store.FileReload, Run: []string{"x"}}
		}, `"reload"`, "FILE-3"},
		{"settle", func(f *store.File) { f.Settle = 5e9 }, "5s", "FILE-1"},
	} {
		err := filed(c.change).Validate()
		wrong := fieldErrors(err)
		at := slices.IndexFunc(store.Fields, func(f store.Field) bool { return f.Path == "files[]."+c.field })
		if len(wrong) != 1 || wrong[0].Path != "files[0]."+c.field || wrong[0].Value != c.shown || wrong[0].Rule != c.rule ||
			wrong[0].Allowed != store.Fields[at].Allowed {
			t.Errorf("%s: %v, want %s (%s)", c.field, err, c.shown, c.rule)
		}
	}
}

// A file has exactly one content. Where it has none or several, that alone is said.
//
// proves FILE-1
func TestFilesHaveOneContent(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*store.File)
		shown  string
	}{
		"none": {func(f *store.File) { f.Text = nil }, "none of them"},
		"none, and a time that is for templates": {
			func(f *store.File) { f.Text, f.Settle = nil, 5e9 }, "none of them",
		},
		"a text and a template": {func(f *store.File) { f.Template = "x" }, "several of them"},
		"a text and a secret":   {func(f *store.File) { f.Secret = "a" }, "several of them"},
		"a template and a secret": {
			func(f *store.File) { f.Text, f.Template, f.Secret = nil, "x", "a" }, "several of them",
		},
		"a text and a certificate": {func(f *store.File) {
			f.Certificate = &store.FileCertificate{Authority: "web", Names: []string{"a"}, Key: "/etc/app/key"}
		}, "several of them"},
	} {
		err := filed(c.change).Validate()
		wrong := fieldErrors(err)
		if len(wrong) != 1 || wrong[0].Path != "files[0]" || wrong[0].Value != c.shown {
			t.Errorf("%s: %v, want %s", name, err, c.shown)
		}
	}
}

// A template is judged with as many peers as the group has, two at least and 1,000 at most. Its
// error has the place in the template; of one that is too large only that is said.
//
// proves FILE-1, FILE-3
func TestTemplatesThatAreRefused(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	// The text takes the whole room of a group, up to one byte.
	filling := func(text string, more int) string { return text + long(64<<10+more-len(text)) }
	for name, c := range map[string]struct {
		size   int
		change func(*store.File)
		wrong  string // the fields
		says   string
		line   int
	}{
		"few peers, each with a kilobyte": {
			size: 6, change: asTemplate("{{range .Peers}}" + long(1<<10) + "{{end}}"),
		},
		"many": {
			size: 300, change: asTemplate("{{range .Peers}}" + long(1<<10) + "{{end}}"),
			wrong: "files[0].template", says: "larger than 256 KiB", line: 1,
		},
		"no more than 1,000": {size: 3_000, change: asTemplate("{{range .Peers}}" + long(200) + "{{end}}")},
		"two for a group of one": {
			size: 1, change: asTemplate("{{range .Peers}}{{range $.Peers}}" + long(20<<10) + "{{end}}{{end}}"),
		},
		"no such variable": {
			size: 1, change: asTemplate("a\n {{.Vars.color}}"), wrong: "files[0].template",
			says: "line 2, column 9: there is no .Vars.color, there is greeting", line: 2,
		},
		"as large as it may be, and wrong": {
			size: 1, change: asTemplate(filling("{{", 0)), wrong: "files[0].template", says: "line 1, column 1", line: 1,
		},
		"as large as it may be, without a variable": {
			size: 1, change: asTemplate(filling("{{.Vars.color}}", 0)), wrong: "files[0].template",
			says: "there is no .Vars.color", line: 1,
		},
		"too large, and wrong": {
			size: 1, change: asTemplate(filling("{{", 1)), wrong: "files", says: "65537 bytes",
		},
		"too large, without a variable": {
			size: 1, change: asTemplate(filling("{{.Vars.color}}", 1)), wrong: "files", says: "65537 bytes",
		},
		"a restart without peers": {size: 1, change: func(f *store.File) {
			asTemplate("{{.Vars.greeting}}")(f)
			f.OnChange.Do = store.FileRestart
		}},
		"a restart for peers": {size: 1, change: func(f *store.File) {
			asTemplate("{{len .Peers}}")(f)
			f.OnChange.Do = store.FileRestart
		}, wrong: "files[0].on_change", says: `"restart"`},
	} {
		g := filed(c.change)
		g.Size = c.size
		err := g.Validate()
		wrong := fieldErrors(err)
		switch {
		case c.wrong == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.wrong != "" && (len(wrong) != 1 || wrong[0].Path != c.wrong ||
			!strings.Contains(wrong[0].Value, c.says) || wrong[0].Line != c.line || (wrong[0].Column > 0) != (c.line > 0)):
			t.Errorf("%s: %.300v, want that %s is refused: %s", name, err, c.wrong, c.says)
		}
	}
}

// A secret is private unless its file says otherwise.
//
// proves SEC-6
func TestPermissionsOfFiles(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*store.File)
		want   string
	}{
		"a text":                 {func(*store.File) {}, "0644"},
		"a template":             {asTemplate("x"), "0644"},
		"a secret":               {asSecret("a"), "0600"},
		"what the operator says": {func(f *store.File) { asSecret("a")(f); f.Mode = "0640" }, "0640"},
	} {
		if got := filed(c.change).Files[0].Mode; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// What follows a change is a word or a command, and nothing of what was read before it stays.
func TestReadingWhatFollowsAChange(t *testing.T) {
	for text, want := range map[string]store.FileChange{
		`"none"`:                {},
		`"reload"`:              {Do: store.FileReload},
		`"restart"`:             {Do: store.FileRestart},
		` {"run": ["a", "-b"]}`: {Do: store.FileRun, Run: []string{"a", "-b"}},
		`{"run":[]}`:            {Do: store.FileRun, Run: []string{}},
	} {
		for _, before := range []store.FileChange{{}, {Do: store.FileRun, Run: []string{"x"}}, {Do: store.FileReload}} {
			got := before
			if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s after %+v: %+v, %v", text, before, got, err)
			}
		}
		var compact any
		if err := json.Unmarshal([]byte(text), &compact); err != nil {
			t.Fatal(err)
		}
		if got := string(store.Encode(want)); got != string(store.Encode(compact)) {
			t.Errorf("%+v is written as %s", want, got)
		}
	}
	for text, says := range map[string]string{
		`7`:                         "on_change must be none, reload, restart or {run: [...]}",
		`["reload"]`:                "on_change must be none, reload, restart or {run: [...]}",
		`{"run":["a"],"every":"s"}`: "every",
		`{"run":"a"}`:               "run",
	} {
		var got store.FileChange
		if err := json.Unmarshal([]byte(text), &got); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v, %v; want an error that says %s", text, got, err, says)
		}
	}
}

// A file that says on_change: restart restarts the workload for a variable that comes, goes or
// changes, if its template uses it.
//
// proves FILE-3, ROLL-2
func TestVariablesThatNeedARestart(t *testing.T) {
	spec := func(template string, vars map[string]string) store.InstanceSpec {
		g := filed(func(f *store.File) {
			asTemplate(template)(f)
			f.OnChange.Do = store.FileRestart
		})
		g.Vars = vars
		return g.InstanceSpec()
	}
	optional := `{{range $name, $value := .Vars}}{{if eq $name "color"}}{{$value}}{{end}}{{end}}`
	none, empty := map[string]string{"a": "b"}, map[string]string{"a": "b", "color": ""}
	red, blue := map[string]string{"a": "b", "color": "red"}, map[string]string{"a": "b", "color": "blue"}
	for name, c := range map[string]struct {
		template string
		was, now map[string]string
		want     bool
	}{
		"the same":                           {optional, red, red, false},
		"another value":                      {optional, red, blue, true},
		"a new variable":                     {optional, none, red, true},
		"a new variable, empty":              {optional, none, empty, true},
		"a variable is gone":                 {optional, red, none, true},
		"an empty variable is gone":          {optional, empty, none, true},
		"another one":                        {"{{.Vars.a}}", red, blue, false},
		"a template that is not known":       {"{{.Vars.a", red, blue, true}, // of another release
		"all variables, one of them another": {"{{range $n, $v := .Vars}}{{$n}}={{$v}} {{end}}", red, blue, true},
		"all variables, a new one":           {"{{range $n, $v := .Vars}}{{$n}}={{$v}} {{end}}", none, red, true},
		"a variable in a text":               {"color: {{.Vars.a}}", red, blue, false},
	} {
		was, now := spec(c.template, c.was), spec(c.template, c.now)
		if got := store.FilesNeedRestart(&was, &now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
