package source

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/provider/program"
	"github.com/leasehold/leasehold/store"
)

// asked asks one source for a number.
func asked(t *testing.T, s Source, group string) (float64, error) {
	t.Helper()
	return NewSet(map[string]Source{"queue": s}).Ask(t.Context(), query.Key{Source: "queue", Group: group})
}

// What a document says is a number, or a typed error that holds no URL and no token.
//
// proves SEC-7, AUTO-1
func TestDocuments(t *testing.T) {
	elsewhere := 0
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	mux.HandleFunc("/stats/", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hush" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"queues": [{"name": %q, "waiting": 340}, {"name": "other", "waiting": "17.5"}], "none": null}`,
			strings.TrimPrefix(r.URL.Path, "/stats/"))
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	})
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { elsewhere++ })
	mux.HandleFunc("/number", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "12") })
	mux.HandleFunc("/text", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hush") })
	mux.HandleFunc("/flood", func(w http.ResponseWriter, _ *http.Request) {
		for range 3 << 10 {
			fmt.Fprint(w, strings.Repeat(" ", 1<<10))
		}
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		url, path, token string
		want             float64
		kind             query.Kind
	}{
		"by name":         {"/stats/${group}", "$.queues[?@.name == 'web'].waiting", token, 340, ""},
		"a text":          {"/stats/x", "$.queues[1].waiting", token, 17.5, ""},
		"the document":    {"/number", "", "", 12, ""},
		"not there":       {"/stats/x", "$.lost", token, 0, query.NoValue},
		"several":         {"/stats/x", "$..waiting", token, 0, query.NoValue},
		"null":            {"/stats/x", "$.none", token, 0, query.NoValue},
		"an object":       {"/stats/x", "$.queues[0]", token, 0, query.NoValue},
		"no token":        {"/stats/x", "$", "", 0, query.Refused},
		"no JSON":         {"/text", "$", token, 0, query.Unreadable},
		"too long":        {"/flood", "$", "", 0, query.Unreadable},
		"a redirect":      {"/moved", "$", "", 0, query.Failed},
		"an error":        {"/broken", "$", "", 0, query.Failed},
		"a link-local IP": {"http://169.254.169.254/latest/hush", "$", "", 0, query.Unreachable},
		"no server":       {"http://127.0.0.1:1/hush", "$", "", 0, query.Unreachable},
	} {
		if strings.HasPrefix(test.url, "/") {
			test.url = server.URL + test.url
		}
		s, err := NewHTTP(HTTPConfig{Remote: Remote{URL: test.url, TokenFile: test.token}, Path: test.path})
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := asked(t, s, "web")
		if got != test.want || query.KindOf(err) != test.kind {
			t.Errorf("%s: %v, %v; want %v, %q", name, got, err, test.want, test.kind)
		}
		if err != nil && (strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), server.URL)) {
			t.Errorf("%s: %s", name, err)
		}
		if perGroup := s.Settings().PerGroup; perGroup != strings.Contains(test.url, "${group}") {
			t.Errorf("%s: asked for each group: %v", name, perGroup)
		}
	}
	if elsewhere > 0 {
		t.Error("a redirect was followed")
	}
}

// A query of Prometheus returns one number, or says why not.
//
// proves SEC-7, AUTO-1
func TestPrometheus(t *testing.T) {
	answer, asks := "", ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asks = r.URL.Path + " " + r.URL.Query().Get("query")
		fmt.Fprint(w, answer)
	}))
	defer server.Close()
	s, err := NewPrometheus(PrometheusConfig{
		Remote: Remote{URL: server.URL + "/prom/"}, Query: `sum(rate(requests_total{job="${group}"}[1m]))`,
	})
	if err != nil {
		t.Fatal(err)
	}
	result := func(kind, result string) string {
		return fmt.Sprintf(`{"status": "success", "data": {"resultType": %q, "result": %s}}`, kind, result)
	}
	for name, test := range map[string]struct {
		answer string
		want   float64
		kind   query.Kind
	}{
		"a vector":     {result("vector", `[{"metric": {}, "value": [1700000000.1, "12.5"]}]`), 12.5, ""},
		"a scalar":     {result("scalar", `[1700000000, "3"]`), 3, ""},
		"no series":    {result("vector", `[]`), 0, query.NoValue},
		"two series":   {result("vector", `[{"value": [1, "1"]}, {"value": [1, "2"]}]`), 0, query.NoValue},
		"a matrix":     {result("matrix", `[]`), 0, query.NoValue},
		"not a number": {result("scalar", `[1700000000, "NaN"]`), 0, query.NoValue},
		"infinite":     {result("scalar", `[1700000000, "+Inf"]`), 0, query.NoValue},
		"a part of it": {
			`{"warnings": ["a store is down"], "data": {"resultType": "scalar", "result": [1, "3"]}}`, 0, query.NoValue,
		},
		"a part of it, without a warning": {
			`{"isPartial": true, "data": {"resultType": "scalar", "result": [1, "3"]}}`, 0, query.NoValue,
		},
		"all of it":     {`{"isPartial": false, "data": {"resultType": "scalar", "result": [1, "3"]}}`, 3, ""},
		"another shape": {`{"data": {"resultType": "vector", "result": {"x": 1}}}`, 0, query.Unreadable},
	} {
		answer = test.answer
		if got, err := asked(t, s, "web"); got != test.want || query.KindOf(err) != test.kind {
			t.Errorf("%s: %v, %v; want %v, %q", name, got, err, test.want, test.kind)
		}
	}
	if asks != `/prom/api/v1/query sum(rate(requests_total{job="web"}[1m]))` {
		t.Errorf("it was asked %s", asks)
	}
}

// A program's number counts if the program ended well and in time; it gets the group's name.
//
// proves SEC-7, AUTO-1
func TestPrograms(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		want   float64
		kind   query.Kind
	}{
		"a number":   {`grep -q '"group":"web"' && echo '{"result": {"value": 7}}'`, 7, ""},
		"no number":  {`echo '{"result": {}}'`, 0, query.NoValue},
		"a failure":  {`exit 3`, 0, query.Failed},
		"refused":    {`echo '{"error": {"code": "credentials", "message": "the token has ended"}}'`, 0, query.Refused},
		"it lingers": {`sleep 60`, 0, query.Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := ProgramConfig{
				Config: program.Config{Command: []string{"/bin/sh", "-c", test.script}, Logger: slog.New(slog.DiscardHandler)},
				Pace:   Pace{Timeout: store.Duration(time.Second)},
			}
			if test.kind != query.Unreachable {
				c.Timeout = store.Duration(query.LongestTimeout)
			}
			if os.Geteuid() == 0 {
				c.User = "root"
			}
			s, err := NewProgram(c)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := asked(t, s, "web"); got != test.want || query.KindOf(err) != test.kind {
				t.Errorf("%v, %v; want %v, %q", got, err, test.want, test.kind)
			}
		})
	}
}

// hung is a source that answers when it is freed.
type hung struct{ free chan struct{} }

func (h hung) Settings() query.Settings { return query.Settings{Timeout: query.DefaultTimeout} }
func (h hung) ask(ctx context.Context, _ string) (float64, error) {
	select {
	case <-h.free:
		return math.Inf(1), nil
	case <-ctx.Done():
		return 0, unreachable(ctx, ctx.Err())
	}
}

// A source that hangs is asked by a few at once, and each question ends in its time.
//
// proves SEC-7
func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hung{make(chan struct{})}
		s := NewSet(map[string]Source{"queue": h})
		began, answers := time.Now(), make(chan error)
		for range 2 * atOnce {
			go func() {
				_, err := s.Ask(t.Context(), query.Key{Source: "queue"})
				answers <- err
			}()
		}
		for range 2 * atOnce {
			if err := <-answers; query.KindOf(err) != query.Unreachable {
				t.Error(err)
			}
		}
		if took := time.Since(began); took != query.DefaultTimeout {
			t.Errorf("it took %s", took)
		}
		close(h.free)
		if _, err := s.Ask(t.Context(), query.Key{Source: "queue"}); query.KindOf(err) != query.NoValue {
			t.Errorf("infinity is a number: %v", err)
		}
		if _, err := s.Ask(t.Context(), query.Key{Source: "que"}); query.KindOf(err) != query.Unknown {
			t.Error(err)
		}
		if _, err := (*Set)(nil).Ask(t.Context(), query.Key{Source: "que"}); query.KindOf(err) != query.Unknown {
			t.Error(err)
		}
	})
}

// What an operator sets is checked before anything is asked.
//
// proves SEC-7
func TestSettingsAreRefused(t *testing.T) {
	for want, open := range map[string]func() (Source, error){
		"url: is missing": func() (Source, error) { return NewHTTP(HTTPConfig{}) },
		"url: must be a URL that begins": func() (Source, error) {
			return NewHTTP(HTTPConfig{Remote: Remote{URL: "file:///etc/passwd"}})
		},
		"url: must hold no password": func() (Source, error) {
			return NewHTTP(HTTPConfig{Remote: Remote{URL: "https://me:hush@queue.internal/"}})
		},
		"path: \"queue\"": func() (Source, error) {
			return NewHTTP(HTTPConfig{Remote: Remote{URL: "https://queue.internal"}, Path: "queue"})
		},
		"every: 1s: must be 5s to 1m0s": func() (Source, error) {
			return NewHTTP(HTTPConfig{Remote: Remote{URL: "https://q"}, Pace: Pace{Every: store.Duration(time.Second)}})
		},
		"timeout: 1h0m0s": func() (Source, error) {
			return NewHTTP(HTTPConfig{Remote: Remote{URL: "https://q"}, Pace: Pace{Timeout: store.Duration(time.Hour)}})
		},
		"token_file": func() (Source, error) {
			return NewPrometheus(PrometheusConfig{Remote: Remote{URL: "https://prom", TokenFile: "/no/such"}, Query: "up"})
		},
		"url: must end before /api/v1/query": func() (Source, error) {
			return NewPrometheus(PrometheusConfig{Remote: Remote{URL: "https://prom/?query=up"}, Query: "up"})
		},
		"query: is missing": func() (Source, error) {
			return NewPrometheus(PrometheusConfig{Remote: Remote{URL: "https://prom"}})
		},
		"command: is missing": func() (Source, error) { return NewProgram(ProgramConfig{}) },
	} {
		if _, err := open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
