package web_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/web"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
	"github.com/leasehold/leasehold/store/storetest"
)

// exhibit is a shard of records that a test writes, and a replica that only shows them.
type exhibit struct {
	*site
	st    *memstore.Store
	keys  store.Keys
	still *still
	now   time.Time
}

func newExhibit(t testing.TB) *exhibit {
	t.Helper()
	db := memstore.New(memstore.Config{})
	t.Cleanup(db.Close)
	x := &exhibit{st: db.Connect(), keys: store.KeysOf("test"), still: newStill(), now: time.Now().UTC()}
	storetest.CreateShard(t, x.st, "test")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- x.still.cache.Run(ctx, x.st) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("cache: %v", err)
		}
	})
	x.site = open(t, web.Config{Listen: loopback}, web.Deps{Replica: x.still, Store: db.Connect()})
	return x
}

// put writes records, and waits until the cache has them.
func (x *exhibit) put(records map[string]any) {
	x.t.Helper()
	var writes []store.Write
	for key, record := range records {
		writes = append(writes, store.Put(key, store.Encode(record)))
	}
	rev, err := x.st.Commit(x.t.Context(), store.Txn{Writes: writes})
	if err == nil {
		err = x.still.cache.WaitFor(x.t.Context(), rev)
	}
	if err != nil {
		x.t.Fatal(err)
	}
}

// group writes a group with a status, and its instances, of which the first is lost and being
// replaced.
func (x *exhibit) group(name string, size int) {
	x.t.Helper()
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Size = name, "mem", size
	g.Complete()
	x.put(map[string]any{x.keys.Group(name): g})
	x.put(map[string]any{x.keys.Status(name): store.Status{
		Schema: store.Schema, Group: name, Accepted: &g, AcceptedRevision: 1 << 40, State: store.GroupStarted,
		Health: 66, Healthy: size - 1, Since: x.now.Add(-time.Minute), Phases: map[store.Phase]int{store.Running: size},
		Verdicts: map[store.Verdict]int{store.Lost: 1},
		Blocked: []store.Blocked{{
			Rule: "REC-2", What: "replace " + name + "-0-a", Why: "max_expansion is used up", Until: "an instance is gone",
			Instance: name + "-0-a",
		}},
	}})
	for n := range size {
		id := fmt.Sprintf("%s-%d-a", name, n)
		x.put(map[string]any{
			x.keys.Instance(id): store.Instance{
				Schema: store.Schema, ID: id, Group: name, Slot: n, Phase: store.Running, Managed: true,
				Zone: string(rune('a' + n%3)), Since: x.now.Add(-time.Hour), Created: x.now.Add(-2 * time.Hour),
				Spec: store.InstanceSpec{Provider: "mem"}, Template: "t1",
				Last: store.Decision{Rule: "DET-9", What: "healthy", Why: "checks 2/2", At: x.now},
			},
		})
		if n > 0 {
			x.put(map[string]any{
				x.keys.Alive(id): store.Alive{
					Schema: store.Schema, Instance: id, Replica: "coord-a", BootID: "b", State: store.StreamOpen, Since: x.now,
				},
				x.keys.Report(id): store.Report{
					Schema: store.Schema, Instance: id, BootID: "b", Healthy: true, Received: x.now,
					Checks: []store.CheckReport{{Name: "http:8080", Healthy: true, Since: x.now}},
				},
			})
		}
	}
}

func (x *exhibit) tell(at time.Duration, e store.JournalEntry) {
	x.t.Helper()
	e.Schema, e.At, e.By = store.Schema, x.now.Add(at), "coord-a"
	x.put(map[string]any{x.keys.Event(e.At, fmt.Sprintf("%08x", at)): e})
}

// shows waits until a page has a text: the journal is followed beside the cache.
func (x *exhibit) shows(path, text string) (body string) {
	x.t.Helper()
	eventually(x.t, path+" shows "+text, func() bool {
		_, body, _ = x.get(path)
		return strings.Contains(body, text)
	})
	return body
}

// proves WEB-1
func TestPagesShowTheShard(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.group("web", 3)
	x.tell(-time.Minute, store.JournalEntry{
		Rule: "DET-17", What: "lost", Why: "its lease (17s) ran out", Group: "web", Instance: "web-0-a",
		Kind: store.EntryVerdict, Verdict: store.Lost, Evidence: []string{"alive absent since 14:03"},
	})
	x.tell(-30*time.Second, store.JournalEntry{
		Rule: "HEAL-2", What: "replacement web-0-b requested", Group: "web", Instance: "web-0-a", Replacement: "web-0-b",
		Counterfactual: store.UnlessReported, Revision: 7,
	})
	x.tell(-time.Second, store.JournalEntry{
		Rule: "REC-3", What: "deleting", Why: "it was LOST", Group: "web", Instance: "web-9-z", To: store.Deleting,
		Verdict: store.Lost, Replacement: "web-9-y",
	})
	x.shows("/events", "web-9-y")
	for _, c := range []struct {
		path string
		code int
		want []string
	}{
		{"/report", 200, []string{
			"leasehold report --since 7d", `<a href="/report?group=web">web</a>`, "Most lost by",
		}},
		{"/report?group=web&span=1h", 200, []string{
			"leasehold report --since 1h --group web", "available", "served again", `aria-current="true">1h<`,
		}},
		{"/", 200, []string{
			"leasehold status", `<a href="/g/web">web</a>`, "66%", "3/3", "1 lost", "no coordinator is running", "web-9-y",
			"served by <b>coord-a</b>", "max_expansion",
		}},
		{"/g/web", 200, []string{
			"leasehold explain web", `id="band-0"`, "live <b>2</b>", `id="s-0"`,
			`aria-label="web-0-a is lost, running: its lease (17s) ran out"`,
			"Why not yet", "max_expansion is used up", "an instance is gone", `href="/g/web?show=lost"`, "web-2-a",
		}},
		{"/g/web?show=lost", 200, []string{`<li id="s-1" class="off">`, `<li id="s-0">`, "web-0-a"}},
		{"/i/web-0-a", 200, []string{
			"leasehold explain web-0-a", "web-0-a is lost", "its lease (17s) ran out", "alive absent since 14:03", "DET-17",
			`<a href="/i/web-0-b">web-0-b</a> was requested in its place`,
			"It would have been kept if its agent had reported before",
		}},
		{"/i/web-1-a", 200, []string{"web-1-a is live", "http:8080", "passes", "stream open"}},
		{"/i/web-9-z", 200, []string{"web-9-z was DELETED", "because it was LOST", "web-9-y"}},
		{"/events?group=web&rule=det", 200, []string{"leasehold events --group web", "its lease (17s) ran out"}},
		{"/i/web-7-q", 404, []string{"No instance web-7-q"}},
		{"/g/nosuch", 404, []string{"No group nosuch"}},
	} {
		code, body, _ := x.get(c.path)
		if code != c.code {
			t.Errorf("%s: %d, want %d", c.path, code, c.code)
		}
		for _, want := range c.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %q:\n%s", c.path, want, body)
			}
		}
	}
	if _, body, _ := x.get("/events?rule=det"); strings.Contains(body, "web-9-y") {
		t.Error("/events?rule=det shows entries of other rules")
	}
	if _, body, _ := x.get("/g/web?show=lost"); strings.Contains(body, `<th scope="row"><a href="/i/web-1-a">`) {
		t.Error("the table shows what the filter leaves out")
	}
}

// proves WEB-2: nothing that a page shows can run
func TestPagesMakeHostileTextHarmless(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>'`
	x.group("web", 2)
	x.put(map[string]any{
		x.keys.Report("web-1-a"): store.Report{
			Schema: store.Schema, Instance: "web-1-a", BootID: "b", Why: evil,
			Checks: []store.CheckReport{{Name: evil, Why: evil, Since: x.now}},
		},
		x.keys.Instance("evil"): store.Instance{
			Schema: store.Schema, ID: "evil", Group: "web", Slot: 1, Phase: store.Running, Zone: evil, Ref: evil,
			Address: "javascript:alert(3)", Template: evil, Spec: store.InstanceSpec{Provider: evil},
			Last: store.Decision{Rule: evil, What: evil, Why: evil},
		},
		x.keys.Of(store.KindReplicas) + "r": store.Replica{Schema: store.Schema, ID: evil, Address: evil, Version: evil},
	})
	x.tell(0, store.JournalEntry{
		Rule: evil, What: evil, Why: evil, Group: evil, Instance: evil, Replacement: evil, Evidence: []string{evil},
	})
	x.tell(1, store.JournalEntry{Rule: "DET-9", What: evil, Instance: "evil", Group: "web", Evidence: []string{evil}})
	slot := 1
	x.tell(2, store.JournalEntry{
		Rule: "DAY-6", What: evil, Instance: "evil", Group: "web", Slot: &slot,
		Cause: store.Cause{Kind: store.CauseOrder, By: evil},
		Facts: []store.Fact{{Kind: store.FactRequest, Name: evil, Text: evil}, {Kind: store.FactInstance, Name: evil}},
	})
	x.tell(3, store.JournalEntry{
		Kind: store.EntryRefusal, Rule: evil, What: evil, Why: evil, Group: "web", Instance: "evil",
		Facts: []store.Fact{{Kind: store.FactRequest, Name: evil, Text: evil}},
	})
	x.tell(4, store.JournalEntry{Rule: "SAFE-1", What: evil, Why: evil, Cause: store.Cause{
		Kind: store.CauseDisturbed, Text: evil, For: store.Duration(time.Minute),
	}})
	x.server.Views().Sample(x.now)
	x.shows("/events", "DET-9")
	x.shows("/report?group=web", "Drills")
	x.shows("/g/web", `class="stretch grace"`)
	tag, value := regexp.MustCompile(`<[^>]*>`), regexp.MustCompile(`"[^"]*"`)
	bad := regexp.MustCompile(`(?i)^<\s*(script|img)\b|\son[a-z]+\s*=`)
	own := regexp.MustCompile(`^<script src="/page-[0-9a-f]+\.js" defer>$`)
	for _, path := range []string{
		"/", "/g/web", "/i/web-1-a", "/i/evil", "/events", "/report", "/report?group=web", "/events?text=alert",
		"/events?group=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", "/g/%22%3E%3Cscript%3E", "/i/%22%3E%3Cscript%3E",
	} {
		_, body, _ := x.get(path)
		for _, found := range tag.FindAllString(body, -1) {
			if bad.MatchString(value.ReplaceAllString(found, "")) && !own.MatchString(found) {
				t.Errorf("%s has %s", path, found)
			}
		}
		if strings.Contains(body, `"javascript:`) {
			t.Errorf("%s has a link that runs", path)
		}
	}
	if _, body, _ := x.get("/i/evil"); !strings.Contains(body, "&lt;script&gt;") {
		t.Error("the hostile text is not shown at all")
	}
}

// proves WEB-2: no page can be framed, or load anything from elsewhere
func TestPagesHaveAStrictPolicy(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.group("web", 1)
	_, body, _ := x.get("/")
	assets := regexp.MustCompile(`(?:src|href)="(/(?:page|icon)-[0-9a-f]+\.[a-z]+)"`).FindAllStringSubmatch(body, -1)
	if len(assets) != 3 {
		t.Fatalf("%d assets, want style, script and icon", len(assets))
	}
	for _, path := range []string{"/", "/g/web", "/i/web-0-a", "/events", "/report", "/g/nosuch"} {
		_, body, h := x.get(path)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
				"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
			"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cache-Control": "no-store", "Content-Type": "text/html; charset=utf-8",
		} {
			if h.Get(name) != want {
				t.Errorf("%s: %s: %q, want %q", path, name, h.Get(name), want)
			}
		}
		for _, inline := range []string{" style=", "<style", "javascript:", "http://", "https://"} {
			if strings.Contains(body, inline) {
				t.Errorf("%s has %q, which the policy refuses", path, inline)
			}
		}
	}
	for _, a := range assets {
		code, _, h := x.get(a[1])
		if code != http.StatusOK || !strings.Contains(h.Get("Cache-Control"), "immutable") ||
			!strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d %v", a[1], code, h)
		}
	}
	for _, path := range []string{"/page.css", "/assets/page.css", "/g/", "/g/a/b", "/i", "//", "/g/web/", "/index.html"} {
		if code, _, _ := x.get(path); code != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", path, code)
		}
	}
	code, small, h := x.get("/", with("Accept-Encoding", "br, gzip"))
	z, err := gzip.NewReader(bytes.NewReader([]byte(small)))
	if err != nil || code != http.StatusOK || h.Get("Content-Encoding") != "gzip" {
		t.Fatalf("compressed: %d %v: %v", code, h, err)
	}
	if text, err := io.ReadAll(z); err != nil || !strings.Contains(string(text), "</html>") {
		t.Errorf("compressed: %v: %s", err, text)
	}
}

// proves WEB-2: the token as a browser's password, and the header of a proxy at a named address
func TestPagesAskWhoReads(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	cfg := p.everywhere()
	cfg.Access.TokenFile = secret(t, token+"\n")
	s := p.shows(open(t, cfg, web.Deps{}), nil)
	basic := func(name, password string) func(*http.Request) {
		return with("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(name+":"+password)))
	}
	for _, c := range []struct {
		name string
		more func(*http.Request)
		code int
	}{
		{"nothing", func(*http.Request) {}, 401},
		{"the token as a password", basic("me", token), 503}, // this replica has read nothing
		{"the token as a name", basic(token, ""), 401},
		{"another password", basic("me", "guess"), 401},
		{"no pair", with("Authorization", "Basic "+token), 401},
		{"the token of a program", with("Authorization", "Bearer "+token), 503},
		{"a header of a proxy that nothing names", with("X-Forwarded-User", "me"), 401},
	} {
		for _, path := range []string{"/", "/g/web", "/i/web-0-a", "/events", "/report?span=1h"} {
			if code, _, h := s.get(path, c.more); code != c.code || code == 401 && len(h.Values("WWW-Authenticate")) != 2 {
				t.Errorf("%s: %s: %d %v, want %d", c.name, path, code, h.Values("WWW-Authenticate"), c.code)
			}
		}
	}

	cfg = p.everywhere()
	cfg.Access.Proxies, cfg.Access.ProxyHeader = []string{"127.0.0.0/8", "::1"}, "X-Forwarded-User"
	s = p.shows(open(t, cfg, web.Deps{}), nil)
	twice := func(r *http.Request) { r.Header["X-Forwarded-User"] = []string{"me", "you"} }
	for _, c := range []struct {
		name string
		more func(*http.Request)
		code int
	}{
		{"the proxy says who", with("X-Forwarded-User", "me"), 503},
		{"the proxy does not say", func(*http.Request) {}, 401},
		{"an empty name", with("X-Forwarded-User", " "), 401},
		{"twice", twice, 401},
	} {
		if code, _, _ := s.get("/", c.more); code != c.code {
			t.Errorf("%s: %d, want %d", c.name, code, c.code)
		}
	}

	cfg = web.Config{Listen: loopback}
	cfg.Access.Proxies, cfg.Access.ProxyHeader = []string{"192.0.2.1", "::ffff:127.0.0.1"}, "X-Forwarded-User"
	s = open(t, cfg, web.Deps{})
	if code, _, _ := s.get("/"); code != 401 {
		t.Errorf("loopback, with a proxy that does not say who: %d, want 401", code)
	}
	if code, _, _ := s.get("/", with("X-Forwarded-User", "me"), asked("leasehold.example")); code != 503 {
		t.Errorf("a proxy on loopback, which passes the host on: %d", code)
	}
	if code, _, _ := s.get("/", asked("leasehold.example")); code != 421 {
		t.Errorf("a foreign host without a proxy's word: %d, want 421", code)
	}
	cfg.Access.Proxies = []string{"192.0.2.1"}
	s = open(t, cfg, web.Deps{})
	if code, _, _ := s.get("/", with("X-Forwarded-User", "me")); code != 401 {
		t.Errorf("the header from an address that is not named: %d, want 401", code)
	}
	cfg.Access.Proxies = []string{"proxy.example"}
	if err := web.Check(t.Context(), cfg); err == nil || !strings.Contains(err.Error(),
		"must be an address or a network") {
		t.Errorf("a name for a proxy: %v", err)
	}
}
