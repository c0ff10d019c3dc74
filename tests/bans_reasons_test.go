package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reasonTexts are the fields of records and of the planner that hold sentences.
var reasonTexts = []string{"What", "Why", "Until", "Otherwise", "Rule"}

var ruleLiteral = regexp.MustCompile(`^[A-Z]{2,}-([0-9]+)?$`)

// readsReasons finds calls that take a sentence apart: of package strings, or of a regular
// expression, with a field of reasonTexts.
func readsReasons(f sourceFile) (found []breach) {
	takesApart := func(call *ast.CallExpr) bool {
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "slices" {
			return false // a list of texts is searched
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
	ast.Inspect(f.tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !takesApart(call) {
			return true
		}
		for _, arg := range call.Args {
			if s, ok := arg.(*ast.SelectorExpr); ok && slices.Contains(reasonTexts, s.Sel.Name) {
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

// TestReasonBans checks that the two bans on reading reasons find what they ban.
func TestReasonBans(t *testing.T) {
	for source, want := range map[string]struct{ reads, compares int }{
		`strings.HasPrefix(e.Why, "outdated")`:             {1, 0},
		`requested.FindStringSubmatch(e.What)`:             {1, 0},
		`strings.HasPrefix(b.Rule, "ROLL-")`:               {1, 1},
		`e.Rule == "REC-16" || "SAFE-2" != e.Rule`:         {0, 2},
		`map[string]int{"HEAL-2": 1}`:                      {0, 1},
		`func() { switch r { case "HEAL-2", "HEAL-3": } }`: {0, 2},
		`problem{Rule: "SAFE-2", What: "a storm"}`:         {0, 0},
		`reason.Why(&b) + strings.ToUpper(e.What)`:         {0, 0},
		`strings.TrimPrefix(r.Key, prefix(r.What))`:        {0, 0},
		`slices.Contains(rules, b.Rule)`:                   {0, 0},
		`e.Why == "" || e.What == string(e.Verdict)`:       {0, 0},
	} {
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, "x.go", "package x\n\nvar x = "+source+"\n", 0)
		if err != nil {
			t.Fatal(err)
		}
		f := sourceFile{tree: tree}
		if reads, compares := len(readsReasons(f)), len(comparesRules(f)); reads != want.reads || compares != want.compares {
			t.Errorf("%s: %d reads and %d comparisons found, want %d and %d", source, reads, compares, want.reads,
				want.compares)
		}
	}
}
