package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func request(method, path string) *http.Request {
	return httptest.NewRequestWithContext(context.Background(), method, path, http.NoBody)
}

// proves WEB-4: an edit demands If-Match; what it does not say is not guessed
func TestPreconditions(t *testing.T) {
	d := newDesk(t)
	asJSON := []string{"Content-Type", "application/json"}
	for _, c := range []struct {
		method, path, body string
		headers            []string
		code               int
		asked              string
	}{
		{"PUT", "groups/web", "{}", asJSON, 428, ""},
		{"PUT", "groups/web/size", `{"size": 3}`, asJSON, 428, ""},
		{"DELETE", "groups/web", "", nil, 428, ""},
		{"POST", "groups/web/actions/pause", "", nil, 428, ""},
		{"POST", "groups/web/actions/retry", "", nil, 200, "retry web at - dry false confirm []"},
		{"POST", "groups/web/actions/explode", "", nil, 404, ""},
		{
			"POST", "instances/web-0-a/actions/drain?confirm=web-0-a", "", nil,
			200, "drain web-0-a at - dry false confirm [web-0-a]",
		},
		{"POST", "instances/web-0-a/actions/drain?dryRun=true", "", nil, 400, ""},
		{
			"PUT", "groups/web", "{}", append([]string{"If-Match", `"7"`}, asJSON...),
			200, "apply web {} at 7 dry false confirm []",
		},
		{
			"PUT", "groups/web", "{}", append([]string{"If-None-Match", "*"}, asJSON...),
			200, "apply web {} at 0 dry false confirm []",
		},
		{
			"PUT", "groups/web?dryRun=true", "{}", append([]string{"If-Match", `"7"`}, asJSON...),
			200, "apply web {} at 7 dry true confirm []",
		},
		{"PUT", "groups/web?dryRun=perhaps", "{}", append([]string{"If-Match", `"7"`}, asJSON...), 400, ""},
		{"PUT", "groups/web", "{}", append([]string{"If-Match", "*"}, asJSON...), 400, ""},
		{"PUT", "groups/web", "{}", append([]string{"If-Match", `W/"7"`}, asJSON...), 400, ""},
		{"PUT", "groups/web", "{}", append([]string{"If-Match", `"0"`}, asJSON...), 400, ""},
		{"PUT", "groups/web", "{}", append([]string{"If-Match", `"7"`, "If-Match", `"8"`}, asJSON...), 400, ""},
		{"PUT", "groups/web", "{}", append([]string{"If-Match", `"7"`, "If-None-Match", "*"}, asJSON...), 400, ""},
		{"PUT", "groups/web", "{}", []string{"If-Match", `"7"`}, 415, ""},
		{"PUT", "groups/web", "{}", []string{"If-Match", `"7"`, "Content-Type", "text/plain"}, 415, ""},
		{
			"PUT", "groups/web", strings.Repeat("x", maxBody+1), append([]string{"If-Match", `"7"`}, asJSON...),
			413, "",
		},
		{"PUT", "groups/web/size", `{"sise": 3}`, append([]string{"If-Match", `"7"`}, asJSON...), 422, ""},
		{
			"PUT", "groups/web/size", `{"size": 3}`, append([]string{"If-Match", `"7"`}, asJSON...),
			200, "scale web 3 at 7 dry false confirm []",
		},
		{"PUT", "shard/hold", `{"why": "x"}`, asJSON, 428, ""},
		{"PUT", "shard/hold", `{"why": ""}`, append([]string{"If-Match", `"7"`}, asJSON...), 422, ""},
		{"PUT", "shard/hold", `{"why": "x", "whim": 1}`, append([]string{"If-Match", `"7"`}, asJSON...), 422, ""},
		{"PUT", "shard/hold", `{"why": "x"} {}`, append([]string{"If-Match", `"7"`}, asJSON...), 422, ""},
		{"PUT", "shard/hold?dryRun=true", `{"why": "x"}`, append([]string{"If-Match", `"7"`}, asJSON...), 400, ""},
		{
			"PUT", "shard/hold", `{"why": "x"}`, append([]string{"If-Match", `"7"`}, asJSON...),
			200, "hold x at 7 dry false confirm []",
		},
		{"DELETE", "shard/hold", "", nil, 428, ""},
		{
			"DELETE", "shard/hold?dryRun=true", "",
			[]string{"If-Match", `"7"`},
			200, "release at 7 dry true confirm []",
		},
		{"PUT", "shard/freeze", `{}`, asJSON, 428, ""},
		{"DELETE", "shard/freeze", "", nil, 428, ""},
		{"DELETE", "shard/freeze", "", []string{"If-Match", `"7"`}, 200, "freeze <nil> at 7 dry false confirm []"},
		{"PUT", "zones/a/evacuation", "", nil, 428, ""},
		{
			"PUT", "zones/a/evacuation?confirm=a", "",
			[]string{"If-Match", `"7"`},
			200, "evacuate a false at 7 dry false confirm [a]",
		},
		{
			"DELETE", "zones/a/evacuation", "", []string{"If-Match", `"7"`}, 200, "evacuate a true at 7 dry false confirm []",
		},
		{"PUT", "instances/web-0-a/protection", `{}`, asJSON, 428, ""},
		{
			"DELETE", "instances/web-0-a/protection", "",
			[]string{"If-Match", `"7"`},
			200, "protect web-0-a <nil> at 7 dry false confirm []",
		},
		{
			"POST", "groups/web/drills?confirm=web", `{"kind": "zone", "zone": "a"}`, asJSON,
			200, "drill web {Kind:zone Instance: Zone:a} at - dry false confirm [web]",
		},
		{"POST", "groups/web/drills?dryRun=true", `{"kind": "agent"}`, asJSON, 400, ""},
		{"POST", "groups/web/drills", `{"kind": "etcd"}`, asJSON, 422, ""},
		{"POST", "groups/web/drills", `{"kind": "zone"}`, asJSON, 422, ""},
		{"POST", "groups/web/drills", `{"kind": "zone", "zone": "a", "instance": "web-0-a"}`, asJSON, 422, ""},
		{"POST", "groups/web/drills", `{"kind": "agent", "zone": "a"}`, asJSON, 422, ""},
		{
			"POST", "groups/web/instances", "",
			[]string{"Idempotency-Key", "k1"},
			200, "create web at - dry false confirm [] once /api/v1/groups/web/instances k1",
		},
		{"POST", "groups/web/instances", "", []string{"Idempotency-Key", "two words"}, 400, ""},
		{"POST", "groups/web/instances", "", []string{"Idempotency-Key", strings.Repeat("x", maxKey+1)}, 400, ""},
		{"POST", "groups/web/instances", "", []string{"If-Match", `"7"`}, 200, "create web at 7 dry false confirm []"},
		{
			"POST", "instances/web-9-z/adoption", `{"group": "web"}`, asJSON,
			200, "adopt web-9-z {Group:web Slot:<nil>} at - dry false confirm []",
		},
		{"POST", "instances/web-9-z/adoption", `{"slot": "x"}`, asJSON, 422, ""},
		{"PATCH", "groups/web", "{}", asJSON, 405, ""},
		{"POST", "groups/web", "{}", asJSON, 405, ""},
		{"PUT", "shard", "{}", asJSON, 405, ""},
		{"GET", "nothing", "", nil, 404, ""},
		{"GET", "groups/../shard", "", nil, 404, ""},
		{"GET", "groups//status", "", nil, 404, ""},
	} {
		d.recorder.asked = nil
		code, text, header := d.ask(c.method, c.path, c.body, c.headers...)
		if code != c.code || strings.Join(d.recorder.asked, ";") != c.asked {
			t.Errorf("%s %s %v: %d, asked %q: %s", c.method, c.path, c.headers, code, d.recorder.asked, text)
		}
		if code >= 400 && header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %v", c.method, c.path, header)
		}
		if code == http.StatusOK && header.Get("ETag") != `"9"` {
			t.Errorf("%s %s: no ETag: %v", c.method, c.path, header)
		}
	}
}

// proves WEB-4: who has shown no user of etcd edits nothing; wrong passwords are few
func TestLogins(t *testing.T) {
	d := newDesk(t)
	edit := []string{"If-None-Match", "*", "Content-Type", "application/json"}
	for _, who := range []string{"Bearer right", "Basic !", "Basic " + "ZXZhOg==" /* eva: */} {
		code, text, header := d.ask("PUT", "groups/web", "{}", append([]string{"Authorization", who}, edit...)...)
		if code != http.StatusUnauthorized || d.logins != 0 || header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %d after %d logins: %s", who, code, d.logins, text)
		}
	}
	wrong := []string{"Authorization", "Basic ZXZhOndyb25n"} // eva:wrong
	for i := range wrongBurst + 3 {
		code, text, _ := d.ask("PUT", "groups/web", "{}", append(wrong, edit...)...)
		want := http.StatusUnauthorized
		if i >= wrongBurst {
			want = http.StatusTooManyRequests
		}
		if code != want || strings.Contains(text, "wrong\"") {
			t.Errorf("wrong password %d: %d %s", i+1, code, text)
		}
	}
	if d.logins != wrongBurst || len(d.recorder.asked) != 0 {
		t.Errorf("etcd was asked %d times, and %v was done", d.logins, d.recorder.asked)
	}
	// Wrong passwords at the same time are as few.
	d = newDesk(t)
	var asked atomic.Int32
	answer := make(chan struct{})
	d.h.Login = func(context.Context, string, string) (Editor, func(), error) {
		if asked.Add(1) == min(wrongBurst, maxEdits) {
			close(answer)
		}
		<-answer
		return nil, nil, store.ErrLogin
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { d.ask("PUT", "groups/web", "{}", append(slices.Clone(wrong), edit...)...) })
	}
	all.Wait()
	if n := asked.Load(); n > wrongBurst+1 { // another one where the test takes two seconds
		t.Errorf("etcd was asked %d times", n)
	}
	// Reads by a user of etcd: it is asked once.
	d = newDesk(t)
	for range 3 {
		r := request("GET", Root+"shard")
		r.SetBasicAuth("eva", "right")
		if !d.h.Knows(r) {
			t.Error("eva is not known")
		}
	}
	if d.logins != 1 {
		t.Errorf("etcd was asked %d times", d.logins)
	}
	r := request("GET", Root+"shard")
	if r.SetBasicAuth("eva", "wrong"); d.h.Knows(r) {
		t.Error("a wrong password is known")
	}
	// A user of another shard alone is none here.
	d = newDesk(t)
	d.recorder.foreign = true
	if r.SetBasicAuth("eva", "right"); d.h.Knows(r) {
		t.Error("a user who may not read the shard is known")
	}
}

// An error of the inside says nothing of the inside.
func TestErrorsReveal(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		err  error
		code int
		says string
	}{
		{errors.New("open /etc/secret: permission denied"), 500, "this failed"},
		{fmt.Errorf("x: %w", store.ErrDenied), 403, "does not permit"},
		{fmt.Errorf("x: %w", store.ErrUnavailable), 503, "does not answer"},
		{fmt.Errorf("x: %w", store.ErrUnknown), 504, "may or may not"},
		{&Problem{Status: 412, Detail: "moved on", Remedies: story.Advise("read it")}, 412, `"remedies":[{"kind":"advice","text":"read it"}]`},
	} {
		d.recorder.fails = c.err
		code, text, _ := d.ask("POST", "groups/web/actions/retry", "")
		if code != c.code || !strings.Contains(text, c.says) || strings.Contains(text, "/etc/secret") {
			t.Errorf("%v: %d %s", c.err, code, text)
		}
	}
}

// proves WEB-4: reads are what the page shows; the ETag of a group is its spec's revision, and what
// is read is what PUT takes
func TestReads(t *testing.T) {
	d := newDesk(t)
	d.put(d.keys.Shard(), store.Shard{
		Schema: store.Schema, ID: "x1", Name: "test", Created: time.Now(), Settings: store.DefaultShardSettings(),
	})
	rev := d.group("web", 2)
	d.put(d.keys.Instance("web-0-a"), store.Instance{
		Schema: store.Schema, ID: "web-0-a", Group: "web", Phase: store.Running, Managed: true, Since: time.Now(),
		Created: time.Now(), Zone: "a",
	})
	code, text, header := d.ask("GET", "groups/web", "")
	var file map[string]any
	if err := json.Unmarshal([]byte(text), &file); err != nil || code != 200 ||
		header.Get("ETag") != fmt.Sprintf(`"%d"`, rev) || file["schema"] != nil || file["paused"] != nil ||
		file["size"] != 2.0 {
		t.Errorf("the group: %d %v %s", code, header, text)
	}
	for path, want := range map[string]string{
		"shard": `"groups":[{"name":"web"`, "groups": `[{"name":"web"`, "groups/web/status": `"counts":{`,
		"groups/web/instances": `"id":"web-0-a"`, "groups/web/instances?is=lost": "[]",
		"instances/web-0-a": `"record":{`, "events": `"entries":[]`, "openapi.json": `"GroupFile"`,
	} {
		if code, text, _ := d.ask("GET", path, ""); code != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d, wanted %s: %s", path, code, want, text)
		}
	}
	for path, want := range map[string]int{
		"groups/none": 404, "groups/none/status": 404, "instances/none": 404, "events?limit=0": 400,
		"events?limit=1000000": 400,
	} {
		if code, text, _ := d.ask("GET", path, ""); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// proves WEB-4: a watch sends the document again when it changes, and each event once
func TestWatches(t *testing.T) {
	d := newDesk(t)
	d.group("web", 2)
	server := httptest.NewServer(d.h)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	open := func(path string) (next func(kind string) string, leave func()) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+Root+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(r) //nolint:bodyclose // by leave
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(resp.Body)
		return func(kind string) string {
			t.Helper()
			found := false
			for {
				line, err := in.ReadString('\n')
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				line = strings.TrimSpace(line)
				if name, is := strings.CutPrefix(line, "event: "); is {
					found = name == kind
				}
				if data, is := strings.CutPrefix(line, "data: "); is && found {
					return data
				}
			}
		}, func() { _, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 0)); _ = resp.Body.Close() }
	}
	status, leave := open("groups/web/status?watch=true")
	if first := status("state"); !strings.Contains(first, `"name":"web"`) {
		t.Errorf("it begins with %s", first)
	}
	rev := d.group("web", 3)
	if next := status("state"); !strings.Contains(next, fmt.Sprintf(`"spec_revision":%d`, rev)) {
		t.Errorf("it goes on with %s", next)
	}
	leave()
	tell := func(n int, ago time.Duration) {
		at := time.Now().Add(-ago)
		d.put(d.keys.Event(at, fmt.Sprint(n)), store.JournalEntry{
			Schema: store.Schema, At: at, By: "coord-a", Group: "web", What: fmt.Sprintf("number %d", n), Rule: "REC-3",
		})
	}
	tell(1, 0)
	events, leave := open("events?watch=true&group=web&limit=1")
	for n := 2; n < 6; n++ {
		if got := events("event"); !strings.Contains(got, fmt.Sprintf("number %d", n-1)) {
			t.Errorf("wanted number %d: %s", n-1, got)
		}
		tell(n, time.Duration(n)*time.Millisecond*10) // the clock of another replica is behind
	}
	leave()
	for range maxWatches {
		d.h.watches <- struct{}{}
	}
	if code, _, header := d.ask("GET", "shard?watch=true", ""); code != 503 || header.Get("Retry-After") == "" {
		t.Errorf("one watch too many: %d %v", code, header)
	}
}

// An entry that arrives while a watch looks through the journal is neither left out nor sent twice.
//
// proves WEB-4
func TestAWatchLosesNoEvent(t *testing.T) {
	d := newDesk(t)
	const last, each = 900, 3 // fewer than mostEvents, so no listing is cut short
	begun := time.Now()
	write := func(n int) {
		at := begun.Add(time.Duration(n) * time.Millisecond)
		entry := store.JournalEntry{
			Schema: store.Schema, At: at, By: "coord-a", Group: "web", What: fmt.Sprintf("number %d.", n), Rule: "REC-3",
		}
		if _, err := d.st.Commit(t.Context(), store.Txn{Writes: []store.Write{
			store.Put(d.keys.Event(at, fmt.Sprint(n)), store.Encode(entry)),
		}}); err != nil {
			t.Error(err)
		}
	}
	number := regexp.MustCompile(`number ([0-9]+)\.`)
	type watch struct {
		next func() ([]byte, error)
		seen int
	}
	look := func(w *watch) {
		text, err := w.next()
		if err != nil {
			t.Error(err)
		}
		for _, found := range number.FindAllSubmatch(text, -1) {
			n, err := strconv.Atoi(string(found[1]))
			if err != nil || w.seen != 0 && n != w.seen+1 {
				t.Errorf("after number %d comes %d (%v)", w.seen, n, err)
			}
			w.seen = n
		}
	}
	var before *watch
	for n := 0; n < last && !t.Failed(); n += each {
		var writing sync.WaitGroup
		writing.Go(func() {
			for i := range each {
				write(n + i + 1)
			}
		})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, Root+"events?watch=true&limit=1", http.NoBody)
		w := &watch{next: d.h.eventStream(r)}
		look(w)
		writing.Wait()
		if before != nil {
			look(before)
		}
		before = w
	}
}
