package checks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/agent/protocol"
)

const (
	maxBody   = 64 << 10 // bytes of an answer that are searched
	maxHeader = 64 << 10
	maxHops   = 5 // redirects that are followed
)

// httpProbe requests a page over a new connection each time, because a server that accepts no new
// connections is unhealthy.
type httpProbe struct {
	spec   *protocol.HTTPCheck
	url    string
	method string
	status []statusRange
	body   *regexp.Regexp
}

type statusRange struct{ low, high int }

func newHTTPProbe(c *protocol.HTTPCheck) (probe, error) {
	to, err := address(c.GetHost(), c.GetPort())
	if err != nil {
		return nil, err
	}
	p := &httpProbe{spec: c, method: c.GetMethod()}
	scheme := c.GetScheme()
	switch scheme {
	case "":
		scheme = "http"
	case "http", "https":
	default:
		return nil, fmt.Errorf("scheme %q: http or https", scheme)
	}
	if p.method == "" {
		p.method = http.MethodGet
	}
	path := c.GetPath()
	if path == "" {
		path = "/"
	}
	u, err := url.Parse(scheme + "://" + to + path)
	if err != nil {
		return nil, fmt.Errorf("path %q: %w", path, err)
	}
	p.url = u.String()
	if c.GetBodyRegexp() != "" {
		if p.body, err = regexp.Compile(c.GetBodyRegexp()); err != nil {
			return nil, fmt.Errorf("body_regexp: %w", err)
		}
	}
	for _, s := range c.GetStatus() {
		low, high, isRange := strings.Cut(s, "-")
		if !isRange {
			high = low
		}
		from, err1 := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("status %q: a number, or two like 200-299", s)
		}
		p.status = append(p.status, statusRange{from, to})
	}
	if len(p.status) == 0 {
		p.status = []statusRange{{200, 399}}
	}
	return p.run, nil
}

func (p *httpProbe) run(ctx context.Context) Result {
	req, err := http.NewRequestWithContext(ctx, p.method, p.url, nil)
	if err != nil {
		return Result(err.Error())
	}
	req.Header.Set("User-Agent", "leasehold-agent")
	for name, value := range p.spec.GetHeaders() {
		if http.CanonicalHeaderKey(name) == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	// The transport's own dialing outlives the request: a server that accepts a connection and then
	// sends nothing would leave the dial behind.
	dial := func(_ context.Context, network, addr string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	transport := &http.Transport{
		DialContext: dial, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		DialTLSContext: func(_ context.Context, network, addr string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(addr) // the transport has joined them
			cfg, err := tlsConfig(p.spec.GetTls(), host)
			if err != nil {
				return nil, err
			}
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			over := tls.Client(conn, cfg)
			if err := over.HandshakeContext(ctx); err != nil {
				_ = conn.Close() // the error has the reason already
				return nil, err
			}
			return over, nil
		},
	}
	client := &http.Client{Transport: transport, CheckRedirect: p.follow}
	resp, err := client.Do(req)
	if err != nil {
		var about *url.Error
		if errors.As(err, &about) {
			err = about.Err // without the address, which the check's name implies
		}
		return failure(ctx, err)
	}
	defer resp.Body.Close()
	return p.judge(ctx, resp)
}

func (p *httpProbe) follow(_ *http.Request, via []*http.Request) error {
	switch {
	case !p.spec.GetFollowRedirects():
		return http.ErrUseLastResponse
	case len(via) > maxHops:
		return fmt.Errorf("more than %d redirections", maxHops)
	default:
		return nil
	}
}

func (p *httpProbe) judge(ctx context.Context, resp *http.Response) Result {
	passes := false
	for _, r := range p.status {
		passes = passes || r.low <= resp.StatusCode && resp.StatusCode <= r.high
	}
	if !passes {
		return Result(strings.TrimSpace(fmt.Sprintf("status %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))))
	}
	if p.body == nil && p.spec.GetBody() == "" {
		return "" // the rest does not matter
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	switch {
	case err != nil:
		return failure(ctx, err)
	case !strings.Contains(string(text), p.spec.GetBody()):
		return Result(fmt.Sprintf("%q is not in the answer", p.spec.GetBody()))
	case p.body != nil && !p.body.Match(text):
		return Result(fmt.Sprintf("the answer does not match %q", p.body))
	default:
		return ""
	}
}
