package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
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
	return strings.NewReplacer("( ", "(", ", )", ")", " )", ")", "{ ", "{", ", }", "}", " }", "}", "[ ", "[", ", ]", "]").Replace(text)
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

// statement deletes what may be deleted.
func (r *rewriter) statement(s ast.Stmt) {
	switch r.parent().(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
	default:
		return // an initialisation, or what follows a label
	}
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok || r.logs(call) || r.builtin(call) == "panic" {
			return
		}
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE || slices.ContainsFunc(s.Lhs, func(e ast.Expr) bool {
			id, ok := e.(*ast.Ident)
			return ok && id.Name == "_"
		}) {
			return
		}
	case *ast.BranchStmt:
		if s.Tok == token.GOTO || s.Tok == token.FALLTHROUGH {
			return
		}
	case *ast.ReturnStmt:
		if len(s.Results) > 0 || len(r.results) == 0 || r.results[len(r.results)-1].Len() > 0 {
			return
		}
	case *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt, *ast.DeferStmt:
	default:
		return
	}
	r.wrap(s, fmt.Sprintf("if !_mutantOn(%d) { ", r.new(opDelete, s)), " }")
}

// expression mutates a value, and reports whether to look below it.
func (r *rewriter) expression(e ast.Expr) bool {
	tv, known := r.src.info.Types[e]
	if !known || !tv.IsValue() {
		return true
	}
	if lit, composite := e.(*ast.CompositeLit); composite && lit.Type == nil {
		return true
	}
	if kv, ok := r.parent().(*ast.KeyValueExpr); ok && kv.Key == e {
		return false
	}
	if call, ok := r.parent().(*ast.CallExpr); ok && r.capacity(call, e) {
		return false
	}
	if clause, ok := r.parent().(*ast.CaseClause); ok && slices.Contains(clause.List, e) && tv.Value != nil {
		r.caseValue(e, tv)
		return false
	}
	r.zero(e, tv)
	if tv.Value != nil {
		r.constant(e, tv)
		return false
	}
	if boolean(tv.Type) {
		r.condition(e)
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		r.binary(e)
	case *ast.CallExpr:
		r.call(e)
	case *ast.CompositeLit:
		r.elements(e, tv)
	}
	return true
}

func boolean(t types.Type) bool {
	return types.Identical(t, types.Typ[types.Bool]) || types.Identical(t, types.Typ[types.UntypedBool])
}

// condition makes a condition hold always or never, and its parts count for nothing.
func (r *rewriter) condition(e ast.Expr) {
	own := operator(e)
	if _, paren := e.(*ast.ParenExpr); paren {
		return
	}
	parent, child := r.outside(e)
	always, never := own != token.LAND, own != token.LOR
	switch p := parent.(type) {
	case *ast.UnaryExpr:
		return // the negation is mutated
	case *ast.BinaryExpr:
		switch {
		case p.Op == token.LAND && own != token.LAND:
			always, never = true, false
		case p.Op == token.LOR && own != token.LOR:
			always, never = false, true
		default:
			return
		}
	case *ast.IfStmt, *ast.ReturnStmt, *ast.CaseClause:
	case *ast.ForStmt:
		always = false // it would not end
	case *ast.AssignStmt:
		if slices.Contains(p.Lhs, child) || plain(e) {
			return
		}
	case *ast.CallExpr, *ast.KeyValueExpr, *ast.CompositeLit, *ast.ValueSpec:
		if plain(e) {
			return
		}
	default:
		return
	}
	text := "("
	if always {
		text += fmt.Sprintf("_mutantOn(%d) || ", r.new(opTrue, e))
	}
	if never {
		text += fmt.Sprintf("!_mutantOn(%d) && ", r.new(opFalse, e))
	}
	r.wrap(e, text+"(", "))")
}

func plain(e ast.Expr) bool {
	switch e.(type) {
	case *ast.Ident, *ast.SelectorExpr:
		return true
	}
	return false
}

func operator(e ast.Expr) token.Token {
	if b, ok := e.(*ast.BinaryExpr); ok {
		return b.Op
	}
	return token.ILLEGAL
}

// outside is the first parent that is no parenthesis, and its child that holds e.
func (r *rewriter) outside(e ast.Expr) (parent ast.Node, child ast.Expr) {
	child = e
	for _, p := range slices.Backward(r.parents) {
		if paren, ok := p.(*ast.ParenExpr); ok {
			child = paren
			continue
		}
		return p, child
	}
	return nil, child
}

var binaries = map[token.Token]struct{ operator, function string }{
	token.LSS: {opBoundary, "_mutantLess"}, token.LEQ: {opBoundary, "_mutantLessEqual"},
	token.GTR: {opBoundary, "_mutantGreater"}, token.GEQ: {opBoundary, "_mutantGreaterEqual"},
	token.ADD: {opSwap, "_mutantAdd"}, token.SUB: {opSwap, "_mutantSub"},
	token.MUL: {opSwap, "_mutantMul"}, token.QUO: {opSwap, "_mutantDiv"},
}

func (r *rewriter) binary(e *ast.BinaryExpr) {
	to, ok := binaries[e.Op]
	if !ok {
		return
	}
	if kind, ok := r.src.info.TypeOf(e.X).Underlying().(*types.Basic); !ok ||
		to.operator == opSwap && kind.Info()&types.IsNumeric == 0 {
		return
	}
	r.wrap(e, fmt.Sprintf("%s(%d, ", to.function, r.new(to.operator, e)), ")")
	r.replace(e.OpPos, e.OpPos+token.Pos(len(e.Op.String())), ",")
}

func (r *rewriter) call(e *ast.CallExpr) {
	switch name := r.builtin(e); name {
	case "min", "max":
		if !e.Ellipsis.IsValid() {
			id := r.new(opSwap, e)
			r.replace(e.Pos(), e.Lparen+1, fmt.Sprintf("_mutantM%s(%d, ", name[1:], id))
		}
		return
	}
	sel, ok := e.Fun.(*ast.SelectorExpr)
	if !ok || len(e.Args) != 1 || r.src.info.TypeOf(sel.X) == nil || r.src.info.TypeOf(sel.X).String() != "time.Time" {
		return
	}
	if name := sel.Sel.Name; name == "Before" || name == "After" {
		r.wrap(e, fmt.Sprintf("_mutant%s(%d, ", name, r.new(opBoundary, e)), "")
		r.replace(sel.X.End(), e.Lparen+1, ", ")
	}
}

func (r *rewriter) constant(e ast.Expr, tv types.TypeAndValue) {
	basic, ok := tv.Type.Underlying().(*types.Basic)
	if !ok {
		return
	}
	switch {
	case basic.Info()&types.IsBoolean != 0:
		if _, literal := e.(*ast.Ident); literal && boolean(tv.Type) && !r.joins(e) {
			r.wrap(e, fmt.Sprintf("(_mutantOn(%d) != ", r.new(opFlip, e)), ")")
		}
	case basic.Info()&types.IsNumeric != 0 && basic.Info()&types.IsComplex == 0:
		_, named := e.(*ast.Ident)
		_, selected := e.(*ast.SelectorExpr)
		name, expressible := r.typeName(tv.Type)
		if b, ok := r.parent().(*ast.BinaryExpr); ok && (b.Op == token.SHL || b.Op == token.SHR) {
			return
		}
		if !named && !selected && expressible && basic.Info()&types.IsUntyped == 0 {
			r.wrap(e, fmt.Sprintf("_mutantRaise[%s](%d, ", name, r.new(opRaise, e)), ")")
		}
	}
}

// joins reports whether e is the true in set[x] = true. Deleting that statement is a mutant of its
// own, and false there is no different from an absent key.
func (r *rewriter) joins(e ast.Expr) bool {
	assign, ok := r.parent().(*ast.AssignStmt)
	if !ok || len(assign.Lhs) != len(assign.Rhs) || !slices.Contains(assign.Rhs, e) {
		return false
	}
	index, ok := assign.Lhs[slices.Index(assign.Rhs, e)].(*ast.IndexExpr)
	if !ok {
		return false
	}
	_, set := r.src.info.TypeOf(index.X).Underlying().(*types.Map)
	name, ok := e.(*ast.Ident)
	return set && ok && name.Name == "true"
}

func (r *rewriter) caseValue(e ast.Expr, tv types.TypeAndValue) {
	basic, ok := tv.Type.Underlying().(*types.Basic)
	name, expressible := r.typeName(tv.Type)
	if !ok || !expressible || basic.Info()&types.IsUntyped != 0 {
		return
	}
	switch {
	case basic.Info()&types.IsString != 0:
		r.wrap(e, fmt.Sprintf("_mutantText[%s](%d, ", name, r.new(opCase, e)), ")")
	case basic.Info()&types.IsInteger != 0:
		r.wrap(e, fmt.Sprintf("_mutantInteger[%s](%d, ", name, r.new(opCase, e)), ")")
	}
}

// zero makes nothing of a result, or of a struct literal's field.
func (r *rewriter) zero(e ast.Expr, tv types.TypeAndValue) {
	var to types.Type
	switch p := r.parent().(type) {
	case *ast.ReturnStmt:
		if len(r.results) == 0 || r.results[len(r.results)-1].Len() != len(p.Results) {
			return
		}
		to = r.results[len(r.results)-1].At(slices.Index(p.Results, e)).Type()
	case *ast.KeyValueExpr:
		if lit, ok := r.parents[len(r.parents)-2].(*ast.CompositeLit); ok {
			if s := structure(r.src.info.TypeOf(lit)); s != nil {
				for f := range s.Fields() {
					if key, named := p.Key.(*ast.Ident); named && f.Name() == key.Name {
						to = f.Type()
					}
				}
			}
		}
	case *ast.CompositeLit:
		if s := structure(r.src.info.TypeOf(p)); s != nil {
			to = s.Field(slices.Index(p.Elts, e)).Type()
		}
	}
	if to == nil || tv.IsNil() || nothing(e, tv) || r.text(e, tv) {
		return
	}
	if basic, ok := to.Underlying().(*types.Basic); ok && basic.Info()&types.IsBoolean != 0 {
		if _, result := r.parent().(*ast.ReturnStmt); result || tv.Value != nil || !plain(e) {
			return // the operators for conditions and literals see to it
		}
	}
	if name, ok := r.typeName(to); ok {
		r.wrap(e, fmt.Sprintf("_mutantZero[%s](%d, ", name, r.new(opZero, e)), ")")
	}
}

func structure(t types.Type) *types.Struct {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, _ := t.Underlying().(*types.Struct)
	return s
}

// nothing reports whether the value is the zero value already.
func nothing(e ast.Expr, tv types.TypeAndValue) bool {
	if lit, ok := e.(*ast.CompositeLit); ok {
		return len(lit.Elts) == 0
	}
	if tv.Value == nil {
		return false
	}
	switch tv.Value.Kind() {
	case constant.Bool:
		return !constant.BoolVal(tv.Value)
	case constant.String:
		return constant.StringVal(tv.Value) == ""
	default:
		return constant.Sign(tv.Value) == 0
	}
}

// text reports whether the value is words for people.
func (r *rewriter) text(e ast.Expr, tv types.TypeAndValue) bool {
	basic, ok := tv.Type.Underlying().(*types.Basic)
	if !ok || basic.Info()&types.IsString == 0 {
		return false
	}
	if call, ok := e.(*ast.CallExpr); ok {
		return r.words(call)
	}
	if b, ok := e.(*ast.BinaryExpr); ok {
		return r.text(b.X, r.src.info.Types[b.X]) || r.text(b.Y, r.src.info.Types[b.Y])
	}
	_, literal := e.(*ast.BasicLit)
	return literal
}

// elements drops each element of a slice literal, unless these are words.
func (r *rewriter) elements(e *ast.CompositeLit, tv types.TypeAndValue) {
	if _, ok := tv.Type.Underlying().(*types.Slice); !ok || len(e.Elts) == 0 {
		return
	}
	if u, ok := r.parent().(*ast.UnaryExpr); ok && u.Op == token.AND {
		return
	}
	first := 0
	for _, el := range e.Elts {
		if _, keyed := el.(*ast.KeyValueExpr); keyed {
			return
		}
	}
	for _, el := range e.Elts {
		if id := r.new(opDrop, el); first == 0 {
			first = id
		}
	}
	r.wrap(e, fmt.Sprintf("_mutantDrop(%d, ", first), ")")
}

func (r *rewriter) builtin(call *ast.CallExpr) string {
	id, ok := call.Fun.(*ast.Ident)
	if !ok {
		return ""
	}
	if b, ok := r.src.info.Uses[id].(*types.Builtin); ok {
		return b.Name()
	}
	return ""
}

// capacity reports whether the argument is only how much room make is to set aside.
func (r *rewriter) capacity(call *ast.CallExpr, arg ast.Expr) bool {
	if r.builtin(call) != "make" {
		return false
	}
	i := slices.Index(call.Args, arg)
	if i == 1 {
		_, isMap := r.src.info.TypeOf(call.Args[0]).Underlying().(*types.Map)
		return isMap
	}
	return i == 2
}

// words reports whether the call makes a text for people.
func (r *rewriter) words(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	f, ok := r.src.info.Uses[sel.Sel].(*types.Func)
	if !ok || f.Pkg() == nil || f.Signature().Recv() != nil {
		return false
	}
	return f.Pkg().Path() == "fmt" || f.Pkg().Path() == "errors" && f.Name() == "New"
}

// logs reports whether the call writes to a log.
func (r *rewriter) logs(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	f, ok := r.src.info.Uses[sel.Sel].(*types.Func)
	return ok && f.Pkg() != nil && f.Pkg().Path() == "log/slog"
}

// typeName is how the file can name a type, if it can.
func (r *rewriter) typeName(t types.Type) (name string, ok bool) {
	ok = true
	if mentionsTypeParameter(t) {
		return "", false
	}
	name = types.TypeString(t, func(p *types.Package) string {
		if p == r.src.pkg {
			return ""
		}
		n, imported := r.imports[p.Path()]
		if !imported {
			ok = false
		}
		return n
	})
	if strings.Contains(name, "struct{") && name != "struct{}" || strings.Contains(name, "untyped") {
		return "", false
	}
	return name, ok
}

func mentionsTypeParameter(t types.Type) bool {
	switch t := types.Unalias(t).(type) {
	case *types.TypeParam:
		return true
	case *types.Named:
		for a := range t.TypeArgs().Types() {
			if mentionsTypeParameter(a) {
				return true
			}
		}
	case *types.Pointer:
		return mentionsTypeParameter(t.Elem())
	case *types.Slice:
		return mentionsTypeParameter(t.Elem())
	case *types.Map:
		return mentionsTypeParameter(t.Key()) || mentionsTypeParameter(t.Elem())
	case *types.Signature:
		for _, tuple := range []*types.Tuple{t.Params(), t.Results()} {
			for v := range tuple.Variables() {
				if mentionsTypeParameter(v.Type()) {
					return true
				}
			}
		}
	}
	return false
}

// resultsOf are the results of a function's type.
func resultsOf(t types.Type) *types.Tuple {
	if f, ok := t.(*types.Signature); ok {
		return f.Results()
	}
	return nil
}
