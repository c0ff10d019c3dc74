package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// source is a package that was parsed and type-checked, without its tests.
type source struct {
	dir   string
	name  string // of the package
	files []sourceFile
	fset  *token.FileSet
	pkg   *types.Package
	info  *types.Info
}

type sourceFile struct {
	name string // base name
	text []byte
	tree *ast.File
}

// load parses and checks the package at a path relative to the project's root.
func load(root, path string) (*source, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Name,Export,GoFiles,DepOnly",
		"./"+filepath.ToSlash(path))
	list.Dir = root
	var problem bytes.Buffer
	list.Stderr = &problem
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list package %s: %w\n%s", path, err, problem.String())
	}
	exports := map[string]string{}
	s := &source{fset: token.NewFileSet()}
	var names []string
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir, Name, Export string
			GoFiles                       []string
			DepOnly                       bool
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read the list of packages: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			s.dir, s.name, names = p.Dir, p.Name, p.GoFiles
		}
	}
	var trees []*ast.File
	for _, name := range names {
		file := filepath.Join(s.dir, name)
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		tree, err := parser.ParseFile(s.fset, file, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree)
		if !ast.IsGenerated(tree) {
			s.files = append(s.files, sourceFile{name: name, text: text, tree: tree})
		}
	}
	s.info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
		Defs: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	config := types.Config{Importer: importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	if s.pkg, err = config.Check(path, s.fset, trees, s.info); err != nil {
		return nil, fmt.Errorf("check package %s: %w", path, err)
	}
	return s, nil
}
