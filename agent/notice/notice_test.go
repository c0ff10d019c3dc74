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

// log is what was logged.
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

const longest = 30 * time.Second

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

// until waits until a condition holds that no change tells of.
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

// ec2 speaks IMDSv2 with tokens that end after so many uses.
type ec2 struct {
	mu     sync.Mutex
	tokens int
	left   int    // uses of the present token
	uses   int    // of each token
	action string // "": there is no notice
	date   time.Time
}

func (e *ec2) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.date.IsZero() {
		w.Header().Set("Date", e.date.UTC().Format(http.TimeFormat))
	}
	switch {
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
		if r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") != "21600" {
			http.Error(w, "no time to live", http.StatusBadRequest)
			return
		}
		e.tokens++
		e.left = e.uses
		fmt.Fprintf(w, "token-%d", e.tokens)
	case r.Header.Get("X-aws-ec2-metadata-token") != fmt.Sprintf("token-%d", e.tokens) || e.left == 0:
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	case r.Method == http.MethodGet && r.URL.Path == "/latest/meta-data/spot/instance-action" && e.action != "":
		e.left--
		fmt.Fprint(w, e.action)
	default:
		e.left--
		http.NotFound(w, r)
	}
}

func (e *ec2) set(action string, date time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.action, e.date = action, date
}

func (e *ec2) used() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tokens
}

// proves SPOT-1
func TestAWS(t *testing.T) {
	e := &ec2{uses: 3}
	s := newService(t, e.ServeHTTP)
	w := watch(t, Spec{Source: AWS, Endpoint: s.URL + "/"})
	until(t, "several tokens to end", func() bool { return e.used() > 3 })
	if n := w.Latest(); n != nil {
		t.Fatalf("404 is no notice: %+v", n)
	}
	// The machine's clock is wrong by years; the service's is not.
	e.set(`{"action": "terminate", "time": "2017-09-18T08:22:00Z"}`, time.Date(2017, 9, 18, 8, 20, 0, 0, time.UTC))
	began := time.Now()
	n := w.appears()
	if n.Kind != "terminate" || !strings.Contains(n.Why, "2017-09-18T08:22:00Z") {
		t.Errorf("notice is %+v", n)
	}
	ends(t, n, began, 2*time.Minute)
	tokens := e.used()
	until(t, "the notice to be seen many times", func() bool { return e.used() > tokens+3 })
	if again := w.Latest(); again != n {
		t.Errorf("seen again it is another notice: %+v, was %+v", again, n)
	}
	e.set("", time.Time{})
	w.goes()
	if w.log.count("cannot be looked for") != 0 {
		t.Errorf("tokens that end are no failure: %s", w.log.text.String())
	}
}

// proves SPOT-1
func TestGCP(t *testing.T) {
	var mu sync.Mutex
	preempted, event := "FALSE", "NONE"
	set := func(p, e string) {
		mu.Lock()
		defer mu.Unlock()
		preempted, event = p, e
	}
	s := newService(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("Metadata-Flavor") != "Google" {
			http.Error(w, "Missing Metadata-Flavor:Google header.", http.StatusForbidden)
			return
		}
		w.Header().Set("Metadata-Flavor", "Google")
		switch r.URL.Path {
		case "/computeMetadata/v1/instance/preempted":
			fmt.Fprint(w, preempted)
		case "/computeMetadata/v1/instance/maintenance-event":
			fmt.Fprintln(w, event)
		default:
			http.NotFound(w, r)
		}
	})
	w := watch(t, Spec{Source: GCP, Endpoint: s.URL})
	set("FALSE", "TERMINATE_ON_HOST_MAINTENANCE")
	if n := w.appears(); n.Kind != "maintenance" || !n.Ends.IsZero() {
		t.Errorf("notice is %+v", n)
	}
	set("FALSE", "MIGRATE_ON_HOST_MAINTENANCE")
	w.goes()
	began := time.Now()
	set("TRUE", "NONE")
	n := w.appears()
	if n.Kind != "preempted" {
		t.Errorf("notice is %+v", n)
	}
	ends(t, n, began, 30*time.Second)
	set("FALSE", "NONE")
	w.goes()
}

const azureDocument = `{"DocumentIncarnation": 7, "Events": [
	{"EventId": "A", "EventStatus": "Scheduled", "EventType": "Preempt", "ResourceType": "VirtualMachine", "Resources": ["web_0"], "NotBefore": "Mon, 19 Sep 2016 18:00:00 GMT"},
	{"EventId": "B", "EventStatus": "Scheduled", "EventType": "Reboot", "ResourceType": "VirtualMachine", "Resources": ["web_1"], "NotBefore": "Mon, 19 Sep 2016 18:10:00 GMT"}%s]}`

// proves SPOT-1
func TestAzure(t *testing.T) {
	var mu sync.Mutex
	mine := ""
	set := func(to string) {
		mu.Lock()
		defer mu.Unlock()
		mine = to
	}
	var asked atomic.Int32
	s := newService(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Metadata") != "true" || r.URL.Query().Get("api-version") == "" {
			http.Error(w, "Bad request", http.StatusBadRequest)
			return
		}
		w.Header().Set("Date", "Mon, 19 Sep 2016 18:29:00 GMT")
		switch r.URL.Path {
		case "/metadata/instance/compute/name":
			fmt.Fprint(w, "WEB_1")
		case "/metadata/scheduledevents":
			if asked.Add(1) == 1 {
				select { // switching it on takes longer than any other answer may
				case <-time.After(400 * time.Millisecond):
				case <-r.Context().Done():
				}
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(w, azureDocument, mine)
		}
	})
	w := watch(t, Spec{Source: Azure, Endpoint: s.URL})
	until(t, "it to be asked", func() bool { return asked.Load() > 3 })
	if n := w.Latest(); n != nil || w.log.count("cannot be looked for") != 0 {
		t.Fatalf("a neighbour's preemption and a reboot are none of ours: %+v\n%s", n, w.log.text.String())
	}
	began := time.Now()
	const event = `, {"EventId": "C", "EventStatus": %q, "EventType": "Preempt", "Resources": ["web_0", "web_1"], "NotBefore": %q, "Description": "capacity"}`
	set(fmt.Sprintf(event, "Scheduled", "Mon, 19 Sep 2016 18:29:30 GMT"))
	n := w.appears()
	if n.Kind != "preempt" || !strings.HasSuffix(n.Why, ": capacity") {
		t.Errorf("notice is %+v", n)
	}
	ends(t, n, began, 30*time.Second)
	set(fmt.Sprintf(event, "Started", ""))
	more := asked.Load() + 5
	until(t, "it to be asked again", func() bool { return asked.Load() > more })
	if again := w.Latest(); again != n {
		t.Errorf("the event began, and now the notice is another: %+v", again)
	}
	set("") // Azure has called it off
	w.goes()
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
		"file: oversized":   {Spec{Source: File, File: file("big", strings.Repeat("x", mostAnswer+1))}, nil},
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

func azureAnswers(events string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metadata/instance/compute/name" {
			fmt.Fprint(w, "web_1")
			return
		}
		fmt.Fprint(w, events)
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
			if len(n.Kind) > protocol.MostName || len(n.Why) > protocol.MostText {
				t.Errorf("it has %d and %d bytes", len(n.Kind), len(n.Why))
			}
		})
	}
}
