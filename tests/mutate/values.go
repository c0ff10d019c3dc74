package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

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
