package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/store"
)

//go:embed assets
var assets embed.FS

// Asset is a file that pages refer to by its digest, so that browsers may cache it.
type Asset struct {
	Path string // as in pages, with the digest
	Type string
	Text []byte
}

func readAsset(name, contentType string) (Asset, error) {
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		return Asset{}, fmt.Errorf("read asset %s: %w", name, err)
	}
	sum := sha256.Sum256(text)
	base, ext, _ := strings.Cut(name, ".")
	return Asset{Path: "/" + base + "-" + hex.EncodeToString(sum[:6]) + "." + ext, Type: contentType, Text: text}, nil
}

// readTemplates parses the templates. Their output does not depend on the time: they leave out
// ages, and withAges fills them in.
func readTemplates() (*template.Template, error) {
	t, err := template.New("page").Funcs(template.FuncMap{
		"path":    url.PathEscape,
		"clock":   clock,
		"stamp":   func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"lines":   reason.OneLine,
		"why":     func(b story.Blockage) string { return withClock(b.Why(), &b.Of) },
		"until":   func(b story.Blockage) string { return withClock(b.Until(), &b.Of) },
		"linked":  linked,
		"plain":   plain,
		"glyph":   func(kind string) string { return view.Glyphs[kind] },
		"kinds":   func() []string { return view.Kinds },
		"meaning": func(kind string) string { return view.Meanings[kind] },
		"slot":    func() template.HTML { return slot },
		"add":     func(a, b int) int { return a + b },
		"args":    func(all ...any) []any { return all },
		"took":    func(d store.Duration) string { return review.Took(d.D()) },
		"seconds": func(d store.Duration) float64 { return d.D().Seconds() },
		"percent": review.Percent,
		"capital": func(s string) string {
			if s == "" {
				return ""
			}
			return strings.ToUpper(s[:1]) + s[1:]
		},
	}).ParseFS(assets, "assets/*.html")
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	return t, nil
}

// clock is a time as pages show it, in UTC.
func clock(t time.Time) string { return t.UTC().Format("01-02 15:04:05") }

// withClock writes the times in what is said of blocked work as pages show times.
func withClock(text string, of *store.BlockedFacts) string {
	for _, at := range []time.Time{of.Opens, of.Since} {
		if !at.IsZero() {
			text = strings.ReplaceAll(text, at.UTC().Format(time.RFC3339), clock(at)+" UTC")
		}
	}
	return reason.OneLine(text)
}

// agesEnd is the end of a time whose age is to be shown. No text can forge it: templates escape
// quotes and angle brackets.
const (
	agesStart = `<time datetime="`
	agesEnd   = `" data-age></time>`
)

// withAges writes the age of each time into a document, for readers without scripts. Updates go out
// without: a fragment is the same while nothing but time passes, and the script counts.
func withAges(text string, now time.Time) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, agesEnd)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		at, err := time.Parse(time.RFC3339Nano, before[strings.LastIndex(before, agesStart)+len(agesStart):])
		b.WriteString(`" data-age>`)
		if err == nil {
			b.WriteString(reason.Age(now, at))
		}
		b.WriteString("</time>")
		text = after
	}
}

// render makes the HTML of one template.
func render(t *template.Template, name string, data any) (template.HTML, error) {
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("render %s: %w", name, err)
	}
	return template.HTML(b.String()), nil // html/template has escaped it
}
