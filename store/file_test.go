package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// filed returns a group with one valid file, changed.
func filed(change func(*store.File)) store.Group {
	g := validGroup()
	g.Vars = map[string]string{"greeting": "hello"}
	text := "x"
	f := store.File{Path: "/etc/app/x", Text: &text}
	change(&f)
	g.Files = []store.File{f}
	g.Complete()
	return g
}

func asTemplate(text string) func(*store.File) {
	return func(f *store.File) { f.Text, f.Template = nil, text }
}

func asSecret(name string) func(*store.File) {
	return func(f *store.File) { f.Text, f.Secret = nil, name }
}

// proves FILE-1, FILE-3
func TestBoundsOfFiles(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	owner := func(o string) func(*store.File) { return func(f *store.File) { f.Owner = o } }
	mode := func(m string) func(*store.File) { return func(f *store.File) { f.Mode = m } }
	change := func(c store.FileChange) func(*store.File) { return func(f *store.File) { f.OnChange = c } }
	settle := func(d string) func(*store.File) {
		return func(f *store.File) {
			asTemplate("x")(f)
			if err := f.Settle.UnmarshalText([]byte(d)); err != nil {
				t.Fatal(err)
			}
		}
	}
	both := func(f *store.File) { f.Template = "x" }
	for _, c := range []struct {
		field  string
		change func(*store.File)
		ok     bool
	}{
		{"path", path("/a"), true},
		{"path", path("/" + long(254)), true},
		{"path", path("${dir}/files/a"), true},
		{"path", path("/" + long(255)), false},
		{"path", path(""), false},
		{"path", path("a"), false},
		{"path", path("/"), false},
		{"path", path("/a/../b"), false},
		{"path", path("/a/"), false},
		{"path", path("//a"), false},
		{"path", path("${dir}"), false},
		{"path", path("${dir}/../a"), false},
		{"path", path("${dira"), false},
		{"path", path("/a\x00"), false},
		{"template", asTemplate("{{.Vars.greeting}}"), true},
		{"template", asTemplate("{{.Vars.nothing}}"), false},
		{"template", asTemplate("{{"), false},
		{"template", asTemplate("{{range .Peers}}" + long(60<<10) + "{{end}}"), false}, // with all of the group's peers
		{"secret", asSecret("db-password"), true},
		{"secret", asSecret("Db"), false},
		{"owner", owner("www-data:adm"), true},
		{"owner", owner("1000:1000"), true},
		{"owner", owner("a b"), false},
		{"owner", owner(":adm"), false},
		{"mode", mode("0640"), true},
		{"mode", mode("640"), true},
		{"mode", mode("4755"), false},
		{"mode", mode("9"), false},
		{"on_change", change(store.FileChange{Do: store.FileReload}), true},
		{"on_change", change(store.FileChange{Do: store.FileRun, Run: []string{"a"}}), true},
		{"on_change", change(store.FileChange{Do: "reboot"}), false},
		{"on_change", change(store.FileChange{Do: store.FileRun}), false},
		{"settle", settle("1s"), true},
		{"settle", settle("1h"), true},
		{"settle", settle("999ms"), false},
		{"settle", settle("1h0m1s"), false},
		{"settle", func(f *store.File) { f.Settle = 5e9 }, false}, // no template
		{"", both, false},
		{"", func(f *store.File) { f.Text = nil }, false},
	} {
		g := filed(c.change)
		g.Size = 6
		var paths []string
		for _, e := range fieldErrors(g.Validate()) {
			paths = append(paths, e.Path)
		}
		want := strings.TrimSuffix("files[0]."+c.field, ".")
		switch {
		case c.ok && len(paths) > 0:
			t.Errorf("%+v: %v", g.Files[0], g.Validate())
		case !c.ok && (len(paths) != 1 || paths[0] != want):
			t.Errorf("%+v: %v, want an error of %s", g.Files[0], g.Validate(), want)
		}
	}
}

func TestListsOfFiles(t *testing.T) {
	for what, c := range map[string]struct {
		number, bytes int
		wrong         string
	}{
		"the most files": {store.MaxFiles, 1, ""},
		"one more": {
			store.MaxFiles + 1, 1,
			"files: 33 files: must be at most 32 files, bundles of certificates included (FILE-1)",
		},
		"the most text": {16, 4 << 10, ""},
		"more text":     {16, 4<<10 + 1, "files: 65552 bytes of text and templates: must be at most 64 KiB (FILE-1)"},
	} {
		g := validGroup()
		for i := range c.number {
			text := strings.Repeat("x", c.bytes)
			g.Files = append(g.Files, store.File{Path: fmt.Sprintf("/etc/%d", i), Text: &text})
		}
		g.Complete()
		if err := g.Validate(); (err == nil) != (c.wrong == "") || err != nil && err.Error() != c.wrong {
			t.Errorf("%s: %v, want %q", what, err, c.wrong)
		}
	}
	g := filed(func(*store.File) {})
	g.Files = append(g.Files, g.Files[0])
	if errs := fieldErrors(g.Validate()); len(errs) != 1 || errs[0].Path != "files[1].path" {
		t.Errorf("the same path twice: %v", g.Validate())
	}
	// A change of peers rolls nothing, so nothing may depend on it.
	g = filed(func(f *store.File) {
		asTemplate("{{range .Peers}}{{end}}")(f)
		f.OnChange.Do = store.FileRestart
	})
	if errs := fieldErrors(g.Validate()); len(errs) != 1 || errs[0].Path != "files[0].on_change" {
		t.Errorf("a restart for peers: %v", g.Validate())
	}
}

// A spec without files has the hashes that it had before there were files; a change of a file has
// others.
//
// proves FILE-3
func TestHashesOfFiles(t *testing.T) {
	g := validGroup()
	if got := g.InstanceSpec().TemplateHash() + " " + g.InstanceSpec().ConfigHash(); got != hashesWithoutFiles {
		t.Errorf("hashes of a group without files are %s", got)
	}
	seen := []string{g.InstanceSpec().ConfigHash()}
	for _, change := range []func(*store.File){
		func(*store.File) {}, path("/b"), asTemplate("x"), asSecret("a"),
		func(f *store.File) { f.Mode = "0600" }, func(f *store.File) { f.OnChange.Do = store.FileReload },
	} {
		g := filed(change)
		g.Vars = nil
		hash := g.InstanceSpec().ConfigHash()
		if slices.Contains(seen, hash) {
			t.Errorf("%+v has the hash of another one", g.Files)
		}
		seen = append(seen, hash)
		back, err := store.ReadGroup(store.Encode(g))
		if err != nil || back.InstanceSpec().ConfigHash() != hash {
			t.Errorf("stored and read, %+v is %+v, %v", g.Files, back.Files, err)
		}
	}
}

const hashesWithoutFiles = "tbbf2ea0a cbed21c90"

func path(p string) func(*store.File) { return func(f *store.File) { f.Path = p } }

// proves FILE-3, ROLL-2
func TestFilesThatNeedARestart(t *testing.T) {
	restart := func(text string) store.Group {
		return filed(func(f *store.File) {
			asTemplate(text)(f)
			f.OnChange.Do = store.FileRestart
		})
	}
	was := restart("{{.Vars.greeting}}")
	other := was
	other.Vars = map[string]string{"greeting": "bye"}
	apart := was
	apart.Vars = map[string]string{"greeting": "hello", "color": "red"}
	live := filed(asTemplate("y"))
	for what, c := range map[string]struct {
		now  store.Group
		want bool
	}{
		"the same":                        {was, false},
		"another text":                    {restart("x"), true},
		"a variable that it uses":         {other, true},
		"a variable that it does not use": {apart, false},
		"a file that is not for restarts": {live, false},
		"no file":                         {validGroup(), false},
	} {
		before, now := was.InstanceSpec(), c.now.InstanceSpec()
		if got := store.FilesNeedRestart(&before, &now); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
	none, now := validGroup().InstanceSpec(), was.InstanceSpec()
	if !store.FilesNeedRestart(&none, &now) {
		t.Error("a new file needs none")
	}
}
