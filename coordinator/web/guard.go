package web

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/api"
)

// headers are part of every answer, also of refusals. Only pages for people have script and style,
// and a policy of their own. No other origin may read anything, so there are no CORS headers,
// except for the pages of other replicas: they may ask whether this replica is ready.
var headers = [][2]string{
	{"Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"X-Frame-Options", "DENY"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Embedder-Policy", "require-corp"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"},
	{"Cache-Control", "no-store"},
}

// handler answers the requests that pass the checks.
func (s *Server) handler() http.Handler {
	byPath := map[string]endpoint{}
	for _, p := range s.endpoints() {
		byPath[p.path] = p
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer inUse(r)()
		for _, h := range headers {
			w.Header().Set(h[0], h[1])
		}
		// The path is used as it came: it is not cleaned, so dots and escapes lead nowhere else.
		p, known := byPath[r.URL.EscapedPath()]
		toAPI := s.api != nil && strings.HasPrefix(r.URL.EscapedPath(), api.Root)
		sibling := s.askedBySibling(r)
		if sibling {
			w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
			w.Header().Set("Vary", "Origin")
		}
		code := s.refuse(r, toAPI, sibling)
		switch {
		case code == 0 && toAPI:
			if code = s.serveAPI(w, r); code == 0 {
				return
			}
		case code != 0:
		case (!known || !p.open(r)) && !s.admitted(r):
			code = http.StatusUnauthorized // before the client learns whether the page exists
		case !known && s.people.serve(w, r):
			return
		case !known:
			code = http.StatusNotFound
		}
		if code != 0 {
			s.turnAway(w, r, code)
			return
		}
		p.serve(w, r)
	})
}

// serveAPI passes a request to the API; otherwise it returns the status of the refusal. Only users
// of etcd may edit: the right to read the page is not enough.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) int {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if _, _, shown := r.BasicAuth(); reads && !s.admitted(r) && !s.api.Knows(r) || !reads && !shown {
		return http.StatusUnauthorized
	}
	s.api.ServeHTTP(w, r)
	return 0
}

// refuse returns the status with which a request is refused for any client; 0: it is not refused.
// The API checks methods and bodies by itself.
func (s *Server) refuse(r *http.Request, toAPI, sibling bool) int {
	switch {
	case !r.ProtoAtLeast(1, 1):
		return http.StatusHTTPVersionNotSupported // it need not name a host
	case toAPI:
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return http.StatusMethodNotAllowed
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0:
		return http.StatusRequestEntityTooLarge
	}
	switch {
	case s.local && !s.isOurs(r.Host) && !s.access.Vouched(r.RemoteAddr, r.Header):
		return http.StatusMisdirectedRequest
	case foreign(r) && !sibling:
		return http.StatusForbidden
	}
	return 0
}

// isOurs reports whether a Host header names this server as a client on this machine would. A
// foreign name that resolves to loopback (DNS rebinding) does not: the browser would take the
// attacker's page for our origin.
func (s *Server) isOurs(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost") || s.host != "" && strings.EqualFold(host, s.host)
}

// foreign reports whether a browser sends the request for a page of another origin. Following a
// link to us is allowed, reading us from elsewhere is not.
func foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
	}
	return false
}

// admitted reports whether the client has presented the required credentials.
func (s *Server) admitted(r *http.Request) bool {
	return s.access.Vouched(r.RemoteAddr, r.Header) ||
		s.access.Admits(s.local && !s.access.Proxied(), r.Header.Get("Authorization"), r.TLS)
}

// turnAway sends the status, and nothing else.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, code int) {
	s.metrics.httpRefused.WithLabelValues(fmt.Sprint(code)).Inc()
	switch code {
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", "GET, HEAD")
	case http.StatusUnauthorized:
		w.Header().Add("WWW-Authenticate", `Bearer realm="leasehold"`)
		w.Header().Add("WWW-Authenticate",
			`Basic realm="leasehold: any name, and the token as the password", charset="UTF-8"`)
		s.refusals.note(r.RemoteAddr)
	}
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close") // what follows is not read
	}
	say(w, code, http.StatusText(code))
}

func say(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // a client that is gone needs no answer
}

// refusalsEvery is how often the log reports clients without credentials.
const refusalsEvery = time.Minute

// refusals logs clients without credentials: the first at once, then their number.
type refusals struct {
	log *slog.Logger

	mu     sync.Mutex
	logged time.Time
	since  int // requests
}

func newRefusals(log *slog.Logger) *refusals { return &refusals{log: log} }

func (f *refusals) note(from string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since++
	if time.Since(f.logged) < refusalsEvery {
		return
	}
	f.log.Warn("http requests without the right credentials refused", "requests", f.since, "last_from", from)
	f.logged, f.since = time.Now(), 0
}
