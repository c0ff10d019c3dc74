package tests

import (
	"go/scanner"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// Columns that a line may have. A tab is one column, as linters count it (lll): a line that the
// next function around it pushes to the right stays as it is.
const (
	maxCode    = 120
	maxComment = 100
)

// plainWords has what engineers say today for words that they do not use any more.
var plainWords = map[string]string{
	"afresh":                  "again, or: starts over",
	"amiss":                   "wrong",
	"anew":                    "again, or: starts over",
	"anybody":                 "anyone",
	"astray":                  "to a wrong place",
	"befall, befalls, befell": "happen to, affect",
	"behold":                  "see",
	"deaf":                    "silent, or: does not answer",
	"forthwith":               "at once",
	"heed, heeds, heeded":     "follow, or: look at",
	"hitherto":                "so far",
	"in vain":                 "without success",
	"lest":                    "so that … not",
	"meddle, meddles":         "interfere",
	"meddling":                "interfering",
	"midst":                   "middle",
	"naught, nought, aught":   "nothing, anything",
	"nobody, nobody's":        "no one, or the noun: no instance, no client",
	"ought":                   "should",
	"shall":                   "must, or: will",
	"somebody, somebody's":    "someone, or the noun: an operator",
	"spoilt":                  "spoiled, unreadable",
	"that of, those of":       "the noun again: the address of",
	"thence, whence":          "from there, from where",
	"therein, wherein":        "in it, in which",
	"thereof, whereof":        "of it, of which",
	"upon":                    "on",
	"whoever, whomever, whom": "the noun: the client that, the replica that",
}

// pageWords matches what pages for people must not say. Words that pages still use are left out.
var pageWords = regexp.MustCompile(`(?i)\b(afresh|amiss|anew|anybody|astray|befalls?|befell|behold|deaf|forthwith|heed(s|ed)?|hitherto|` +
	`in earnest|in vain|lest|meddl(e|es|ing)|midst|naught|nought|aught|nobody|ought|shall|spoilt|thence|whence|` +
	`therein|wherein|thereof|whereof|upon|whoever|whomever)\b`)

// TestStyleOfPages keeps the pages in today's words. The log of changes quotes texts of the past.
func TestStyleOfPages(t *testing.T) {
	root, names := projectFiles(t)
	looked := 0
	for _, name := range names {
		if path.Ext(name) != ".md" || name == "CHANGELOG.md" || strings.Contains("/"+name, "/testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		looked++
		for i, line := range strings.Split(string(text), "\n") {
			for _, w := range pageWords.FindAllString(line, -1) {
				t.Errorf("%s:%d: %q is not a word of today: say it plainly", name, i+1, w)
			}
		}
	}
	if looked < 30 {
		t.Errorf("only %d pages were looked at", looked)
	}
}

// TestStyle keeps Go sources readable on a screen and in the field's own words. Long raw strings
// are exempt, tags of fields among them: they are of another language, and breaking one changes it.
func TestStyle(t *testing.T) {
	root, names := projectFiles(t)
	looked := 0
	for _, name := range names {
		if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		looked++
		for _, found := range styleOf(name, text) {
			t.Errorf("%s:%d: %s", name, found.line, found.what)
		}
	}
	if looked < 500 {
		t.Errorf("only %d files were looked at", looked)
	}
}

// untidy is a line that breaks the style.
type untidy struct {
	line int
	what string
}

var (
	generated   = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	quaintWords = quaint()
)

// quaint matches the words of plainWords.
func quaint() *regexp.Regexp {
	var words []string
	for w := range plainWords {
		words = append(words, strings.Split(w, ", ")...)
	}
	return regexp.MustCompile(`(?i)\b(` + strings.Join(words, "|") + `)\b`)
}

// plainFor returns what to say instead of a quaint word.
func plainFor(word string) string {
	for words, instead := range plainWords {
		for w := range strings.SplitSeq(words, ", ") {
			if strings.EqualFold(w, word) {
				return instead
			}
		}
	}
	return ""
}

// styleOf returns what is wrong with the style of a Go file.
func styleOf(name string, text []byte) (found []untidy) {
	if generated.Match(text) || name == "tests/style_test.go" {
		return nil
	}
	lines := strings.Split(string(text), "\n")
	raw := map[int]bool{} // lines on which a raw string goes beyond what a line may have
	files := token.NewFileSet()
	file := files.AddFile(name, -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		first := file.Line(pos)
		if tok == token.STRING && lit[0] == '`' {
			for i := range strings.Count(lit, "\n") + 1 {
				raw[first+i] = true
			}
		}
		if lit == `"nobody"` { // a user of Unix
			continue
		}
		if tok == token.COMMENT || tok == token.STRING {
			for i, part := range strings.Split(lit, "\n") {
				for _, w := range quaintWords.FindAllString(part, -1) {
					found = append(found, untidy{first + i, w + ": say " + plainFor(w)})
				}
			}
		}
	}
	for i, line := range lines {
		most, what := maxCode, "the line has more than 120 columns: break it"
		if strings.HasPrefix(strings.TrimLeft(line, "\t"), "//") {
			most, what = maxComment, "the comment has more than 100 columns: wrap it"
		}
		if utf8.RuneCountInString(line) > most && !raw[i+1] {
			found = append(found, untidy{i + 1, what})
		}
	}
	return found
}

// TestWhatStyleFinds shows that what is tested above can fail.
func TestWhatStyleFinds(t *testing.T) {
	long := strings.Repeat("x", 101)
	for text, want := range map[string]int{
		"package p\n":                                                                           0,
		"package p\n\n// " + long + "\n":                                                        1,
		"package p\n\nvar x = 1 // 1234567" + long:                                              1,
		"package p\n\nvar x = `" + long + "`":                                                   0,
		"package p\n\nvar x" + long + " = 1 + 1 + 1 + 1":                                        1,
		"package p\n\n// Nobody reads that of Whoever.\nvar x = \"upon\"":                       4,
		"package p\n\nvar nobody = 1":                                                           0,
		"// Code generated by x. DO NOT EDIT.\n\npackage p\n\n// " + long + "\n":                0,
		"package p\n\ntype t struct {\n\tx int `help:\"" + long + "\"`\n}\n":                    0,
		"package p\n\nvar (\n\ta = `\nx `\n\tb = \"" + strings.Repeat("y", 2*maxCode) + "\"\n)": 1,
	} {
		if got := styleOf("p.go", []byte(text)); len(got) != want {
			t.Errorf("%q: %v, want %d", text, got, want)
		}
	}
}
