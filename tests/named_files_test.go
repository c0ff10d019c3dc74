package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedFile is a Go file that a package's comment names, with or without the folder.
var namedFile = regexp.MustCompile(`\b((?:[a-z0-9_-]+/)*[a-z0-9_]+\.go)\b`)

// A package's comment names only files that exist: it is the map by which a reader finds the rest.
func TestPackageCommentsNameFilesThatExist(t *testing.T) {
	root := projectRoot(t)
	looked := 0
	for _, f := range projectSource(t) {
		if f.tree.Doc == nil {
			continue
		}
		for _, m := range namedFile.FindAllStringSubmatch(f.tree.Doc.Text(), -1) {
			looked++
			found := false
			for _, dir := range []string{f.folder(), ".", path.Dir(f.folder())} {
				_, err := os.Stat(filepath.Join(root, filepath.FromSlash(path.Join(dir, m[1]))))
				found = found || err == nil
			}
			if !found {
				t.Errorf("%s: names %s, which does not exist", f.path, m[1])
			}
		}
	}
	if looked < 50 {
		t.Errorf("only %d names of files were looked at", looked)
	}
}

// The lists in the comments of the core's packages are complete: no file is left out that is the
// package's own.
func TestPackageCommentsNameEveryFile(t *testing.T) {
	lists := map[string]string{"coordinator/plan": "", "coordinator/evidence": "", "coordinator/leader": ""}
	for _, f := range projectSource(t) {
		if _, listed := lists[f.folder()]; listed && path.Base(f.path) == "doc.go" {
			lists[f.folder()] = f.tree.Doc.Text()
		}
	}
	for _, f := range projectSource(t) {
		list, listed := lists[f.folder()]
		name := path.Base(f.path)
		if listed && name != "doc.go" && !strings.HasSuffix(name, "_test.go") && !strings.Contains(list, name) {
			t.Errorf("the comment of package %s does not name %s", f.folder(), name)
		}
	}
}

// The table by which a newcomer finds where something happens names files and functions that exist.
func TestArchitectureNamesPlacesThatExist(t *testing.T) {
	root := projectRoot(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "### Where to look")
	rows, _, _ = strings.Cut(rows, "## Where things are")
	place := regexp.MustCompile("`((?:[a-z0-9_]+/)+[a-z0-9_]+\\.go)`(?: \\(([^)]*)\\))?")
	name := regexp.MustCompile("`([A-Za-z]+)`")
	looked := 0
	for _, m := range place.FindAllStringSubmatch(rows, -1) {
		tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, filepath.FromSlash(m[1])), nil, 0)
		if err != nil {
			t.Error(err)
			continue
		}
		there := map[string]bool{}
		for _, d := range tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				there[d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if t, ok := s.(*ast.TypeSpec); ok {
						there[t.Name.Name] = true
					}
				}
			}
		}
		for _, f := range name.FindAllStringSubmatch(m[2], -1) {
			if looked++; !there[f[1]] {
				t.Errorf("%s has no function or type %s", m[1], f[1])
			}
		}
	}
	if looked < 25 {
		t.Errorf("only %d functions were looked at", looked)
	}
}
