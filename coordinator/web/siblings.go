package web

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/coordinator/cache"
)

// siblings are where the other replicas serve the page, for a page that is read where this replica
// says that it is reached. One that is read under another name, through a proxy or a tunnel, is not
// told: its reader may not reach them, and another program may listen there.
func (s *Server) siblings(r *http.Request) []string {
	own, all := s.pages()
	if own == "" || !strings.EqualFold(own, s.scheme()+r.Host) {
		return nil
	}
	return all
}

// pages are where this replica and the others serve the page, as they have announced it.
func (s *Server) pages() (own string, others []string) {
	s.replica.Cache().View(func(c *cache.Content) {
		for _, id := range slices.Sorted(maps.Keys(c.Replicas)) {
			at := c.Replicas[id].Record.Page
			switch {
			case !isOrigin(at):
			case id == s.cfg.ReplicaID:
				own = at
			default:
				others = append(others, at)
			}
		}
	})
	return own, others
}

func (s *Server) scheme() string {
	if s.access.TLS() != nil {
		return "https://"
	}
	return "http://"
}

// isOrigin reports whether a text is an origin and nothing else: it goes into a header.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" &&
		strings.EqualFold(text, u.Scheme+"://"+u.Host) && !strings.ContainsAny(text, " ;,'\"")
}

// askedBySibling reports whether another replica's page asks whether this one is ready: a page
// whose replica is gone moves to one that is. It learns one bit, as everyone does.
func (s *Server) askedBySibling(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if r.Method != http.MethodGet || r.URL.EscapedPath() != readyPath || r.URL.RawQuery != "" || origin == "" ||
		r.Header.Get("Sec-Fetch-Mode") != "cors" {
		return false
	}
	_, others := s.pages()
	return slices.ContainsFunc(others, func(at string) bool { return strings.EqualFold(at, origin) })
}
