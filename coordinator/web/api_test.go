package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/coordinator/access"
	"github.com/leasehold/leasehold/coordinator/api"
	"github.com/leasehold/leasehold/coordinator/web"
	"github.com/leasehold/leasehold/store"
)

// reader is etcd with one user, who may read.
type reader struct{ api.Editor }

func (reader) MayRead(context.Context) bool { return true }

func (reader) GroupAction(context.Context, string, string, api.Edit) (api.Result, error) {
	return api.Result{Order: "x"}, nil
}

func loginOf(_ context.Context, user, password string) (api.Editor, func(), error) {
	if user != "eva" || password != "open-sesame" {
		return nil, nil, fmt.Errorf("connect: %w", store.ErrLogin)
	}
	return reader{}, func() {}, nil
}

// send sends a request with a method.
func (s *site) send(method, path string, more ...func(*http.Request)) (code int, body string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL()+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range more {
		m(r)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// proves WEB-4: without --http-api there is no API; with it who may read the page reads, and only
// users of etcd edit, and none does in the name of another origin's page
func TestAPIBehindTheGuard(t *testing.T) {
	t.Parallel()
	const order = "/api/v1/groups/web/actions/retry"
	off := open(t, web.Config{Listen: "127.0.0.1:0"}, web.Deps{})
	if code, _, _ := off.get("/api/v1/shard"); code != http.StatusNotFound {
		t.Errorf("there is an API: %d", code)
	}
	if code, _ := off.send(http.MethodPost, order); code != http.StatusMethodNotAllowed {
		t.Errorf("an order is taken: %d", code)
	}

	file := secret(t, token+"\n")
	s := open(t, web.Config{Listen: "127.0.0.1:0", Access: access.Config{TokenFile: file}}, web.Deps{Login: loginOf})
	as := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	bearer := with("Authorization", "Bearer "+token)
	for _, c := range []struct {
		what, method, path string
		code               int
		more               []func(*http.Request)
	}{
		{"a read by no one", "GET", "/api/v1/openapi.json", 401, nil},
		{"a read with the token", "GET", "/api/v1/openapi.json", 200, []func(*http.Request){bearer}},
		{"a read by a user of etcd", "GET", "/api/v1/openapi.json", 200, []func(*http.Request){as("eva", "open-sesame")}},
		{"a wrong password", "GET", "/api/v1/openapi.json", 401, []func(*http.Request){as("eva", "wrong")}},
		{"the page by a user of etcd", "GET", "/", 401, []func(*http.Request){as("eva", "open-sesame")}},
		{"an order by no one", "POST", order, 401, nil},
		{"an order with the token", "POST", order, 401, []func(*http.Request){bearer}},
		{"an order with the token as a password", "POST", order, 401, []func(*http.Request){as("any", token)}},
		{"an order by a user of etcd", "POST", order, 202, []func(*http.Request){as("eva", "open-sesame")}},
		{"an order from another page", "POST", order, 403, []func(*http.Request){
			as("eva", "open-sesame"), with("Origin", "https://evil.example"),
		}},
		{"an order from a page without a name", "POST", order, 403, []func(*http.Request){
			as("eva", "open-sesame"), with("Origin", "null"),
		}},
		{"an order by a form elsewhere", "POST", order, 403, []func(*http.Request){
			as("eva", "open-sesame"), with("Sec-Fetch-Site", "cross-site"), with("Sec-Fetch-Mode", "no-cors"),
		}},
		{"an order to another name", "POST", order, 421, []func(*http.Request){
			as("eva", "open-sesame"), asked("evil.example"),
		}},
		{"a method of nothing", "TRACE", "/api/v1/shard", 401, nil},
		{"another path", "POST", "/metrics", 405, []func(*http.Request){as("eva", "open-sesame")}},
	} {
		if code, body := s.send(c.method, c.path, c.more...); code != c.code {
			t.Errorf("%s: %d, wanted %d: %s", c.what, code, c.code, body)
		}
	}
	if log := s.logged.String(); strings.Contains(log, "open-sesame") || strings.Contains(log, token) {
		t.Errorf("a credential is in the log: %s", log)
	}
}
