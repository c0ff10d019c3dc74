package groupfile

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

func staticWeb() map[string]store.Group {
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Size, g.Vars = "web", "process", 3, map[string]string{"a": "1"}
	g.Complete()
	return map[string]store.Group{"web": g}
}

func judge(t *testing.T, text string) ([]Entry, error) {
	t.Helper()
	f, err := Parse("web.yaml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return f.Judge(staticWeb())
}

// proves REC-6
func TestOfAStaticGroupAFileSaysLittle(t *testing.T) {
	entries,
		err := judge(t,
		"name: web\nsize: 8\ntemplate: {instance_type: large}\nvars: {b: \"2\"}\n---\nname: api\nprovider: process\n")
	if err != nil || len(entries) != 2 {
		t.Fatalf("got %+v, %v", entries, err)
	}
	size, kind := 8, "large"
	want := store.Override{
		Schema: 1, Name: "web", Size: &size, Template: store.OverrideTemplate{InstanceType: &kind},
		Vars: map[string]string{"b": "2"},
	}
	if !reflect.DeepEqual(entries[0].Override, &want) ||
		!reflect.DeepEqual(entries[0].Group, want.Over(staticWeb()["web"])) {
		t.Errorf("got %+v", entries[0])
	}
	if entries[1].Override != nil || entries[1].Group.Name != "api" {
		t.Errorf("got %+v", entries[1])
	}
	text, err := WriteOverride(want)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := judge(t, string(text)); err != nil || !reflect.DeepEqual(again[0].Override, entries[0].Override) ||
		!reflect.DeepEqual(again[0].Group, entries[0].Group) {
		t.Errorf("%s comes back as %+v, %v", text, again, err)
	}
}

// proves REC-6
func TestOfAStaticGroupAFileSaysNothingElse(t *testing.T) {
	const beside = ": cannot be set: the group is static, and only size, template.instance_type and " +
		"vars can be set beside it (REC-6)"
	for _, c := range []struct{ name, text, want string }{
		{
			"two fields", "name: web\nprovider: qemu\nsize: 1\nbudget:\n  max_expansion: 2\n",
			`provider: "qemu"` + beside + " (web.yaml:2:11)\nbudget.max_expansion: 2" + beside + " (web.yaml:5:18)",
		},
		{"even as it is", "name: web\nprovider: process\n", `provider: "process"` + beside + " (web.yaml:2:11)"},
		{
			"part of the template", "name: web\ntemplate: {zones: [a]}\n",
			"template.zones: a list" + beside + " (web.yaml:2:19)",
		},
		{"a size that none has", "name: web\nsize: -1\n", "size: -1: must be 0 to 100000 (web.yaml:2:7)"},
		{"a misspelt field", "name: web\nsise: 1\n", "sise: unknown field: did you mean size? (web.yaml:2:1)"},
	} {
		if _, err := judge(t, c.text); err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestNotBesideStatic(t *testing.T) {
	got := NotBesideStatic([]string{
		"size", "vars", "vars.a", "template.instance_type", "template.zones[0]", "varsity",
		"provider",
	})
	if want := []string{"template.zones[0]", "varsity", "provider"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
