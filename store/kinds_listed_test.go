package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// Each declared kind stands in its list, once: that every kind is rendered is tested on the lists.
func TestEachKindIsListedOnce(t *testing.T) {
	declared := declaredKinds(t)
	for kind, list := range map[string][]string{
		"CauseKind":  texts(store.CauseKinds),
		"FactKind":   texts(store.FactKinds),
		"ScaleStays": texts(store.AllScaleStays),
	} {
		want := declared[kind]
		if len(want) < 10 {
			t.Errorf("only %d constants of type %s were found", len(want), kind)
		}
		for _, value := range want {
			if !slices.Contains(list, value) {
				t.Errorf("%s %q is declared and not listed", kind, value)
			}
		}
		slices.Sort(list)
		if len(slices.Compact(slices.Clone(list))) != len(list) || len(list) != len(want) {
			t.Errorf("%d of %s are declared and %d listed, or one is listed twice: %q", len(want), kind, len(list), list)
		}
	}
}

// declaredKinds returns the values of all constants of package store that have a type of the
// package and a text, by the name of that type.
func declaredKinds(t *testing.T) map[string][]string {
	t.Helper()
	values := map[string][]string{}
	for _, name := range sources(t) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.CONST {
				continue
			}
			for _, s := range decl.Specs {
				kind, found := typedTexts(t, s.(*ast.ValueSpec))
				values[kind] = append(values[kind], found...)
			}
		}
	}
	return values
}

func sources(t *testing.T) (names []string) {
	t.Helper()
	all, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

// typedTexts returns the type and the texts of constants that have both.
func typedTexts(t *testing.T, spec *ast.ValueSpec) (kind string, texts []string) {
	t.Helper()
	of, ok := spec.Type.(*ast.Ident)
	if !ok {
		return "", nil
	}
	for _, v := range spec.Values {
		lit, ok := v.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			continue
		}
		text, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return of.Name, texts
}
