package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/docs"
	"github.com/leasehold/leasehold/store"
)

// Every rule that a decision, or a page, can name can be explained.
func TestEveryRuleCanBeExplained(t *testing.T) {
	rows := 0
	for _, line := range strings.Split(docs.Rules, "\n") {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| ID ") {
			rows++
		}
	}
	if got := len(docs.Promises()); got != rows || rows < 80 {
		t.Errorf("%d rules are known, and docs/rules.md has %d rows", got, rows)
	}
	quoted, named := regexp.MustCompile(`"([A-Z]+-\d+)"`), map[string]string{}
	for _, pattern := range []string{
		"../../coordinator/*.go", "../../coordinator/plan/*.go",
		"../../coordinator/gateway/*.go", "*.go",
	} {
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
		if _, known := docs.PromiseOf(id); !known {
			t.Errorf("%s names %s, and docs/rules.md has no such rule", file, id)
		}
	}
}

func TestNamesAreWordsOfTheirOwn(t *testing.T) {
	for text, want := range map[string]bool{
		"takes the place of web-0-a: it is dead": true, "web-0-a": true, "web-0-ab; web-0-a": true,
		"web-0-ab is healthy": false, "my-web-0-a is": false, "web": false, "": false,
	} {
		if names(text, "web-0-a") != want {
			t.Errorf("%q names web-0-a: %v, want %v", text, !want, want)
		}
	}
}

func TestMergeNamesEachInstanceOnce(t *testing.T) {
	held := func(id, why string) store.Blocked {
		return store.Blocked{
			Rule: "HEAL-1", Kind: store.BlockedByHealPolicy, Work: store.WorkReplace, Instance: id,
			Of: store.BlockedFacts{Text: why},
		}
	}
	all := story.Merge([]store.Blocked{
		held("web-0-a", "x"), held("web-1-b", "x"), held("web-0-a", "x"), held("web-2-c", "y"),
		{Rule: "REC-4", What: "scale-down"},
	})
	var got []string
	for _, w := range all {
		got = append(got, w.What()+" until "+w.Until())
	}
	if want := []string{
		"replacement of web-0-a, web-1-b until leasehold instance replace INSTANCE",
		"replacement of web-2-c until leasehold instance replace web-2-c", "scale-down until ",
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestEstimatesAreRough(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "<1s", 300 * time.Millisecond: "<1s", 31 * time.Second: "~31s", 244 * time.Second: "~4m",
		247 * time.Second: "~4m10s", 754 * time.Second: "~13m", 15 * time.Hour: "~15h",
	} {
		if got := roughly(d); got != want {
			t.Errorf("%s is told as %s, want %s", d, got, want)
		}
	}
}
