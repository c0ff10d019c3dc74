package groupfile

import (
	"reflect"
	"strings"
	"testing"
)

// Settings of a template have any shape, and come back as they were written.
//
// proves PROV-3
func TestNestedSettings(t *testing.T) {
	const head = "name: web\nsize: 1\nprovider: acme\ntemplate:\n  settings: "
	groups, err := Read("web.yaml",
		strings.NewReader(head+`{image: "010", disks: [{gib: 20, ssd: true}], ratio: 0.5, none: {}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"image": "010", "disks": []any{map[string]any{"gib": 20.0, "ssd": true}}, "ratio": 0.5, "none": map[string]any{},
	}
	if got := groups[0].Template.Settings; !reflect.DeepEqual(got, want) {
		t.Errorf("read as %#v", got)
	}
	text, err := Write(groups[0])
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read("web.yaml", strings.NewReader(string(text)))
	if err != nil || !reflect.DeepEqual(again[0].Template, groups[0].Template) {
		t.Errorf("%s comes back as %+v, %v", text, again, err)
	}
	for settings, says := range map[string]string{
		"[a]":                   "must be names and values",
		"{a: 010}":              "template.settings.a: 010: must be a whole number in plain digits",
		"{a: 0x10}":             "plain digits",
		"{a: 9007199254740993}": "plain digits",
		"{a: .inf}":             "must be a number",
		"{a: null}":             "must be text, a number, true or false",
		"{a: 2026-01-02}":       "must be text, a number, true or false",
		"{a: [1, {b: 1_000}]}":  "template.settings.a[1].b",
		"{a: &x 1, b: *x}":      "alias",
		"{a: 1, a: 2}":          "duplicate",
		"{a: " + strings.Repeat("x", 64<<10) + "}": "at most 64 KiB",
	} {
		_, err := Read("web.yaml", strings.NewReader(head+settings))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60s: %.300v, want %q", settings, err, says)
		}
	}
}
