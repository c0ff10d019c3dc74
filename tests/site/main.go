// Command site renders the project's pages as a site of static files: README.md and docs, with a
// menu. It needs no network, and fails for a link to nothing.
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

//go:embed page.html
var layout string

//go:embed site.css
var style []byte

func main() {
	root := flag.String("root", ".", "directory of the project")
	out := flag.String("out", "bin/site", "directory of the site; what is in it is removed")
	flag.Parse()
	if err := build(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// site is what is being built. Files keep their places: docs/cli.md becomes docs/cli.html.
type site struct {
	root, out string
	markdown  goldmark.Markdown
	page      *template.Template
	pages     map[string]*page // by source
	menu      []section
}

// page is one page of it.
type page struct {
	Source, Title string
	body          bytes.Buffer
	anchors       map[string]bool
	links         []string // to other places of the project: path#anchor
}

func build(root, out string) error {
	parsed, err := template.New("page").Parse(layout)
	if err != nil {
		return err
	}
	s := &site{
		root: root, out: out, page: parsed, pages: map[string]*page{},
		markdown: goldmark.New(goldmark.WithExtensions(extension.GFM),
			goldmark.WithParserOptions(parser.WithAutoHeadingID())),
	}
	sources, err := s.sources()
	if err != nil {
		return err
	}
	sections, err := complete(sources)
	if err != nil {
		return err
	}
	s.menu = sections
	for _, source := range sources {
		if s.pages[source], err = s.render(source); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := s.write("site.css", style); err != nil {
		return err
	}
	for _, source := range sources {
		if err := s.publish(s.pages[source]); err != nil {
			return err
		}
	}
	fmt.Printf("%s: %d pages, no dead link\n", out, len(sources))
	return nil
}

// sources are the pages of the project, README.md first.
func (s *site) sources() ([]string, error) {
	all := []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md"}
	err := fs.WalkDir(os.DirFS(s.root), "docs", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".md" {
			all = append(all, name)
		}
		return err
	})
	return all, err
}

// complete is the menu with all pages: those that it does not name come last.
func complete(sources []string) ([]section, error) {
	more := section{Name: "More", Pages: slices.Clone(sources)}
	for _, s := range menu {
		for _, name := range s.Pages {
			i := slices.Index(more.Pages, name)
			if i < 0 {
				return nil, fmt.Errorf("the menu names %s, which does not exist, or names it twice", name)
			}
			more.Pages = slices.Delete(more.Pages, i, i+1)
		}
	}
	if len(more.Pages) == 0 {
		return menu, nil
	}
	return append(slices.Clone(menu), more), nil
}

// render renders a page, with links to other pages as the site has them.
func (s *site) render(source string) (*page, error) {
	content, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(source)))
	if err != nil {
		return nil, err
	}
	p := &page{Source: source, anchors: map[string]bool{"": true}}
	ids := parser.NewContext(parser.WithIDs(&slugs{p.anchors}))
	tree := s.markdown.Parser().Parse(text.NewReader(content), parser.WithContext(ids))
	err = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 1 && p.Title == "" {
				p.Title = plain(n, content)
			}
		case *ast.Link:
			n.Destination = p.follow(n.Destination)
		case *ast.Image:
			n.Destination = p.follow(n.Destination)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	if p.Title == "" {
		return nil, fmt.Errorf("%s has no title", source)
	}
	return p, s.markdown.Renderer().Render(&p.body, content, tree)
}

// follow notes where a link leads, and returns where it leads on the site.
func (p *page) follow(destination []byte) []byte {
	to := string(destination)
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return destination
	}
	file, anchor, _ := strings.Cut(to, "#")
	target := p.Source
	if file != "" {
		target = path.Join(path.Dir(p.Source), file)
	}
	p.links = append(p.links, target+"#"+anchor)
	if file == "" {
		return destination
	}
	return []byte(strings.TrimSuffix(relative(p.Source, placeOf(target))+"#"+anchor, "#"))
}

// placeOf is where a file of the project is on the site.
func placeOf(source string) string {
	if source == "README.md" {
		return "index.html"
	}
	if stem, isPage := strings.CutSuffix(source, ".md"); isPage {
		return stem + ".html"
	}
	return source
}

// relative is the way from a page to a file.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}

// publish writes a page, and the files that it refers to.
func (s *site) publish(p *page) error {
	for _, link := range p.links {
		target, anchor, _ := strings.Cut(link, "#")
		if to, isPage := s.pages[target]; isPage {
			if !to.anchors[anchor] {
				return fmt.Errorf("%s: links to %s, where no heading is called #%s", p.Source, target, anchor)
			}
			continue
		}
		content, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(target)))
		if err != nil {
			return fmt.Errorf("%s: a link to nothing: %w", p.Source, err)
		}
		if err := s.write(target, content); err != nil {
			return err
		}
	}
	type entry struct {
		Title, Href string
		Here        bool
	}
	type group struct {
		Name    string
		Entries []entry
	}
	var groups []group
	for _, section := range s.menu {
		g := group{Name: section.Name}
		for _, source := range section.Pages {
			g.Entries = append(g.Entries, entry{s.pages[source].Title, relative(p.Source, placeOf(source)), source == p.Source})
		}
		groups = append(groups, g)
	}
	var html bytes.Buffer
	err := s.page.Execute(&html, map[string]any{
		"Title": p.Title, "Style": relative(p.Source, "site.css"),
		"Home": relative(p.Source, "index.html"), "Menu": groups,
		"Body": template.HTML(p.body.String()), // pages are ours, and raw HTML in them is left out
	})
	if err != nil {
		return err
	}
	return s.write(placeOf(p.Source), html.Bytes())
}

func (s *site) write(place string, content []byte) error {
	file := filepath.Join(s.out, filepath.FromSlash(place))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// plain is the text of a heading.
func plain(n ast.Node, content []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, isText := n.(*ast.Text); isText && entering {
			b.Write(t.Segment.Value(content))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}
