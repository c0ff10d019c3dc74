package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// mutant is one small mistake. Its ID is its number in this run; its key is its name in every run.
type mutant struct {
	id       int
	file     string // base name
	function string
	operator string
	text     string // of the place, on one line; "#2" follows where the function holds the same text again
}

func (m mutant) key() string {
	return strings.Join([]string{m.file, m.function, m.operator, m.text}, "\t")
}

// edit replaces a part of a file. At one offset, what closes an expression comes before what opens
// the next one; of several that open there the outermost comes first, and of several that close
// there the innermost.
type edit struct {
	from, to int
	text     string
	closes   bool
	order    int
}

// rewriter puts all mutants of one package into its files.
type rewriter struct {
	src     *source
	mutants []mutant
	seen    map[string]int // how often a key was given

	file     sourceFile
	imports  map[string]string // path of a package to its name in this file
	edits    []edit
	function string
	results  []*types.Tuple // of the functions around the place, innermost last
	parents  []ast.Node
}

// rewrite returns the changed files by name, and the mutants in them.
func rewrite(src *source) (map[string][]byte, []mutant) {
	r := &rewriter{src: src, seen: map[string]int{}}
	out := map[string][]byte{}
	for _, f := range src.files {
		r.file, r.edits, r.imports = f, nil, map[string]string{}
		for _, spec := range f.tree.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			for _, p := range src.pkg.Imports() {
				if p.Path() == path {
					r.imports[path] = p.Name()
				}
			}
			if spec.Name != nil {
				r.imports[path] = spec.Name.Name
			}
		}
		for _, d := range f.tree.Decls {
			r.declaration(d)
		}
		out[f.name] = r.apply()
	}
	return out, r.mutants
}

func (r *rewriter) apply() []byte {
	slices.SortStableFunc(r.edits, func(a, b edit) int {
		if a.from != b.from {
			return cmp.Compare(a.from, b.from)
		}
		if a.closes != b.closes {
			if a.closes {
				return -1
			}
			return 1
		}
		if a.closes {
			return cmp.Compare(b.order, a.order)
		}
		return cmp.Compare(a.order, b.order)
	})
	var out []byte
	at := 0
	for _, e := range r.edits {
		out = append(out, r.file.text[at:e.from]...)
		out = append(out, e.text...)
		at = e.to
	}
	return append(out, r.file.text[at:]...)
}

func (r *rewriter) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		r.function = d.Name.Name
		if d.Recv != nil && len(d.Recv.List) > 0 {
			r.function = receiver(d.Recv.List[0].Type) + "." + d.Name.Name
		}
		if d.Body != nil {
			r.results = []*types.Tuple{resultsOf(r.src.info.Defs[d.Name].Type())}
			r.walk(d.Body)
		}
	case *ast.GenDecl:
		if d.Tok == token.VAR {
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					r.function, r.results = v.Names[0].Name, nil
				}
				r.walk(spec)
			}
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// walk visits everything below a node, outermost first.
func (r *rewriter) walk(root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			if lit, ok := r.parents[len(r.parents)-1].(*ast.FuncLit); ok && lit != nil {
				r.results = r.results[:len(r.results)-1]
			}
			r.parents = r.parents[:len(r.parents)-1]
			return true
		}
		if !r.enter(n) {
			return false
		}
		r.parents = append(r.parents, n)
		if lit, ok := n.(*ast.FuncLit); ok {
			r.results = append(r.results, resultsOf(r.src.info.TypeOf(lit)))
		}
		return true
	})
}

func (r *rewriter) parent() ast.Node {
	if len(r.parents) == 0 {
		return nil
	}
	return r.parents[len(r.parents)-1]
}

// enter mutates one node and reports whether to look below it.
func (r *rewriter) enter(n ast.Node) bool {
	if comm, ok := r.parent().(*ast.CommClause); ok && n == comm.Comm {
		return false // the compiler wants these as they are
	}
	if stmt, ok := n.(ast.Stmt); ok {
		r.statement(stmt)
	}
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.ArrayType, *ast.StructType, *ast.FuncType, *ast.InterfaceType, *ast.MapType:
		return false
	case *ast.CallExpr:
		if r.words(n) {
			r.zero(n, r.src.info.Types[n])
			return false
		}
		if r.logs(n) || r.builtin(n) == "panic" {
			return false
		}
	}
	if e, ok := n.(ast.Expr); ok {
		return r.expression(e)
	}
	return true
}

// onOneLine returns source text as it would stand on one line, so that breaking a line renames no
// mutant.
func onOneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer("( ", "(", ", )", ")", " )", ")", "{ ", "{", ", }", "}", " }", "}", "[ ", "[", ", ]",
		"]").Replace(text)
}

// new adds a mutant.
func (r *rewriter) new(operator string, place ast.Node) int {
	text := onOneLine(string(r.file.text[r.offset(place.Pos()):r.offset(place.End())]))
	if runes := []rune(text); len(runes) > 100 {
		text = string(runes[:99]) + "…"
	}
	m := mutant{id: len(r.mutants) + 1, file: r.file.name, function: r.function, operator: operator, text: text}
	r.seen[m.key()]++
	if n := r.seen[m.key()]; n > 1 {
		m.text += fmt.Sprintf(" #%d", n)
	}
	r.mutants = append(r.mutants, m)
	return m.id
}

func (r *rewriter) offset(p token.Pos) int { return r.src.fset.Position(p).Offset }

func (r *rewriter) wrap(n ast.Node, before, after string) {
	order := len(r.edits)
	from, to := r.offset(n.Pos()), r.offset(n.End())
	r.edits = append(r.edits, edit{from: from, to: from, text: before, order: order},
		edit{from: to, to: to, text: after, closes: true, order: order})
}

func (r *rewriter) replace(from, to token.Pos, text string) {
	r.edits = append(r.edits, edit{from: r.offset(from), to: r.offset(to), text: text, order: len(r.edits)})
}
