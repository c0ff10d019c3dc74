package webhook

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

func TestConfigIsRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := file("key", testKey)
	for _, test := range []struct {
		form, says string
		config     Config
	}{
		{"cloudevent", "must be alertmanager, cloudevents, slack", Config{URL: testURL}},
		{"slack", "either url or url_file", Config{}},
		{"slack", "either url or url_file", Config{URL: testURL, URLFile: key}},
		{"slack", "must be a URL that begins with https", Config{URL: "hooks.example"}},
		{"slack", "must be a URL that begins with https", Config{URLFile: file("bad", "ftp://x\n")}},
		{"slack", "no such file", Config{URLFile: filepath.Join(dir, "none")}},
		{"cloudevents", "key_file: must name a file", Config{URL: testURL}},
		{"cloudevents", "a key must be whsec_", Config{URL: testURL, KeyFile: file("short", "whsec_c2hvcnQ=")}},
		{"cloudevents", "holds no key", Config{URL: testURL, KeyFile: file("empty", "\n")}},
		{"cloudevents", "must be info, warning or critical", Config{URL: testURL, KeyFile: key, Severity: "urgent"}},
		{"cloudevents", "must be the ID of a rule", Config{URL: testURL, KeyFile: key, Rules: []string{"storm"}}},
		{"cloudevents", "holds no certificate", Config{URL: testURL, KeyFile: key, CACert: key}},
	} {
		if _, err := New("ops", test.form, test.config); err == nil || !strings.Contains(err.Error(), test.says) ||
			strings.Contains(err.Error(), "verysecret") {
			t.Errorf("%s %+v: %v, want %q", test.form, test.config, err, test.says)
		}
	}
}

// A URL may hold a secret: no error that is logged or recorded names it.
//
// proves WEB-3
func TestErrorsDoNotHoldTheURL(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	taken.Close() // nothing listens there
	moved := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusFound))
	defer moved.Close()
	for _, url := range []string{"http://" + address + "/verysecret", moved.URL + "/verysecret"} {
		h, err := New("chat", "slack", Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		err = h.Send(t.Context(), &Event{})
		if f := (*failure)(nil); !errors.As(err, &f) || f.final || strings.Contains(f.why, "verysecret") {
			t.Errorf("%s: %#v", url, err)
		}
	}
}

// An event goes to the receiver that the operator has configured and to no other address: neither
// where that redirects, nor to a metadata service of a cloud.
//
// proves SEC-7
func TestEventsGoNowhereElse(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	moved := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	for url, want := range map[string]string{
		moved.URL: "it answered 307", "http://169.254.169.254/latest/": "link-local",
		"http://[::ffff:169.254.169.254]/": "link-local",
	} {
		h, err := New("chat", "slack", Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Send(t.Context(), &Event{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
	}
	if n := elsewhere.Load(); n > 0 {
		t.Errorf("%d events went elsewhere", n)
	}
}

// A receiver that answers with megabytes costs no record of the deliveries, and speaks to no
// terminal.
//
// proves WEB-3
func TestWhatAReceiverSaysIsBounded(t *testing.T) {
	for _, answer := range []string{"HTTP/1.1 500 ", "nonsense "} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = conn.Write([]byte(answer + "\x1b[31m" + strings.Repeat("x", 2<<20) + "\r\n\r\n"))
		}))
		h, err := New("chat", "slack", Config{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		err = h.Send(t.Context(), &Event{})
		server.Close()
		if err == nil || len(err.Error()) > maxWhy+len("…") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: an error of %d bytes: %.60q", answer, len(err.Error()), err)
		}
	}
}

// Keys are changed without a gap: while the file has two, events have a signature by each.
func TestKeysAreChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	const next = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
	if err := os.WriteFile(path, []byte(testKey+"\n"+next+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var signatures []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		signatures = append(signatures, r.Header.Get("Webhook-Signature"))
	}))
	defer server.Close()
	h, err := New("ops", "cloudevents", Config{URL: server.URL, KeyFile: path})
	if err != nil {
		t.Fatal(err)
	}
	send := func() {
		t.Helper()
		if err := h.Send(t.Context(), &Event{}); err != nil {
			t.Fatal(err)
		}
	}
	send()
	if err := os.WriteFile(path, []byte(testKey), 0o600); err != nil {
		t.Fatal(err)
	}
	send()
	if len(strings.Fields(signatures[0])) != 2 || len(strings.Fields(signatures[1])) != 1 {
		t.Errorf("signatures: %q", signatures)
	}
}

func TestReceiverAsksToWait(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	h, err := New("chat", "slack", Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if f := (*failure)(nil); !errors.As(h.Send(t.Context(), &Event{}), &f) || f.after != longestAfter {
		t.Errorf("it is tried again after %v", f)
	}
}

// What receivers get, word by word.
//
// proves WEB-3
func TestForms(t *testing.T) {
	slot := 3
	e := Event{
		Schema: 1, ID: "5e4d-81-a1", At: time.Date(2026, 11, 25, 14, 6, 6, 0, time.UTC), Shard: "shop", Severity: "warning",
		Rule: "DET-4", Headline: "web-3-a <deleting>, replaced by web-3-b", Group: "web", Instance: "web-3-a", Slot: &slot,
		From: store.Running, To: store.Deleting, Replacement: "web-3-b", Counterfactual: store.UnlessListedRunning,
		Revision: 81, Missed: 2,
	}
	for name, want := range map[string]string{
		"cloudevents": `{"specversion":"1.0","id":"5e4d-81-a1","source":"/leasehold/shop","type":"leasehold.decision",` +
			`"subject":"instances/web-3-a","time":"2026-11-25T14:06:06Z","datacontenttype":"application/json","data":{"schema":1,` +
			`"id":"5e4d-81-a1","at":"2026-11-25T14:06:06Z","shard":"shop","severity":"warning","rule":"DET-4",` +
			`"headline":"web-3-a \u003cdeleting\u003e, replaced by web-3-b","group":"web","instance":"web-3-a","slot":3,` +
			`"from":"running","to":"deleting","replacement":"web-3-b","counterfactual":"listed_running","revision":81,"missed":2}}`,
		"slack": `{"text":"*warning* shop: web-3-a \u0026lt;deleting\u0026gt;, replaced by web-3-b (DET-4)\n2 earlier events ` +
			`were not delivered"}`,
		"alertmanager": `[{"annotations":{"id":"5e4d-81-a1","missed":"2 earlier events were not delivered",` +
			`"summary":"web-3-a \u003cdeleting\u003e, replaced by web-3-b"},"endsAt":"2026-11-25T14:21:06Z","labels":` +
			`{"alertname":"LeaseholdDecision","group":"web","instance":"web-3-a","rule":"DET-4","severity":"warning","shard":"shop"},` +
			`"startsAt":"2026-11-25T14:06:06Z"}]`,
	} {
		if got := string(forms[name].encode(&e, e.At)); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// Alertmanager takes an alert that has ended for resolved, and notifies no one of it: an event that
// was retried for longer than an alert lasts would be lost although it was delivered.
//
// proves WEB-3
func TestAnAlertThatIsLateHasNotEnded(t *testing.T) {
	at := time.Date(2026, 11, 25, 14, 6, 6, 0, time.UTC)
	for name, now := range map[string]time.Time{
		"at once": at.Add(time.Second), "after a long retry": at.Add(50 * time.Minute),
		"from a clock that is ahead": at.Add(-time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			var all []struct{ StartsAt, EndsAt time.Time }
			if err := json.Unmarshal(forms["alertmanager"].encode(&Event{At: at}, now), &all); err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			if a := all[0]; a.EndsAt.Sub(now) < alertLasts || a.EndsAt.Sub(a.StartsAt) < alertLasts {
				t.Errorf("an alert from %s to %s, sent at %s", a.StartsAt, a.EndsAt, now)
			}
		})
	}
}
