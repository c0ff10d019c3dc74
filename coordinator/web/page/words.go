package page

import (
	"html/template"
	"net/url"
	"regexp"
	"strings"

	"github.com/leasehold/leasehold/coordinator/reason"
)

// linked is a text with links to the instances that it names.
func linked(text string, ids []string) template.HTML {
	text = reason.OneLine(text)
	var b strings.Builder
	for {
		at, name := firstOf(text, ids)
		if name == "" {
			b.WriteString(template.HTMLEscapeString(text))
			return template.HTML(b.String()) // it is escaped, as are the links
		}
		b.WriteString(template.HTMLEscapeString(text[:at]))
		b.WriteString(`<a href="/i/` + template.HTMLEscapeString(url.PathEscape(name)) + `">` +
			template.HTMLEscapeString(name) + "</a>")
		text = text[at+len(name):]
	}
}

// firstOf finds the first of the names in a text, of two at one place the longer one; "" if none is
// there.
func firstOf(text string, names []string) (at int, first string) {
	for _, name := range names {
		n := strings.Index(text, name)
		if name != "" && n >= 0 && (first == "" || n < at || n == at && len(name) > len(first)) {
			at, first = n, name
		}
	}
	return at, first
}

var markdownLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// plain is a text of docs/rules.md without marks and links.
func plain(text string) string {
	return strings.ReplaceAll(markdownLink.ReplaceAllString(text, "$1"), "`", "")
}
