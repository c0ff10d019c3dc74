package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// securityDocument says what is protected from whom, and which test shows it.
const securityDocument = "docs/security.md"

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)(?:/[^`]*)?`")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
)

// TestSecurityPage holds docs/security.md against the tests: each line of its tables names a test, and each of those exists.
func TestSecurityPage(t *testing.T) {
	root := projectRoot(t)
	text, err := os.ReadFile(filepath.Join(root, securityDocument))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllSubmatch(source, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasSuffix(line, "| Shown by |") {
			continue
		}
		lines++
		named := testName.FindAllStringSubmatch(line, -1)
		if len(named) == 0 {
			t.Errorf("%s:%d: no test is named: %s", securityDocument, i+1, line)
		}
		for _, m := range named {
			if !there[m[1]] {
				t.Errorf("%s:%d: there is no test %s", securityDocument, i+1, m[1])
			}
		}
	}
	if lines < 10 {
		t.Errorf("%s has %d lines in its tables: nothing was looked at", securityDocument, lines)
	}
}
