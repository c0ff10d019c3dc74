package tests

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// reasonTexts are the fields of records and of the planner that hold sentences.
var reasonTexts = []string{"What", "Why", "Until", "Otherwise", "Rule", "Evidence"}

var ruleLiteral = regexp.MustCompile(`^[A-Z]{2,}-([0-9]+)?$`)

// readsReasons finds calls that take a sentence apart: of package strings, or of a regular
// expression, with a field of reasonTexts.
func readsReasons(f sourceFile) (found []breach) {
	takesApart := func(call *ast.CallExpr) bool {
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		for _, begin := range []string{
			"HasPrefix", "HasSuffix", "Contains", "Cut", "Index", "LastIndex", "Split", "Fields", "Trim", "Find", "Match",
			"Replace", "EqualFold", "Sscan",
		} {
			if strings.HasPrefix(s.Sel.Name, begin) {
				return true
			}
		}
		return false
	}
	inList := func(call *ast.CallExpr) bool { // a list of texts is searched
		x, ok := call.Fun.(*ast.SelectorExpr).X.(*ast.Ident)
		return ok && x.Name == "slices"
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !takesApart(call) {
			return true
		}
		for _, arg := range call.Args {
			if s, ok := arg.(*ast.SelectorExpr); ok && slices.Contains(reasonTexts, s.Sel.Name) &&
				(!inList(call) || s.Sel.Name == "Evidence") {
				found = append(found, breach{s.Pos(), "takes ." + s.Sel.Name + " apart"})
			}
		}
		return true
	})
	return found
}

// comparesRules finds comparisons, cases and prefixes with the ID of a rule.
func comparesRules(f sourceFile) (found []breach) {
	check := func(e ast.Expr) {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return
		}
		if text, err := strconv.Unquote(lit.Value); err == nil && ruleLiteral.MatchString(text) {
			found = append(found, breach{lit.Pos(), "compares with " + lit.Value})
		}
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				check(n.X)
				check(n.Y)
			}
		case *ast.CaseClause:
			for _, e := range n.List {
				check(e)
			}
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "Has") {
				for _, e := range n.Args {
					check(e)
				}
			}
		case *ast.KeyValueExpr:
			check(n.Key) // a table by rule is a switch
		}
		return true
	})
	return found
}
