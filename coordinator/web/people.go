package web

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/web/page"
)

// policy is what a page for people may load: its own style, script and pictures, and nothing
// inline. So text that got into it unescaped could not run.
const (
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
		"connect-src 'self'"
	policyEnd = "; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

// people serves the pages for people.
type people struct {
	pages  *page.Pages
	others func(*http.Request) []string // where other replicas serve the page
	assets map[string]page.Asset
}

func newPeople(pages *page.Pages, others func(*http.Request) []string) *people {
	p := &people{pages: pages, others: others, assets: map[string]page.Asset{}}
	for _, a := range []page.Asset{pages.Style, pages.Script, pages.Icon} {
		p.assets[a.Path] = a
	}
	return p
}

// serve answers with a page; false: no page has this path.
func (p *people) serve(w http.ResponseWriter, r *http.Request) bool {
	path := r.URL.EscapedPath()
	if a, found := p.assets[path]; found {
		// the path contains the digest: the same path always has the same content
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
		send(w, r, http.StatusOK, a.Type, a.Text)
		return true
	}
	now := time.Now()
	shown, found, err := p.pages.At(path, r.URL.Query(), now)
	if !found {
		return false
	}
	var text bytes.Buffer
	if err == nil {
		shown.Others = p.others(r)
		err = p.pages.Write(&text, shown, now)
	}
	if err != nil {
		say(w, http.StatusInternalServerError, fmt.Sprintf("this page cannot be shown; in a terminal: %s", shown.Command))
		return true
	}
	w.Header().Set("Content-Security-Policy", strings.Join(append([]string{policy}, shown.Others...), " ")+policyEnd)
	send(w, r, shown.Status, "text/html; charset=utf-8", text.Bytes())
	return true
}

// send writes an answer, compressed if the client accepts that.
func send(w http.ResponseWriter, r *http.Request, code int, contentType string, text []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Vary", "Accept-Encoding")
	if acceptsGzip(r) {
		var small bytes.Buffer
		z := gzip.NewWriter(&small)
		_, err := z.Write(text)
		if err == nil {
			err = z.Close()
		}
		if err == nil { // a buffer accepts everything
			w.Header().Set("Content-Encoding", "gzip")
			text = small.Bytes()
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(code)
	_, _ = w.Write(text) // the client may be gone
}

func acceptsGzip(r *http.Request) bool {
	for _, coding := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") && strings.ReplaceAll(weight, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
