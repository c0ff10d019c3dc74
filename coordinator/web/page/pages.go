package page

import (
	"errors"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/store"
)

// Config has the values that pages need.
type Config struct {
	Shard   string
	Replica string // that serves them
}

// Replica has the records in memory.
type Replica interface{ Cache() *cache.Cache }

// Deps are what pages are made from.
type Deps struct {
	Replica Replica
	Journal *journal.Memory
	Views   *view.Source
}

// Pages makes pages.
type Pages struct {
	cfg   Config
	deps  Deps
	views *view.Source
	look  *template.Template
	drawn drawn

	Style, Script, Icon Asset
}

// New parses the templates.
func New(cfg Config, deps Deps) (*Pages, error) {
	if cfg.Shard == "" || deps.Replica == nil || deps.Journal == nil || deps.Views == nil {
		return nil, errors.New("pages need a shard, a replica, a journal and views")
	}
	p := &Pages{cfg: cfg, deps: deps, views: deps.Views}
	var err error
	if p.look, err = readTemplates(); err != nil {
		return nil, err
	}
	if p.Style, err = readAsset("page.css", "text/css; charset=utf-8"); err != nil {
		return nil, err
	}
	if p.Script, err = readAsset("page.js", "text/javascript; charset=utf-8"); err != nil {
		return nil, err
	}
	p.Icon, err = readAsset("icon.svg", "image/svg+xml")
	return p, err
}

// At makes the page at a path, given as it came, with its escapes; found is false if there is no
// such page. Ages are not filled in yet.
func (p *Pages) At(path string, query url.Values, now time.Time) (page Page, found bool, err error) {
	b := &builder{p: p, query: query, now: now, at: momentOf(query)}
	switch {
	case path == "/":
		page = p.shard(b)
	case path == "/events":
		page = p.events(b)
	case path == "/report":
		page = p.report(b)
	default:
		kind, name, ok := placeOf(path)
		switch {
		case !ok:
			return Page{}, false, nil
		case kind == "g":
			page = p.group(b, name)
		default:
			page = p.instance(b, name)
		}
	}
	page.Top = b.fragment("truth", "truth", page)
	if page.Truth.At.IsZero() && path != "/report" { // neither the past nor a report changes by itself
		page.Live = "/live?" + url.Values{"page": {path}, "query": {query.Encode()}}.Encode()
	}
	return page, true, b.err
}

// placeOf splits the path of a group or an instance.
func placeOf(path string) (kind, name string, ok bool) {
	kind, rest, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !ok || kind != "g" && kind != "i" || rest == "" || strings.Contains(rest, "/") {
		return "", "", false
	}
	name, err := url.PathUnescape(rest)
	return kind, name, err == nil
}

// Write writes a page as a document.
func (p *Pages) Write(w io.Writer, page Page, now time.Time) error {
	text, err := render(p.look, "document", struct {
		Page
		Have                string
		Style, Script, Icon string
	}{page, page.Have(), p.Style.Path, p.Script.Path, p.Icon.Path})
	if err == nil {
		_, err = io.WriteString(w, withAges(string(text), now))
	}
	return err
}

// builder makes one page. It keeps the first error.
type builder struct {
	p     *Pages
	query url.Values
	now   time.Time
	at    time.Time // a moment of the past; zero: the present
	err   error
}

// revision is the revision of the cache.
func (b *builder) revision() (rev store.Revision) {
	b.p.deps.Replica.Cache().View(func(c *cache.Content) { rev = c.Revision })
	return rev
}

func (b *builder) html(name string, data any) template.HTML {
	text, err := render(b.p.look, name, data)
	if err != nil && b.err == nil {
		b.err = err
	}
	return text
}

// fragment renders a template that makes one element with this ID.
func (b *builder) fragment(id, name string, data any) Fragment {
	return Fragment{ID: id, Head: b.html(name, data)}
}

// slot marks where a template has its parts. No text can contain it: templates replace it.
const slot = "\x00"

// holding renders a template that makes one element with this ID, with parts in its slots.
func (b *builder) holding(id, name string, data any, parts ...Fragment) Fragment {
	texts := strings.Split(string(b.html(name, data)), slot)
	f := Fragment{ID: id, Head: template.HTML(texts[0])} // of what html/template has escaped, as below
	for i, text := range texts[1:] {
		f.Parts = append(f.Parts, parts[i])
		if i < len(texts)-2 {
			f.Parts = append(f.Parts, Fragment{Head: template.HTML(text)})
		} else {
			f.Tail = template.HTML(text)
		}
	}
	return f
}

func (b *builder) page(t view.Truth, rev store.Revision) Page {
	return Page{Status: http.StatusOK, Truth: Truth{Truth: t, Replica: b.p.cfg.Replica}, Revision: rev}
}

// unread is the page of a replica that has read nothing yet.
func (b *builder) unread() Page {
	page := b.page(b.p.views.Truth(b.now), 0)
	page.Status, page.Command = http.StatusServiceUnavailable, "leasehold status"
	page.Title, page.Here = b.p.cfg.Shard, "shard"
	page.Truth.Stale = true
	page.Main = []Fragment{b.fragment("lost", "unread", nil)}
	return page
}

// oneOf returns the first of the words that the text is; "" if it is none of them.
func oneOf(text string, words ...string) string {
	for _, w := range words {
		if strings.EqualFold(text, w) {
			return w
		}
	}
	return ""
}
