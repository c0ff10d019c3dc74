package tests

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// module is the project's own import path.
const module = "github.com/leasehold/leasehold"

// sourceFile is one Go file of the project, parsed.
type sourceFile struct {
	path  string // relative to the project's root, with slashes
	tree  *ast.File
	files *token.FileSet
}

// parseSource parses a file, or a text as if it were at that path.
func parseSource(name string, text []byte) (sourceFile, error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	return sourceFile{path: name, tree: tree, files: files}, err
}

// folder is the package's path below the project's root, "" for the root itself.
func (f sourceFile) folder() string {
	if d := path.Dir(f.path); d != "." {
		return d
	}
	return ""
}

// test reports whether the file is compiled for tests alone.
func (f sourceFile) test() bool { return strings.HasSuffix(f.path, "_test.go") }

// nightly reports whether the file belongs only to the nightly tier (tests/tier).
func (f sourceFile) nightly() bool {
	for _, comments := range f.tree.Comments {
		for _, c := range comments.List {
			if c.Pos() >= f.tree.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err != nil {
				continue // the compiler reports it
			}
			return !expr.Eval(func(tag string) bool { return tag != "nightly" && tag != "race" }) &&
				!expr.Eval(func(tag string) bool { return tag != "nightly" })
		}
	}
	return false
}

// forTests reports whether the file serves tests, including suites that several packages run.
func (f sourceFile) forTests() bool {
	return f.test() || within(f.folder(), "tests") || suite(f.folder())
}

// suite reports whether a path belongs to a suite for the contract above it, like store/storetest.
func suite(p string) bool { return path.Base(p) == path.Base(path.Dir(p))+"test" }

// line formats a position as editors understand it.
func (f sourceFile) line(pos token.Pos) string {
	return f.path + ":" + strconv.Itoa(f.files.Position(pos).Line)
}

// imported returns the paths that the file imports, in order.
func (f sourceFile) imported() []*ast.ImportSpec { return f.tree.Imports }

// nameOf returns the name under which the file imports a package of the standard library, "" if it
// does not.
func (f sourceFile) nameOf(importPath string) string {
	for _, spec := range f.imported() {
		if pathOf(spec) != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// selectors calls visit for every x.Sel in which x is a plain name.
func (f sourceFile) selectors(visit func(x, sel string, pos token.Pos)) {
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				visit(x.Name, s.Sel.Name, s.Pos())
			}
		}
		return true
	})
}

// pathOf returns the path of an import.
func pathOf(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // the parser has rejected such a file already
	}
	return p
}

// standard reports whether an import path belongs to the standard library: its first element has no
// dot.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// within reports whether a path is, or is below, a root.
func within(p, root string) bool { return p == root || strings.HasPrefix(p, root+"/") }

// withinAny is within for several roots.
func withinAny(p string, roots ...string) bool {
	for _, root := range roots {
		if within(p, root) {
			return true
		}
	}
	return false
}

// projectRoot returns the folder with go.mod. Tests run in their own folder, one below it.
func projectRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatalf("find the project's root: %v", err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatalf("read go.mod: %v", err)
	}
	if !strings.HasPrefix(string(mod), "module "+module+"\n") {
		t.Fatalf("go.mod does not begin with module %s: the rules below would ban nothing", module)
	}
	return root
}

// projectFiles returns the names of all files of the project that are not hidden, built or another
// module's.
func projectFiles(t *testing.T) (root string, names []string) {
	t.Helper()
	root = projectRoot(t)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && strings.HasPrefix(d.Name(), ".") || rel == "bin" || rel == "scripts/tools" {
				return fs.SkipDir
			}
			return nil
		}
		names = append(names, rel)
		return nil
	})
	if err != nil {
		t.Fatalf("walk the project: %v", err)
	}
	return root, names
}

// projectSource parses every Go file of the project.
func projectSource(t *testing.T) []sourceFile {
	t.Helper()
	root, names := projectFiles(t)
	var all []sourceFile
	for _, name := range names {
		if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatalf("read source: %v", err)
		}
		f, err := parseSource(name, text)
		if err != nil {
			t.Fatalf("parse source: %v", err)
		}
		all = append(all, f)
	}
	if len(all) < 10 {
		t.Fatalf("only %d Go files below %s: is this the project?", len(all), root)
	}
	return all
}
