package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each mutant changes the product, and what it makes of it compiles.
func TestMutantsCompile(t *testing.T) {
	root, err := projectRoot()
	if err != nil {
		t.Fatal(err)
	}
	source := load(t, root)
	for _, m := range All() {
		t.Run(m.Name, func(t *testing.T) {
			replaced, err := m.source(root)
			if err != nil {
				t.Fatal(err)
			}
			texts := map[string][]byte{}
			for _, r := range replaced {
				texts[r.File] = r.Text
				if was, err := os.ReadFile(r.File); err != nil || bytes.Equal(was, r.Text) {
					t.Errorf("it leaves %s as it is (%v)", r.File, err)
				}
			}
			for _, dir := range directories(texts) {
				if err := source.check(dir, texts); err != nil {
					t.Error(err)
				}
			}
		})
	}
	t.Run("what does not is noticed", func(t *testing.T) { noticed(t, root, source) })
}

// noticed shows that what is tested above can fail.
func noticed(t *testing.T, root string, source *source) {
	for _, m := range []Mutant{
		{Name: "unknown name", Edits: []Edit{{
			File: "coordinator/commit.go", Old: "leader.Fenced(t.fence,",
			New: "leader.Unknown(t.fence,",
		}}},
		{Name: "unused variable", Edits: []Edit{{
			File: "coordinator/plan/judge.go",
			Old:  "case !streamGone || see.Times < 2:", New: "case see.Times < 2:",
		}}},
		{Name: "unused import", Edits: []Edit{{
			File: "coordinator/journal.go",
			Old:  "txn.Writes = slices.Clone(txn.Writes)", New: "",
		}}},
	} {
		replaced, err := m.source(root)
		if err != nil {
			t.Fatal(err)
		}
		if source.check(filepath.Dir(replaced[0].File), map[string][]byte{replaced[0].File: replaced[0].Text}) == nil {
			t.Errorf("%s: not noticed", m.Name)
		}
	}
	for _, e := range []Edit{
		{File: "coordinator/commit.go", Old: "this stands nowhere", New: "x"},
		{File: "coordinator/commit.go", Old: "err", New: "x"},
		{File: "coordinator/none.go", Old: "err", New: "x"},
	} {
		if _, err := (Mutant{Name: "wrong", Edits: []Edit{e}}).source(root); err == nil {
			t.Errorf("%+v: not noticed", e)
		}
	}
}

func TestMutantsSayWhatTheyAre(t *testing.T) {
	root, err := projectRoot()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile(filepath.Join(root, "docs", "rules.md"))
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	known := map[string]bool{}
	for _, m := range All() {
		if known[m.Name] || !name.MatchString(m.Name) {
			t.Errorf("%q is no name, or not unique", m.Name)
		}
		known[m.Name] = true
		if m.What == "" || len(m.Rules) == 0 || len(m.Edits) == 0 || len(m.Likely) > 0 && m.Scenario != "" {
			t.Errorf("%s does not say all of what it is", m.Name)
		}
		for _, rule := range m.Rules {
			if !strings.Contains(string(rules), "\n| "+rule+" | ") {
				t.Errorf("%s breaks %s, which docs/rules.md does not know", m.Name, rule)
			}
		}
		if found, ok := Named(m.Name); !ok || found.What != m.What {
			t.Errorf("%s is not found by its name", m.Name)
		}
	}
	if _, ok := Named("unknown"); ok {
		t.Error("there is an unknown mutant")
	}
}

func directories(texts map[string][]byte) (out []string) {
	for file := range texts {
		if dir := filepath.Dir(file); !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return out
}

// source is the project's packages as they are, against which changed ones are compiled as far as
// their types.
type source struct {
	files   map[string][]string // of each package, by its directory
	parsed  *token.FileSet
	imports types.Importer // of what each package exports
}

// load has go list compile, or find in its cache, all that mutants can import.
func load(t *testing.T, root string) *source {
	t.Helper()
	args := []string{"list", "-buildvcs=false", "-deps", "-export", "-json=Dir,ImportPath,Export,GoFiles"}
	for _, m := range All() {
		for _, e := range m.Edits {
			args = append(args, "./"+filepath.ToSlash(filepath.Dir(e.File)))
		}
	}
	list := exec.CommandContext(t.Context(), "go", args...)
	list.Dir = root
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	var problem strings.Builder
	list.Stderr = &problem
	out, err := list.Output()
	if err != nil {
		t.Fatalf("list what mutants change: %v\n%s", err, problem.String())
	}
	s := &source{files: map[string][]string{}, parsed: token.NewFileSet()}
	exported := map[string]string{} // by path, a file
	s.imports = importer.ForCompiler(s.parsed, "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(exported[path]) })
	for packages := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir, ImportPath, Export string
			GoFiles                 []string
		}
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			return s
		} else if err != nil {
			t.Fatal(err)
		}
		s.files[p.Dir], exported[p.ImportPath] = p.GoFiles, p.Export
	}
}

// check compiles a package, some of whose files are replaced, as far as its types.
func (s *source) check(dir string, replaced map[string][]byte) error {
	var trees []*ast.File
	for _, name := range s.files[dir] {
		path := filepath.Join(dir, name)
		var text any
		if other, ok := replaced[path]; ok {
			text = other
		}
		tree, err := parser.ParseFile(s.parsed, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		trees = append(trees, tree)
	}
	if len(trees) == 0 {
		return errors.New(dir + " has no source")
	}
	_, err := (&types.Config{Importer: s.imports}).Check(dir, s.parsed, trees, nil)
	return err
}
