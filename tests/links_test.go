package tests

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	fenced   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inCode   = regexp.MustCompile("`[^`\n]*`")
	linkTo   = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	headline = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// TestLinks follows every link between the project's pages: the file exists, and the page has a
// heading that GitHub, and the site, give that name.
func TestLinks(t *testing.T) {
	root := projectRoot(t)
	pages := []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md"}
	err := fs.WalkDir(os.DirFS(root), "docs", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".md" {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	texts, anchors := map[string]string{}, map[string]map[string]bool{}
	for _, p := range pages {
		text, err := os.ReadFile(filepath.Join(root, p))
		if err != nil {
			t.Fatal(err)
		}
		texts[p] = fenced.ReplaceAllString(string(text), "")
		anchors[p] = headings(texts[p])
	}
	looked := 0
	for _, p := range pages {
		for _, m := range linkTo.FindAllStringSubmatch(inCode.ReplaceAllString(texts[p], "`code`"), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") {
				continue
			}
			looked++
			target := p
			if file != "" {
				target = path.Join(path.Dir(p), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: links to %s, which does not exist", p, m[1])
			} else if anchor != "" && !anchors[target][anchor] {
				t.Errorf("%s: links to %s, and no heading there is called so", p, m[1])
			}
		}
	}
	if looked < 100 {
		t.Errorf("only %d links were looked at", looked)
	}
}

// headings are the names that a page's headings have in links.
func headings(text string) map[string]bool {
	names := map[string]bool{}
	for _, m := range headline.FindAllStringSubmatch(text, -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(linkText.ReplaceAllString(m[1], "$1")))
		name := slug
		for n := 1; names[name]; n++ {
			name = fmt.Sprintf("%s-%d", slug, n)
		}
		names[name] = true
	}
	return names
}
