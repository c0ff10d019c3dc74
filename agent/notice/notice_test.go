package notice

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/agent/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a metadata service whose answers can be exchanged.
type service struct {
	*httptest.Server
	answer atomic.Pointer[http.HandlerFunc]
}

func newService(t *testing.T, answer http.HandlerFunc) *service {
	t.Helper()
	s := &service{}
	s.says(answer)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*s.answer.Load())(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) says(answer http.HandlerFunc) { s.answer.Store(&answer) }

// log collects log entries.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// watched is a watcher at work that asks as fast as it may.
type watched struct {
	*Watcher
	t   *testing.T
	log *log
}

func watch(t *testing.T, spec Spec) *watched {
	t.Helper()
	l := &log{}
	w, err := New(Config{Every: time.Millisecond, Patience: 200 * time.Millisecond},
		Deps{Logger: slog.New(slog.NewTextHandler(l, nil))})
	if err != nil {
		t.Fatal(err)
	}
	w.Watch(spec)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return &watched{Watcher: w, t: t, log: l}
}

const longest = 2 * time.Minute

// awaits waits for a change after which the notice has a property.
func (w *watched) awaits(what string, property func(*Notice) bool) *Notice {
	w.t.Helper()
	late := time.After(longest)
	for {
		if n := w.Latest(); property(n) {
			return n
		}
		select {
		case <-w.Changed():
		case <-late:
			w.t.Fatalf("waited without success for %s: %+v", what, w.Latest())
		}
	}
}

func (w *watched) appears() *Notice {
	w.t.Helper()
	return w.awaits("a notice", func(n *Notice) bool { return n != nil })
}

func (w *watched) goes() {
	w.t.Helper()
	w.awaits("the notice to go", func(n *Notice) bool { return n == nil })
}

// until polls for a condition that no change signals.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(longest)
	for !condition() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited without success for %s", what)
		}
	}
}

// ends checks how long is left. What the test itself takes is taken off.
func ends(t *testing.T, n *Notice, began time.Time, want time.Duration) {
	t.Helper()
	if n.Ends.IsZero() {
		t.Fatalf("when the machine ends is not known: %+v", n)
	}
	if left := n.Ends.Sub(n.Seen); left > want || left < want-time.Since(began)-2*time.Second {
		t.Errorf("the machine ends %s after the notice, want %s", left, want)
	}
}

// proves SPOT-1
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notice")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	w := watch(t, Spec{Source: File, File: path})
	for _, c := range []struct {
		text, kind, why string
		left            time.Duration
	}{
		{"", "notice", "", 0},
		{`{"kind": "repair", "why": "fan 3 is dead", "in": "10m"}`, "repair", "fan 3 is dead", 10 * time.Minute},
		{"kind: move\nthe rack\nis emptied\nin: 1h\n", "move", "the rack is emptied", time.Hour},
		{
			"why: now: really\nat: " + time.Now().Add(5*time.Minute).Format(time.RFC3339Nano), "notice", "now: really",
			5 * time.Minute,
		},
	} {
		began := time.Now()
		write(c.text)
		n := w.awaits(fmt.Sprintf("%q", c.text),
			func(n *Notice) bool { return n != nil && n.Kind == c.kind && n.Why == c.why })
		switch {
		case c.left == 0 && !n.Ends.IsZero():
			t.Errorf("%q: ends at %s", c.text, n.Ends)
		case c.left > 0:
			ends(t, n, began, c.left)
		}
	}
	// The time counts from when the file was written; written again, it starts over.
	var before *Notice
	for _, age := range []time.Duration{4 * time.Minute, 2 * time.Minute} {
		began := time.Now()
		if err := os.WriteFile(path+".new", []byte("kind: aged\nin: 10m"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path+".new", began.Add(-age), began.Add(-age)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		n := w.awaits("the file written again", func(n *Notice) bool { return n != nil && n.Kind == "aged" && n != before })
		ends(t, n, began, 10*time.Minute-age)
		before = n
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.goes()
	if w.log.count("cannot be looked for") != 0 {
		t.Errorf("a file that is not there is no failure: %s", w.log.text.String())
	}
}

// proves SPOT-1
func TestSourceThatIsBroken(t *testing.T) {
	good := &ec2{uses: 1 << 30, action: `{"action": "stop", "time": "2099-01-01T00:00:00Z"}`}
	other := httptest.NewServer(http.HandlerFunc(good.ServeHTTP))
	t.Cleanup(other.Close)
	for name, broken := range map[string]http.HandlerFunc{
		"hanging":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"garbage":   answers("<html>not here</html>"),
		"nothing":   answers(""),
		"no time":   answers(`{"action": "stop"}`),
		"oversized": answers(strings.Repeat(`{"action": "terminate", "time": "2099-01-01T00:00:00Z"}`+"\n", 10_000)),
		"error": func(w http.ResponseWriter,
			_ *http.Request,
		) {
			http.Error(w, "oh", http.StatusInternalServerError)
		},
		"forbidding": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oh", http.StatusForbidden) },
		"no token":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oh", http.StatusUnauthorized) },
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			counting := func(w http.ResponseWriter, r *http.Request) { asked.Add(1); broken(w, r) }
			s := newService(t, counting)
			w := watch(t, Spec{Source: AWS, Endpoint: s.URL})
			until(t, "it to be asked again and again",
				func() bool { return asked.Load() > 3 && w.log.count("cannot be looked for") > 0 })
			if n := w.Latest(); n != nil {
				t.Fatalf("notice out of nothing: %+v", n)
			}
			s.says(good.ServeHTTP)
			n := w.appears()
			s.says(counting)
			more := asked.Load() + 3
			until(t, "it to fail again", func() bool {
				return asked.Load() > more && w.log.count("cannot be looked for") > 1
			})
			if w.Latest() != n {
				t.Errorf("a source that fails says nothing, and the notice is %+v, was %+v", w.Latest(), n)
			}
			if c := w.log.count("cannot be looked for"); c != 2 {
				t.Errorf("it failed twice and was logged %d times: %s", c, w.log.text.String())
			}
		})
	}
}

func answers(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

// proves SPOT-1
func TestOtherServicesThatAreBroken(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		spec   Spec
		answer http.HandlerFunc
	}{
		"gcp: another machine": {Spec{Source: GCP}, answers("TRUE")},
		"gcp: garbage": {Spec{Source: GCP}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Metadata-Flavor", "Google")
			fmt.Fprint(w, "MAYBE")
		}},
		"azure: garbage":   {Spec{Source: Azure}, answers("web_1")},
		"azure: no events": {Spec{Source: Azure}, azureAnswers(`{"error": "try later"}`)},
		"azure: bad time": {
			Spec{Source: Azure},
			azureAnswers(`{"Events": [{"EventId": "A", "EventType": "Preempt", "Resources": ["web_1"], "NotBefore": "soon"}]}`),
		},
		"file: garbage":     {Spec{Source: File, File: file("garbage", "{kind")}, nil},
		"file: bad time":    {Spec{Source: File, File: file("time", "in: a while")}, nil},
		"file: oversized":   {Spec{Source: File, File: file("big", strings.Repeat("x", maxAnswer+1))}, nil},
		"file: a directory": {Spec{Source: File, File: dir}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.answer != nil {
				c.spec.Endpoint = newService(t, c.answer).URL
			}
			w := watch(t, c.spec)
			until(t, "the failure to be logged", func() bool { return w.log.count("cannot be looked for") == 1 })
			if n := w.Latest(); n != nil {
				t.Errorf("notice out of nothing: %+v", n)
			}
		})
	}
}

// What is to be watched can change at any time, also while a source does not answer.
//
// proves SPOT-1
func TestAnotherSource(t *testing.T) {
	hangs := make(chan struct{}, 100)
	s := newService(t, func(_ http.ResponseWriter, r *http.Request) {
		hangs <- struct{}{}
		<-r.Context().Done()
	})
	path := filepath.Join(t.TempDir(), "notice")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := watch(t, Spec{Source: Azure, Endpoint: s.URL}) // may take two minutes at first
	<-hangs
	w.Watch(Spec{Source: File, File: path, Kind: "evacuating"})
	if n := w.appears(); n.Kind != "evacuating" {
		t.Errorf("notice is %+v", n)
	}
	w.Watch(Spec{Source: "other"})
	w.goes()
	w.Watch(Spec{Source: File, File: path})
	w.appears()
	w.Watch(Spec{})
	w.goes()
}

// proves SPOT-1, SEC-5: a report that cannot be sent would cost the machine its lease.
func TestWhateverANoticeSaysCanBeReported(t *testing.T) {
	for what, text := range map[string]string{
		"not UTF-8": "kind: St\xf6rung\nwhy: der Wirt wird gewartet: \xe4\xf6\xfc",
		"endless":   "kind: " + strings.Repeat("ü", 10_000) + "\nwhy: " + strings.Repeat("ü", 20_000),
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "notice")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			n := watch(t, Spec{Source: File, File: path}).appears()
			if !utf8.ValidString(n.Kind) || !utf8.ValidString(n.Why) || n.Kind == "" || n.Why == "" {
				t.Errorf("notice is %.200q", *n)
			}
			if len(n.Kind) > protocol.MaxName || len(n.Why) > protocol.MaxText {
				t.Errorf("it has %d and %d bytes", len(n.Kind), len(n.Why))
			}
		})
	}
}
