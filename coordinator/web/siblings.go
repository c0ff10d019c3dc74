package web

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/coordinator/cache"
)

// siblings are the addresses of the page at the other replicas, for a page that is read at the
// address that this replica announces. A page that is read at another address, through a proxy or a
// tunnel, does not get them: its reader may not reach them, and another program may listen there.
func (s *Server) siblings(r *http.Request) []string {
	own, all := s.pages()
	if own == "" || !strings.EqualFold(own, s.scheme()+r.Host) {
		return nil
	}
	return all
}

// pages are the addresses that this replica and the others have announced.
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

// isOrigin reports whether a text is an origin and nothing else, since it goes into a header.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" &&
		strings.EqualFold(text, u.Scheme+"://"+u.Host) && !strings.ContainsAny(text, " ;,'\"")
}

// askedBySibling reports whether another replica's page asks whether this replica is ready: a page
// whose replica is gone moves to a ready one. It learns one bit, as every client may.
func (s *Server) askedBySibling(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if r.Method != http.MethodGet || r.URL.EscapedPath() != readyPath || r.URL.RawQuery != "" || origin == "" ||
		r.Header.Get("Sec-Fetch-Mode") != "cors" {
		return false
	}
	_, others := s.pages()
	return slices.ContainsFunc(others, func(at string) bool { return strings.EqualFold(at, origin) })
}
