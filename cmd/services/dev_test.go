package services

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// dependencies returns what a file gives the replica that it makes, by itself or by openNamed.
func dependencies(t *testing.T, file string) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if typ, ok := n.Type.(*ast.SelectorExpr); ok && typ.Sel.Name == "Deps" {
				for _, e := range n.Elts {
					names = append(names, e.(*ast.KeyValueExpr).Key.(*ast.Ident).Name)
				}
			}
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if field, ok := left.(*ast.SelectorExpr); ok {
					if of, ok := field.X.(*ast.Ident); ok && of.Name == "deps" {
						names = append(names, field.Sel.Name)
					}
				}
			}
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.Ident); ok && called.Name == "openNamed" {
				names = append(names, dependencies(t, "named.go")...)
			}
		}
		return true
	})
	return names
}

// What a coordinator takes from the file of --providers, dev takes as well: a group that works with
// one works with the other.
func TestDevTakesAllThatItsFileNames(t *testing.T) {
	own := []string{"Agents", "Ended", "Listen", "Register"} // of a coordinator alone, and from no file
	dev, all := dependencies(t, "dev.go"), dependencies(t, "coordinator.go")
	if !slices.Contains(all, "Balancers") || !slices.Contains(all, "Providers") {
		t.Fatalf("a coordinator has %v: the test sees nothing", all)
	}
	for _, name := range all {
		if !slices.Contains(dev, name) && !slices.Contains(own, name) {
			t.Errorf("dev gives its replica no %s", name)
		}
	}
}
