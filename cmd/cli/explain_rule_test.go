package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/docs"
)

// Every rule that a decision, or a page, can name can be explained.
func TestEveryRuleCanBeExplained(t *testing.T) {
	rows := 0
	for _, line := range strings.Split(docs.Rules, "\n") {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| ID ") {
			rows++
		}
	}
	if got := len(promises()); got != rows || rows < 80 {
		t.Errorf("%d rules are known, and docs/rules.md has %d rows", got, rows)
	}
	quoted, named := regexp.MustCompile(`"([A-Z]+-\d+)"`), map[string]string{}
	for _, pattern := range []string{"../../coordinator/*.go", "../../coordinator/plan/*.go", "../../coordinator/gateway/*.go", "*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
				named[m[1]] = file
			}
		}
	}
	if len(named) < 30 {
		t.Errorf("only %d rules are named in the code: was it looked at?", len(named))
	}
	for id, file := range named {
		if _, known := promiseOf(id); !known {
			t.Errorf("%s names %s, and docs/rules.md has no such rule", file, id)
		}
	}
}

func TestNamesAreWordsOfTheirOwn(t *testing.T) {
	for text, want := range map[string]bool{
		"takes the place of web-0-a: it is dead": true, "web-0-a": true, "web-0-ab; web-0-a": true,
		"web-0-ab is healthy": false, "my-web-0-a is": false, "nobody": false, "": false,
	} {
		if names(text, "web-0-a") != want {
			t.Errorf("%q names web-0-a: %v, want %v", text, !want, want)
		}
	}
}
