package tests

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// emptyNames say nothing about what they hold.
var emptyNames = []string{"util", "utils", "helper", "helpers", "common", "manager", "base", "impl", "misc"}

// everywhere matches every file.
func everywhere(sourceFile) bool { return true }

// product matches every file at or below a folder that is not a test.
func product(folder string) func(sourceFile) bool {
	return func(f sourceFile) bool { return within(f.folder(), folder) && !f.test() }
}

// etcd reports whether an import path belongs to etcd, its client or its server.
func etcd(p string) bool { return strings.HasPrefix(p, "go.etcd.io/") }

// shared are packages below the contracts that every package may use: durable writes files,
// settings checks a template against its provider's schema, suite plays the contract, keylock keeps
// a machine's calls apart, clip shortens texts, userdata makes the script for a machine without an
// agent, program runs a user's program once per call, amazon holds what several services of Amazon
// share, filetemplate checks and renders templates of files, cron reads times.
var shared = []string{
	module + "/provider/clip", module + "/provider/durable", module + "/provider/settings", module + "/provider/suite",
	module + "/provider/keylock", module + "/provider/egress", module + "/provider/userdata",
	module + "/provider/program", module + "/provider/amazon", module + "/provider/balancer/suite",
	module + "/provider/proof",
	module + "/store/filetemplate", module + "/store/cron", module + "/provider/fake",
}

// imaginary reports whether a file is part of the fake cloud itself, whose time comes from outside.
func imaginary(f sourceFile) bool {
	return slices.Contains([]string{
		"provider/fake/cloud.go", "provider/fake/machine.go", "provider/fake/fate.go", "provider/fake/fault.go",
		"provider/fake/lie.go",
	}, f.path)
}

// adapter returns the root of the adapter that an import path is in ("…/store/etcdstore"), or "".
// The suites that every adapter passes are not adapters.
func adapter(p string) string {
	for _, contract := range []string{module + "/store/", module + "/provider/balancer/", module + "/provider/"} {
		if p+"/" == contract {
			return ""
		}
		below, found := strings.CutPrefix(p, contract)
		if !found {
			continue
		}
		name, _, _ := strings.Cut(below, "/")
		if !slices.Contains(shared, contract+name) && !suite(contract+name) {
			return contract + name
		}
		return ""
	}
	return ""
}

// refuseImports bans some imports from some files.
func refuseImports(from func(sourceFile) bool,
	refused func(f sourceFile, importPath string) bool,
) func(sourceFile) []breach {
	return func(f sourceFile) (found []breach) {
		if !from(f) {
			return nil
		}
		for _, spec := range f.imported() {
			if p := pathOf(spec); refused(f, p) {
				found = append(found, breach{spec.Pos(), "imports " + p})
			}
		}
		return found
	}
}

// uses finds every mention of a package's names, called or passed on, under whatever name it was
// imported. A dot import hides them, so it counts as a mention.
func uses(f sourceFile, importPath string, names ...string) (found []breach) {
	known := f.nameOf(importPath)
	if known == "" {
		return nil
	}
	if known == "." {
		return []breach{{f.tree.Name.Pos(), "imports " + importPath + " into its own names"}}
	}
	f.selectors(func(x, sel string, pos token.Pos) {
		if x == known && slices.Contains(names, sel) {
			found = append(found, breach{pos, "uses " + importPath + "." + sel})
		}
	})
	return found
}

// readsClock finds uses of the clock and of timers.
func readsClock(f sourceFile) []breach {
	return uses(f, "time", "Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker")
}

// startsGoroutine finds go statements.
func startsGoroutine(f sourceFile) (found []breach) {
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			found = append(found, breach{g.Pos(), "starts a goroutine"})
		}
		return true
	})
	return found
}

// testParameters returns the names that the file's functions give to a running test: parameters of
// type *testing.T and the like, except *rapid.T (there a skip discards one draw).
func testParameters(f sourceFile) map[string]bool {
	known := f.nameOf("testing")
	names := map[string]bool{}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok {
			return true
		}
		of := field.Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		if s, ok := of.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == known && known != "" {
				for _, name := range field.Names {
					names[name.Name] = true
				}
			}
		}
		return true
	})
	return names
}
