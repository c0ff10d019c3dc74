package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rule is one row of docs/rules.md.
type rule struct {
	id, status string
	line       int
}

// rulesDocument is the file with the promises, from the project's root.
const rulesDocument = "docs/rules.md"

var (
	ruleRow = regexp.MustCompile(`^\| ([A-Z]+-\d+) \| (.+) \| (\S+) \|$`)
	ruleID  = regexp.MustCompile(`[A-Z]+-\d+`)
	// The word, then IDs separated by commas, "and" or spaces.
	claim = regexp.MustCompile(`\bproves:?\s+([A-Z]+-\d+(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s+)[A-Z]+-\d+)*)`)
)

// parseRules reads the table rows of the document.
func parseRules(text string) (rules []rule, problems []string) {
	complain := func(line int, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s:%d: ", rulesDocument, line)+fmt.Sprintf(format, args...))
	}
	last := map[string]int{}
	for i, row := range strings.Split(text, "\n") {
		line := i + 1
		if !strings.HasPrefix(row, "|") || strings.HasPrefix(row, "|---") || strings.HasPrefix(row, "| ID |") {
			continue
		}
		m := ruleRow.FindStringSubmatch(row)
		if m == nil {
			complain(line, "row is not | ID | promise | status |: %s", row)
			continue
		}
		r := rule{id: m[1], status: m[3], line: line}
		if !slices.Contains([]string{"kept", "partly", "later"}, r.status) {
			complain(line, "%s: status %q: must be kept, partly or later", r.id, r.status)
		}
		// Numbers without gaps, so that no promise is dropped by deleting its row.
		family, number, _ := strings.Cut(r.id, "-")
		if n, err := strconv.Atoi(number); err != nil || n != last[family]+1 {
			complain(line, "%s follows %s-%d: every number stands once and in order", r.id, family, last[family])
		}
		last[family]++
		rules = append(rules, r)
	}
	return rules, problems
}

// claims finds the rules that comments claim to prove.
func claims(text string) (ids []string) {
	for _, m := range claim.FindAllStringSubmatch(text, -1) {
		ids = append(ids, ruleID.FindAllString(m[1], -1)...)
	}
	return ids
}

// proof is a test that claims to prove a rule.
type proof struct {
	place   string
	nightly bool // runs only at night
}

func (p proof) String() string {
	if p.nightly {
		return p.place + " (nightly)"
	}
	return p.place
}

// judgeRules compares the document with the claims: rule ID → the tests that claim to prove it. A
// rule that is called kept needs a proof that runs every day.
func judgeRules(rules []rule, proofs map[string][]proof) (problems []string) {
	known := map[string]bool{}
	for _, r := range rules {
		known[r.id] = true
		everyday := func(p proof) bool { return !p.nightly }
		switch {
		case r.status != "kept" || slices.ContainsFunc(proofs[r.id], everyday):
		case len(proofs[r.id]) > 0:
			problems = append(problems,
				fmt.Sprintf("%s:%d: %s is called kept, but make test does not prove it, only make nightly does: %v",
					rulesDocument, r.line, r.id, proofs[r.id]))
		default:
			problems = append(problems, fmt.Sprintf("%s:%d: %s is called kept, but no test says `// proves %s`",
				rulesDocument, r.line, r.id, r.id))
		}
	}
	for id, places := range proofs {
		if !known[id] {
			problems = append(problems, fmt.Sprintf("%v: claims to prove %s, which %s does not list",
				places, id, rulesDocument))
		}
	}
	slices.Sort(problems)
	return problems
}

// collectProofs reads the claims from every comment in the project's tests and their scripts.
func collectProofs(t *testing.T) map[string][]proof {
	t.Helper()
	proofs := map[string][]proof{}
	for _, f := range projectSource(t) {
		if !f.forTests() {
			continue
		}
		for _, comment := range f.tree.Comments {
			for _, id := range claims(comment.Text()) {
				proofs[id] = append(proofs[id], proof{f.line(comment.Pos()), f.nightly()})
			}
		}
	}
	root, names := projectFiles(t)
	for _, name := range names {
		if ext := filepath.Ext(name); ext != ".txt" && ext != ".txtar" || !strings.Contains(name, "testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatalf("read script: %v", err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			comment, found := strings.CutPrefix(strings.TrimSpace(line), "#")
			if !found {
				continue
			}
			for _, id := range claims(comment) {
				proofs[id] = append(proofs[id], proof{place: name + ":" + strconv.Itoa(i+1)})
			}
		}
	}
	return proofs
}

// documentedRules returns the rows of the document.
func documentedRules(t *testing.T) (rules []rule, problems []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(projectRoot(t), filepath.FromSlash(rulesDocument)))
	if err != nil {
		t.Fatalf("read the rules: %v", err)
	}
	return parseRules(string(text))
}

// TestRules checks what the document calls kept against the tests, and the tests' claims against
// the document.
func TestRules(t *testing.T) {
	rules, problems := documentedRules(t)
	if len(rules) == 0 {
		t.Errorf("%s lists no rule", rulesDocument)
	}
	for _, problem := range append(problems, judgeRules(rules, collectProofs(t))...) {
		t.Error(problem)
	}
}

// TestRulesCoverage prints, for `make rules`, where each promise is proved. It fails only without
// any rule.
func TestRulesCoverage(t *testing.T) {
	rules, _ := documentedRules(t)
	proofs := collectProofs(t)
	proved := 0
	for _, r := range rules {
		if len(proofs[r.id]) > 0 {
			proved++
		}
		t.Logf("%-8s %-6s %2d  %v", r.id, r.status, len(proofs[r.id]), proofs[r.id])
	}
	t.Logf("%d of %d promises have a test", proved, len(rules))
	if len(rules) == 0 {
		t.Errorf("%s lists no rule", rulesDocument)
	}
}

// TestRulesSimulated proves that the two tests above can fail.
func TestRulesSimulated(t *testing.T) {
	for text, want := range map[string][]string{
		"proves DET-18":                          {"DET-18"},
		"proves DET-1, SAFE-2 and\nHEAL-3 in it": {"DET-1", "SAFE-2", "HEAL-3"},
		"proves: DET-1 DET-2\n\nand DET-3":       {"DET-1", "DET-2", "DET-3"},
		"as DET-1 says, this proves nothing":     nil,
		"disproves DET-1":                        nil,
	} {
		if got := claims(text); !slices.Equal(got, want) {
			t.Errorf("claims(%q) = %q, want %q", text, got, want)
		}
	}

	const good = "| ID | Promise | Status |\n|---|---|---|\n| DET-1 | one | kept |\n| DET-2 | two | later |\n"
	for _, c := range []struct {
		name, text string
		proofs     map[string][]proof
		problems   int
	}{
		{"all well", good, map[string][]proof{"DET-1": {{place: "x_test.go:1"}}}, 0},
		{"kept without a test", good, nil, 1},
		{"a test at night alone", good, map[string][]proof{"DET-1": {{"x_test.go:1", true}}}, 1},
		{
			"a test every day as well", good,
			map[string][]proof{"DET-1": {{"x_test.go:1", true}, {"y_test.go:1", false}}},
			0,
		},
		{"a test for nothing", good, map[string][]proof{
			"DET-1": {{place: "x_test.go:1"}},
			"DET-3": {{place: "x_test.go:2"}},
		}, 1},
		{
			"a status unheard of", strings.Replace(good, "later", "soon", 1),
			map[string][]proof{"DET-1": {{place: "x_test.go:1"}}},
			1,
		},
		{
			"a row missing", strings.Replace(good, "DET-2", "DET-3", 1),
			map[string][]proof{"DET-1": {{place: "x_test.go:1"}}},
			1,
		},
		{
			"a row twice", strings.Replace(good, "DET-2", "DET-1", 1),
			map[string][]proof{"DET-1": {{place: "x_test.go:1"}}},
			1,
		},
		{"no row at all", good + "| DET-3 | no status |\n", map[string][]proof{"DET-1": {{place: "x_test.go:1"}}}, 1},
	} {
		rules, problems := parseRules(c.text)
		problems = append(problems, judgeRules(rules, c.proofs)...)
		if len(problems) != c.problems {
			t.Errorf("%s: %d problems, want %d: %q", c.name, len(problems), c.problems, problems)
		}
	}
}
