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
)

//go:embed assets
var assets embed.FS

// Asset is a file that pages refer to by its digest, so that browsers may keep it.
type Asset struct {
	Path string // as pages name it, with the digest
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

// looks are the templates, in two variants: a whole page shows ages as text, for readers without
// scripts; in updates ages have their time alone and the page's script writes and counts them, so that a
// fragment stays the same while nothing but time passes.
type looks struct{ whole, update *template.Template }

func readLooks() (looks, error) {
	var l looks
	var err error
	if l.whole, err = readTemplates(false); err == nil {
		l.update, err = readTemplates(true)
	}
	return l, err
}

func readTemplates(update bool) (*template.Template, error) {
	funcs := template.FuncMap{
		"path":  url.PathEscape,
		"query": url.QueryEscape,
		"clock": func(t time.Time) string { return t.UTC().Format("01-02 15:04:05") },
		"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"age":   func(t, now time.Time) when { return when{t, reason.Age(now, t)} },
		"lines": reason.OneLine,
		"glyph": func(kind string) string { return glyphs[kind] },
		"add":   func(a, b int) int { return a + b },
		"capital": func(s string) string {
			if s == "" {
				return ""
			}
			return strings.ToUpper(s[:1]) + s[1:]
		},
		"args": func(all ...any) []any { return all },
	}
	if update {
		funcs["age"] = func(t, _ time.Time) when { return when{Time: t} }
	}
	t, err := template.New("page").Funcs(funcs).ParseFS(assets, "assets/*.html")
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	return t, nil
}

// when is a time, and how long ago it was.
type when struct {
	Time time.Time
	Text string
}

// render makes the HTML of one template.
func render(t *template.Template, name string, data any) (template.HTML, error) {
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("render %s: %w", name, err)
	}
	return template.HTML(b.String()), nil // html/template has escaped it
}
