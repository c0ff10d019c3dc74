package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages say what is protected from which attacker, and what holds whatever happens, and which test
// shows it.
var pages = []string{"docs/security.md", "docs/reliability.md"}

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)(?:/[^`]*)?`")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
)

// TestPages checks the pages against the tests: each line of a table whose last column is "Shown
// by" names a test, and each of those exists.
func TestPages(t *testing.T) {
	root := projectRoot(t)
	there := testsBelow(t, root)
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		lines, shown := 0, false
		for i, line := range strings.Split(string(text), "\n") {
			switch {
			case !strings.HasPrefix(line, "|"):
				shown = false
				continue
			case strings.HasSuffix(line, "| Shown by |"):
				shown = true
				continue
			case !shown || strings.HasPrefix(line, "|---"):
				continue
			}
			lines++
			named := testName.FindAllStringSubmatch(line, -1)
			if len(named) == 0 {
				t.Errorf("%s:%d: no test is named: %s", page, i+1, line)
			}
			for _, m := range named {
				if !there[m[1]] {
					t.Errorf("%s:%d: there is no test %s", page, i+1, m[1])
				}
			}
		}
		if lines < 10 {
			t.Errorf("%s has %d lines in its tables: nothing was looked at", page, lines)
		}
	}
}

// testsBelow returns the names of all tests.
func testsBelow(t *testing.T, root string) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
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
	return there
}
