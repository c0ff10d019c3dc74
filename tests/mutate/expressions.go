package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

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
