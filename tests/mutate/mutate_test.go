package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sample is a package with one place for each operator, and two places with the same text.
const sample = `package sample

import "time"

type pair struct{ a, b int }

func Decide(n int, now, due time.Time, flags []bool) (pair, bool) {
	p := pair{a: n}
	if n > 3 && !now.Before(due) || flags[0] {
		p.b = max(n, 5) - 1
	}
	for _, f := range []bool{true, n == 2} {
		if !f {
			continue
		}
		p.a++
	}
	switch n {
	case 7:
		return pair{}, true
	}
	if n > 3 {
		return p, false
	}
	return p, n < 2
}
`

const sampleTest = `package sample

import (
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	now := time.Unix(0, 0)
	if p, ok := Decide(4, now, now, []bool{false}); p != (pair{5, 4}) || ok {
		t.Error(p, ok)
	}
}

func TestNothing(t *testing.T) {}
`

// The tool finds the mutants of a package, compiles them all at once, and tells those that a test
// catches from those that none does.
func TestMutants(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module sample\n\ngo 1.26\n", "sample/sample.go": sample,
		"sample/sample_test.go": sampleTest,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src, err := load(dir, "sample")
	if err != nil {
		t.Fatal(err)
	}
	changed, mutants := rewrite(src)
	b, err := build(src, changed, t.TempDir(), src.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.survey(regexp.MustCompile(""), func(int, int, string) {}); err != nil {
		t.Fatal(err)
	}
	if len(b.tests) != 2 || len(b.failing) != 0 {
		t.Fatalf("%d tests pass and %v fail without a mutant, want 2 and none", len(b.tests), b.failing)
	}
	outcomes := map[string]outcome{}
	for _, m := range mutants {
		outcomes[strings.TrimPrefix(m.key(), "sample.go\tDecide\t")] = b.try(m)
	}
	if len(outcomes) != len(mutants) {
		t.Errorf("%d mutants have %d names", len(mutants), len(outcomes))
	}
	for name, want := range map[string]outcome{
		"true\tn > 3":                      survived,
		"boundary\tn > 3":                  survived,
		"boundary\tnow.Before(due)":        caught,
		"true\t!now.Before(due)":           survived,
		"false\tflags[0]":                  unreached,
		"raise\t5":                         caught,
		"swap\tmax(n, 5)":                  caught,
		"swap\tmax(n, 5) - 1":              caught,
		"delete\tp.b = max(n, 5) - 1":      caught,
		"zero\tn":                          caught,
		"drop\ttrue":                       caught,
		"flip\ttrue":                       caught,
		"drop\tn == 2":                     survived,
		"true\tn == 2":                     caught,
		"false\t!f":                        caught,
		"delete\tcontinue":                 caught,
		"delete\tp.a++":                    caught,
		"case\t7":                          survived,
		"flip\ttrue #2":                    unreached,
		"false\tn > 3":                     survived,
		"boundary\tn < 2":                  unreached,
		"flip\tfalse":                      caught,
		"false\tn > 3 && !now.Before(due)": caught,
		"raise\t3":                         caught,
	} {
		got, found := outcomes[name]
		if !found {
			t.Errorf("no mutant %q", name)
		} else if got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	if t.Failed() {
		for _, name := range slices.Sorted(maps.Keys(outcomes)) {
			t.Logf("%s: %s", name, outcomes[name])
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "sample/sample.go")); err != nil || string(got) != sample {
		t.Errorf("the source was changed: %v", err)
	}
}

// The list may only shrink: it names each survivor and nothing else.
func TestVerdict(t *testing.T) {
	mutants := []mutant{
		{1, "a.go", "F", opTrue, "x"},
		{2, "a.go", "F", opFalse, "x"},
		{3, "a.go", "F", opZero, "y"},
		{4, "a.go", "F", opDrop, "z"},
	}
	outcomes := map[string]outcome{
		"a.go\tF\ttrue\tx": caught, "a.go\tF\tfalse\tx": survived,
		"a.go\tF\tzero\ty": unreached,
	}
	for _, test := range []struct {
		name, list string
		sample     bool
		unlisted   int
		stale      int
	}{
		{"nothing is listed", "", true, 2, 0},
		{
			"both survivors are", "# why\na.go\tF\tfalse\tx\tequivalent: because\n\na.go\tF\tzero\ty\taccepted: because\n",
			true, 0, 0,
		},
		{"one that is caught", "a.go\tF\ttrue\tx\tequivalent: because", true, 2, 1},
		{"one that was not tried", "a.go\tF\tdrop\tz\tequivalent: because", true, 2, 0},
		{"one that is not there", "b.go\tF\tdrop\tz\tequivalent: because", false, 2, 1},
		{"one that is not there, in a sample", "b.go\tF\tdrop\tz\tequivalent: because", true, 2, 0},
	} {
		accepted, err := parseAccepted("list", test.list)
		if err != nil {
			t.Fatal(err)
		}
		v := judge(mutants, outcomes, accepted, test.sample)
		if len(v.unlisted) != test.unlisted || len(v.stale) != test.stale ||
			v.clean() != (test.unlisted+test.stale == 0) {
			t.Errorf("%s: %q are not listed and %q are stale, want %d and %d", test.name, v.unlisted, v.stale,
				test.unlisted, test.stale)
		}
	}
	for _, bad := range []string{
		"a.go\tF\ttrue\tx", "a.go\tF\ttrue\tx\tbecause", "a.go F true x equivalent: because",
		"a.go\tF\ttrue\tx\taccepted: a\na.go\tF\ttrue\tx\taccepted: b",
	} {
		if _, err := parseAccepted("list", bad); err == nil {
			t.Errorf("%q is taken for a list", bad)
		}
	}
}

// Each accepted mutant is in a function or a variable that still exists: one that was renamed or
// moved is listed under its new name. Otherwise only the nightly run shows it, hours later.
func TestAcceptedMutantsAreInFunctionsThatExist(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	lists, err := filepath.Glob(acceptedFile(root, "*"))
	if err != nil || len(lists) < 4 {
		t.Fatalf("%v, lists are %q", err, lists)
	}
	for _, list := range lists {
		name := strings.TrimSuffix(filepath.Base(list), ".txt")
		places := map[string]bool{}
		for name, file := range parsedFiles(t, filepath.Join(root, strings.ReplaceAll(name, "-", "/"))) {
			for _, d := range file.Decls {
				for _, place := range namesOf(d) {
					places[name+"\t"+place] = true
				}
			}
		}
		accepted, err := readAccepted(list)
		if err != nil {
			t.Fatal(err)
		}
		for key := range accepted {
			fields := strings.SplitN(key, "\t", 3)
			if !places[fields[0]+"\t"+fields[1]] {
				t.Errorf("%s: there is no %s in %s", name, fields[1], fields[0])
			}
		}
	}
}

// parsedFiles returns the files of a package, without its tests, by name.
func parsedFiles(t *testing.T, dir string) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, no files", dir, err)
	}
	out := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(name)] = file
	}
	return out
}

// namesOf returns the names that mutants in a declaration have as their function.
func namesOf(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil && len(d.Recv.List) > 0 {
			return []string{receiver(d.Recv.List[0].Type) + "." + d.Name.Name}
		}
		return []string{d.Name.Name}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				names = append(names, v.Names[0].Name)
			}
		}
	}
	return names
}
