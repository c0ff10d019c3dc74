package source

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/provider/egress"
	"github.com/leasehold/leasehold/store"
)

// Pace is how often a source is asked, and how long an answer may take.
type Pace struct {
	Every   store.Duration `json:"every"`   // 15s if it is not set
	Timeout store.Duration `json:"timeout"` // 5s if it is not set
}

// settings checks and completes a pace.
func (p Pace) settings(perGroup bool) (query.Settings, error) {
	s := query.Settings{
		Every:   cmp.Or(p.Every.D(), query.DefaultEvery),
		Timeout: cmp.Or(p.Timeout.D(), query.DefaultTimeout), PerGroup: perGroup,
	}
	switch {
	case s.Every < query.ShortestEvery || s.Every > query.LongestEvery:
		return s, fmt.Errorf("every: %s: must be %s to %s", s.Every, query.ShortestEvery, query.LongestEvery)
	case s.Timeout < time.Second || s.Timeout > query.LongestTimeout:
		return s, fmt.Errorf("timeout: %s: must be 1s to %s", s.Timeout, query.LongestTimeout)
	}
	return s, nil
}

// Remote is what is asked by HTTP.
type Remote struct {
	URL string `json:"url"`
	// TokenFile holds a token to send as Authorization: Bearer; read again for each request.
	TokenFile string `json:"token_file"`
	CACert    string `json:"cacert"` // certificate authority of the server; empty: the system's
}

// groupMark is replaced by the group's name in a URL or a query. Names need no escaping: they
// consist of a-z, 0-9 and -.
const groupMark = "${group}"

// remote asks for documents.
type remote struct {
	url       string
	tokenFile string
	client    *http.Client
}

func (c Remote) open() (remote, error) {
	r := remote{url: c.URL, tokenFile: c.TokenFile}
	u, err := url.Parse(strings.ReplaceAll(c.URL, groupMark, "group"))
	switch {
	case c.URL == "":
		return r, errors.New("url: is missing")
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return r, errors.New("url: must be a URL that begins with https:// or http://")
	case u.User != nil:
		return r, errors.New("url: must hold no password: put a token into a file that token_file names")
	}
	if _, err := r.token(); err != nil {
		return r, err
	}
	r.client, err = egress.Client(c.CACert, query.LongestTimeout)
	return r, err
}

// token returns the token to send; "": none.
func (r *remote) token() (string, error) {
	if r.tokenFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(r.tokenFile)
	if err != nil {
		return "", fmt.Errorf("token_file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return "", fmt.Errorf("token_file: %s: must hold one line", r.tokenFile)
	}
	return token, nil
}
