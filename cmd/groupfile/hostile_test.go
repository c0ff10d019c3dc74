//go:build !race

// Nothing runs at once here, and the race detector would make it five times slower.

package groupfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/cmd/yamlfile"
)

// hostile are files that are as large as files may be, and bad in one way each.
func hostile() map[string]string {
	const n = yamlfile.MaxBytes - 200
	numbered := func(form string, most int) string {
		var b strings.Builder
		for i := 0; b.Len() < most; i++ {
			fmt.Fprintf(&b, form, i)
		}
		return b.String()
	}
	var bomb strings.Builder
	bomb.WriteString("a: &a [x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c < 'z'; c++ {
		fmt.Fprintf(&bomb, "%c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 9))
	}
	return map[string]string{
		"a list in a list":        strings.Repeat("[", n),
		"fields in fields":        strings.Repeat("{a: ", n/4),
		"nested and closed":       "name: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"indented lists":          strings.Repeat("- ", n/2),
		"unknown fields":          numbered("k%d: 1\n", n),
		"the same field":          strings.Repeat("a: 1\n", n/5),
		"one long key":            strings.Repeat("a:", n/2) + " 1",
		"documents":               strings.Repeat("---\na: 1\n", n/9),
		"zeros":                   strings.Repeat("\x00", n),
		"a zero":                  "name: we\x00b\n",
		"checks":                  "name: web\nchecks:\n" + strings.Repeat("- {}\n", n/5),
		"zones":                   "name: web\ntemplate: {zones: [" + strings.Repeat("a,", n/2) + "]}",
		"a bomb of aliases":       bomb.String() + "name: *y\n",
		"aliases":                 "a: &a [x]\n" + strings.Repeat("b: *a\n", n/6),
		"an alias to itself":      "name: &a [*a]\n",
		"merge keys":              "a: &a {x: 1}\nb: {<<: [" + strings.Repeat("*a,", n/3) + "]}",
		"commas":                  "[" + strings.Repeat(",", n),
		"quotes":                  strings.Repeat(`"`, n),
		"one long text":           "name: " + strings.Repeat("x", n),
		"no text":                 "name: \xff\xfe\n",
		"too large":               strings.Repeat("# nothing\n", n/5),
		"the same name for a key": "? [a, b]\n: 1\n",
	}
}

// For any file, messages are short and have a position.
//
// proves SEC-5
func TestHostileFilesAreRefused(t *testing.T) {
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			_, err := groupfile.Read("web.yaml", strings.NewReader(text))
			var problems yamlfile.Problems
			if !errors.As(err, &problems) {
				t.Fatalf("the error is %v", err)
			}
			if len(problems) > 101 || len(err.Error()) > 220_000 {
				t.Errorf("%d problems are told, in %d bytes", len(problems), len(err.Error()))
			}
		})
	}
}

// A file may have as much as groups can use.
func TestLargeFilesAreRead(t *testing.T) {
	var b strings.Builder
	for i := range groupfile.MaxGroups {
		fmt.Fprintf(&b, "---\nname: web%d\nprovider: process\nsize: 3\nworkload: {run: [%s]}\nvars:\n", i,
			strings.Repeat("a,", 255)+"a")
		for v := range 100 {
			fmt.Fprintf(&b, "  v%d: %s\n", v, strings.Repeat("x", 50))
		}
		b.WriteString("checks:\n")
		for c := range 32 {
			fmt.Fprintf(&b, "- {name: c%d, http: {port: 80, path: /health, status: [\"200\", \"204\"]}}\n", c)
		}
	}
	groups, err := groupfile.Read("web.yaml", strings.NewReader(b.String()))
	if err != nil || len(groups) != groupfile.MaxGroups {
		t.Fatalf("%d groups of %d KiB are read: %.500v", len(groups), b.Len()>>10, err)
	}
}

// FuzzRead reads anything.
//
// proves SEC-5
func FuzzRead(f *testing.F) {
	for _, text := range hostile() {
		f.Add(text[:min(len(text), 2000)])
	}
	f.Add("name: web\nprovider: process\nsize: 2\nworkload: {run: [sleep, \"${port}\"]}\nchecks:\n- " +
		"tcp: {port: 80}\n---\nname: db\n")
	f.Fuzz(func(t *testing.T, text string) {
		groups, err := groupfile.Read("web.yaml", strings.NewReader(text))
		if err != nil {
			_ = err.Error()
			return
		}
		for i := range groups {
			if err := groups[i].Validate(); err != nil {
				t.Errorf("what is read is not valid: %v", err)
			}
		}
	})
}
