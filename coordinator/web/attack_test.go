package web_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/coordinator/access"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/coordinator/web"
)

const loopback = "127.0.0.1:0"

// What a program on this machine, or a page in its browser, may try on loopback.
func TestRequestsThatAreTurnedAway(t *testing.T) {
	t.Parallel()
	s := open(t, web.Config{Listen: loopback}, web.Deps{})
	host := "Host: " + s.server.Address() + "\r\n"
	for _, c := range []struct{ name, request, status string }{
		{"a method that changes things", "POST /metrics HTTP/1.1\r\n" + host + "Content-Length: 0\r\n\r\n", "405"},
		{"PUT", "PUT /livez HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc", "405"},
		{"DELETE", "DELETE /livez HTTP/1.1\r\n" + host + "\r\n", "405"},
		{
			"OPTIONS, as browsers ask for leave to read across origins",
			"OPTIONS /metrics HTTP/1.1\r\n" + host + "Origin: http://evil.example\r\n\r\n", "405",
		},
		{"TRACE", "TRACE /livez HTTP/1.1\r\n" + host + "\r\n", "405"},
		{"CONNECT, as to a proxy", "CONNECT etcd:2379 HTTP/1.1\r\n" + host + "\r\n", "405"},
		{"a method of nobody's", "get /livez HTTP/1.1\r\n" + host + "\r\n", "405"},
		{"a body", "GET /livez HTTP/1.1\r\n" + host + "Content-Length: 5\r\n\r\nhello", "413"},
		{
			"a body of unknown length", "GET /livez HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"413",
		},
		{
			"a body announced and not sent",
			"GET /livez HTTP/1.1\r\n" + host + "Content-Length: 1000000000000\r\nExpect: 100-continue\r\n\r\n", "413",
		},
		{
			"two lengths, to smuggle a request",
			"GET /livez HTTP/1.1\r\n" + host + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "400",
		},
		{"a path that leads upwards", "GET /../../../../etc/passwd HTTP/1.1\r\n" + host + "\r\n", "404"},
		{"the same in escapes", "GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n" + host + "\r\n", "404"},
		{"a way round to a page", "GET /livez/../metrics HTTP/1.1\r\n" + host + "\r\n", "404"},
		{"a page in escapes", "GET /%6detrics HTTP/1.1\r\n" + host + "\r\n", "404"},
		{"the library's own pages", "GET /debug/pprof/ HTTP/1.1\r\n" + host + "\r\n", "404"},
		{
			"a host that a stranger's name server has led here", "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n",
			"421",
		},
		{"the same with our port", "GET /livez HTTP/1.1\r\nHost: evil.example" + port(t, s) + "\r\n\r\n", "421"},
		{"a name that only begins like ours", "GET /livez HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n", "421"},
		{"another address", "GET /livez HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n", "421"},
		{"a host in the request's line", "GET http://evil.example/metrics HTTP/1.1\r\n" + host + "\r\n", "421"},
		{"an empty host", "GET /metrics HTTP/1.1\r\nHost:\r\n\r\n", "421"},
		{"no host", "GET /metrics HTTP/1.1\r\n\r\n", "400"},
		{"two hosts", "GET /metrics HTTP/1.1\r\n" + host + "Host: evil.example\r\n\r\n", "400"},
		{"HTTP/1.0, which need not name a host", "GET /metrics HTTP/1.0\r\n\r\n", "505"},
		{"another origin", "GET /metrics HTTP/1.1\r\n" + host + "Origin: http://evil.example\r\n\r\n", "403"},
		{
			"another origin on this machine", "GET /metrics HTTP/1.1\r\n" + host + "Origin: http://127.0.0.1:1\r\n\r\n",
			"403",
		},
		{"an origin without a name", "GET /metrics HTTP/1.1\r\n" + host + "Origin: null\r\n\r\n", "403"},
		{"another site's cache", "GET /metrics HTTP/1.1\r\n" + host +
			"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n\r\n", "403"},
		{"another site's frame", "GET / HTTP/1.1\r\n" + host +
			"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n\r\n", "403"},
		{"huge headers", "GET /livez HTTP/1.1\r\n" + host + "X: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", "431"},
		{"a huge path", "GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\n" + host + "\r\n", "431"},
		{"nonsense", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, rest := s.say(c.request)
			if c.status == "431" && status == "" {
				return // cut off while we still spoke: as good
			}
			if !strings.HasPrefix(status, c.status) {
				t.Errorf("answered %q, want %s\n%s", status, c.status, rest)
			}
			if strings.Contains(rest, "leasehold_") || strings.Contains(rest, ".go:") ||
				strings.Contains(rest, "Access-Control") {
				t.Errorf("the answer tells too much:\n%s", rest)
			}
		})
	}
	for name, more := range map[string]func(*http.Request){
		"a page of ours":      with("Sec-Fetch-Site", "same-origin"),
		"an address typed in": with("Sec-Fetch-Site", "none"),
		"localhost":           asked("localhost"),
		"through a tunnel":    asked("localhost:8080"),
		"IPv6":                asked("[::1]:7421"),
	} {
		if code, _, _ := s.get("/metrics", more); code != http.StatusOK {
			t.Errorf("%s: %d", name, code)
		}
	}
}

func port(t *testing.T, s *site) string {
	t.Helper()
	_, p, err := net.SplitHostPort(s.server.Address())
	if err != nil {
		t.Fatal(err)
	}
	return ":" + p
}

// Every answer carries them, refusals too.
func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	s := open(t, web.Config{Listen: loopback}, web.Deps{})
	for _, path := range []string{"/livez", "/readyz", "/readyz?verbose", "/metrics", "/nowhere"} {
		_, _, h := s.get(path)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff",
			"X-Frame-Options": "DENY",
			"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Embedder-Policy": "require-corp",
			"Cross-Origin-Resource-Policy": "same-origin", "Permissions-Policy": "camera=()",
			"Cache-Control": "no-store",
		} {
			if !strings.HasPrefix(h.Get(name), want) {
				t.Errorf("%s: %s: %q", path, name, h.Get(name))
			}
		}
		if !strings.HasPrefix(h.Get("Content-Type"), "text/plain") || h.Get("Access-Control-Allow-Origin") != "" ||
			h.Get("Server") != "" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

func TestBearerToken(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	cfg := p.everywhere()
	cfg.Access.TokenFile = secret(t, token+"\n")
	s := p.shows(open(t, cfg, web.Deps{}), nil)
	for _, c := range []struct {
		name, path string
		more       []func(*http.Request)
		code       int
	}{
		{"the token", "/metrics", []func(*http.Request){with("Authorization", "Bearer "+token)}, 200},
		{"the token, as some write it", "/metrics", []func(*http.Request){with("Authorization", "bearer "+token)}, 200},
		{
			"the token for verbose", "/readyz?verbose",
			[]func(*http.Request){with("Authorization", "Bearer "+token)},
			503,
		},
		{"no token, alive?", "/livez", nil, 200},
		{"no token, ready?", "/readyz", nil, 503},
		{"no token", "/metrics", nil, 401},
		{"no token for verbose", "/readyz?verbose", nil, 401},
		{"no token for the index", "/", nil, 401},
		{"no token for what is not there", "/g/web", nil, 401},
		{"a wrong token", "/metrics", []func(*http.Request){with("Authorization", "Bearer "+token+"x")}, 401},
		{
			"the beginning of the token", "/metrics",
			[]func(*http.Request){with("Authorization", "Bearer "+token[:20])},
			401,
		},
		{"an empty token", "/metrics", []func(*http.Request){with("Authorization", "Bearer ")}, 401},
		{
			"the token as a browser sends a password", "/metrics",
			[]func(*http.Request){func(r *http.Request) { r.SetBasicAuth("x", token) }},
			200,
		},
		{
			"another password", "/metrics",
			[]func(*http.Request){func(r *http.Request) { r.SetBasicAuth("x", token+"x") }},
			401,
		},
		{
			"another scheme", "/metrics",
			[]func(*http.Request){with("Authorization", "Digest "+token)},
			401,
		},
		{"the token in the URL", "/metrics?token=" + token, nil, 401},
		{"the token in the URL, as OAuth has it", "/metrics?access_token=" + token, nil, 401},
		{"the token as a cookie", "/metrics", []func(*http.Request){with("Cookie", "token="+token)}, 401},
		{"a loopback host is no credential", "/metrics", []func(*http.Request){asked("localhost")}, 401},
		{"nor is what a proxy would say", "/metrics", []func(*http.Request){with("X-Forwarded-For", "127.0.0.1")}, 401},
	} {
		code, body, h := s.get(c.path, c.more...)
		if code != c.code {
			t.Errorf("%s: %d, want %d\n%s", c.name, code, c.code, body)
		}
		if code == http.StatusUnauthorized &&
			(strings.Contains(body, "leasehold_") || h.Get("WWW-Authenticate") == "") {
			t.Errorf("%s: %v\n%s", c.name, h, body)
		}
	}
	if logged := s.logged.String(); strings.Count(logged, "without the right credentials") != 1 ||
		strings.Contains(logged, token) {
		t.Errorf("many refusals at once are one line, and none tells the token:\n%s", logged)
	}
}

func TestClientCertificates(t *testing.T) {
	t.Parallel()
	p, foreign := newPKI(t), newPKI(t)
	cfg := p.everywhere()
	cfg.Access.ClientCAFile = p.ca(pki.Operators)
	s := open(t, cfg, web.Deps{})
	if code, _, _ := p.shows(s, p.pair(p.operator("prometheus"))).get("/metrics"); code != http.StatusOK {
		t.Errorf("an operator's certificate: %d", code)
	}
	if code, _, _ := p.shows(s, nil).get("/metrics"); code != http.StatusUnauthorized {
		t.Errorf("no certificate: %d", code)
	}
	if code, _, _ := p.shows(s, nil).get("/livez"); code != http.StatusOK {
		t.Errorf("no certificate, alive?: %d", code)
	}
	err := p.shows(s, foreign.pair(foreign.operator("prometheus"))).try("/livez")
	refusedInHandshake(t, "a certificate of a foreign authority", err)
	err = p.shows(s, p.agent()).try("/livez")
	refusedInHandshake(t, "an agent's certificate", err)
}

// Whoever names the agents' authority by mistake lets no agent in.
func TestAgentsAreNotAdmittedByMistake(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	cfg := p.everywhere()
	cfg.Access.ClientCAFile = p.ca(pki.Agents)
	s := open(t, cfg, web.Deps{})
	if code, _, _ := p.shows(s, p.agent()).get("/metrics"); code != http.StatusUnauthorized {
		t.Errorf("an agent's certificate: %d", code)
	}
}

func (s *site) try(path string) error {
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.server.URL()+path, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := s.client.Do(r)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

func refusedInHandshake(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "tls") {
		t.Errorf("%s: %v", what, err)
	}
}

// On an address that others reach, nothing is served that is not secured: the coordinator does not
// start, and says what to do.
func TestNothingIsServedUnsecured(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	file := secret(t, token)
	readable := filepath.Join(t.TempDir(), "readable")
	short := secret(t, "short")
	if err := os.WriteFile(readable, []byte(token), 0o644); err != nil {
		t.Fatal(err)
	}
	openKey := filepath.Join(t.TempDir(), "key")
	key, err := os.ReadFile(p.server.Key)
	if err == nil {
		err = os.WriteFile(openKey, key, 0o640)
	}
	if err != nil {
		t.Fatal(err)
	}
	other := p.operator("other", "127.0.0.1")
	for _, c := range []struct {
		name, next string
		cfg        web.Config
	}{
		{"no TLS", "--http-cert", web.Config{Listen: "0.0.0.0:0"}},
		{"no TLS on IPv6", "--http-cert", web.Config{Listen: "[::]:0"}},
		{"no TLS, without a host", "--http-cert", web.Config{Listen: ":0"}},
		{"a token without TLS", "--http-cert", web.Config{Listen: "0.0.0.0:0", Access: access.Config{TokenFile: file}}},
		{"TLS, and nobody is asked who he is", "--http-token-file", p.everywhere()},
		{"a certificate without its key", "both", web.Config{Listen: loopback, Access: access.Config{CertFile: p.server.File}}},
		{"another's key", "belongs", web.Config{Listen: loopback, Access: access.Config{CertFile: p.server.File, KeyFile: other.Key}}},
		{
			"a key that others may read", "chmod 600",
			web.Config{Listen: loopback, Access: access.Config{CertFile: p.server.File, KeyFile: openKey}},
		},
		{"a token that others may read", "chmod 600", web.Config{Listen: loopback, Access: access.Config{TokenFile: readable}}},
		{"a token that can be guessed", "urandom", web.Config{Listen: loopback, Access: access.Config{TokenFile: short}}},
		{"no such token", "can be read", web.Config{Listen: loopback, Access: access.Config{TokenFile: "/nowhere"}}},
		{
			"client certificates without TLS", "--http-cert",
			web.Config{Listen: loopback, Access: access.Config{ClientCAFile: p.ca(pki.Operators)}},
		},
		{
			"an authority that is none", "as PEM",
			web.Config{Listen: loopback, Access: access.Config{CertFile: p.server.File, KeyFile: p.server.Key, ClientCAFile: file}},
		},
		{"an address that is none", "HOST:PORT", web.Config{Listen: "here"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Shard = "test"
			s, err := web.New(c.cfg, idle(t))
			if err == nil {
				err = s.Listen(t.Context())
			}
			var unsafe *access.UnsafeError
			if !errors.As(err, &unsafe) {
				t.Fatalf("it is served: %v", err)
			}
			if !strings.Contains(unsafe.Next, c.next) {
				t.Errorf("%s\nnext: %s\nwant %q in it", unsafe.What, unsafe.Next, c.next)
			}
			if strings.Contains(unsafe.What+unsafe.Next, token) {
				t.Errorf("it tells the token: %s, %s", unsafe.What, unsafe.Next)
			}
		})
	}
}

// A request that comes a byte at a time is cut off, and so is one that never comes.
func TestSlowCallersAreCutOff(t *testing.T) {
	t.Parallel()
	s := open(t, web.Config{Listen: loopback}, web.Deps{})
	for _, begin := range []string{"", "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: "} {
		c := s.dial()
		defer c.Close()
		if _, err := io.WriteString(c, begin); err != nil {
			t.Fatal(err)
		}
		eventually(t, fmt.Sprintf("the end of a connection that said %q", begin), func() bool {
			if begin != "" {
				_, err := io.WriteString(c, "x")
				return err != nil
			}
			status, _ := answer(c) // waits for the end
			return status == ""
		})
	}
}
