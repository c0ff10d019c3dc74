package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// listener reads the stream of a page.
type listener struct {
	t     testing.TB
	body  *bufio.Scanner
	close func()
}

// message is one event.
type message struct {
	event, id string
	size      int // bytes of its data
	Revision  int64
	Stale     bool
	Top, Have string
	Said      string
	Changes   []change
}

type change struct {
	ID, HTML, In, After string
	Gone                bool
}

func (m message) has(id, text string) bool {
	for _, c := range m.Changes {
		if c.ID == id && strings.Contains(c.HTML, text) {
			return true
		}
	}
	return false
}

var liveOf = regexp.MustCompile(`data-live="([^"]*)" data-have="([^"]*)"`)

// address is where a page's changes are, for a reader of the page as it is.
func (x *exhibit) address(path string) string {
	x.t.Helper()
	_, body, _ := x.get(path)
	m := liveOf.FindStringSubmatch(body)
	if m == nil {
		x.t.Fatalf("%s is not live:\n%s", path, body)
	}
	return strings.ReplaceAll(m[1], "&amp;", "&") + "&have=" + url.QueryEscape(m[2])
}

// smallWindow connects with a small buffer, so that a reader that reads nothing is slow at once.
func smallWindow(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok {
		err = tcp.SetReadBuffer(4 << 10)
	}
	return conn, err
}

func (x *exhibit) listen(address string) *listener {
	x.t.Helper()
	return x.listenBy(address, &http.Transport{DisableKeepAlives: true})
}

func (x *exhibit) listenBy(address string, transport *http.Transport) *listener {
	x.t.Helper()
	r, err := http.NewRequestWithContext(x.t.Context(), http.MethodGet, x.server.URL()+address, http.NoBody)
	if err != nil {
		x.t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		x.t.Fatalf("%s: %d %v", address, resp.StatusCode, resp.Header)
	}
	body := bufio.NewScanner(resp.Body)
	body.Buffer(nil, 8<<20)
	return &listener{t: x.t, body: body, close: func() { resp.Body.Close() }}
}

// next reads a message; false: the stream has ended.
func (l *listener) next() (m message, ok bool) {
	for l.body.Scan() {
		line := l.body.Text()
		switch name, value, _ := strings.Cut(line, ": "); name {
		case "event":
			m.event = value
		case "id":
			m.id = value
		case "data":
			m.size = len(value)
			if err := json.Unmarshal([]byte(value), &m); err != nil {
				l.t.Fatalf("%s: %v", value, err)
			}
		case "":
			return m, true
		}
	}
	return m, false
}

// until reads messages up to one that is looked for.
func (l *listener) until(what string, is func(message) bool) message {
	l.t.Helper()
	for {
		m, open := l.next()
		if !open {
			l.t.Fatalf("%s: the stream has ended: %v", what, l.body.Err())
		}
		if is(m) {
			return m
		}
	}
}

// proves WEB-1: a page that is read is kept up to date, by what has changed alone
func TestPagesAreLive(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.group("web", 4)
	x.shows("/events", "journal has") // the journal has been read
	address := x.address("/g/web")
	l := x.listen(address)
	first, _ := l.next()
	if first.event != "snapshot" || len(first.Changes) != 0 || first.id == "" || first.Top == "" || first.Stale {
		t.Errorf("to a reader that has all: %+v", first)
	}
	if m, _ := x.listen(strings.Split(address, "&have=")[0]).next(); !m.has("main", `id="s-3"`) {
		t.Errorf("to a reader that has nothing: %+v", m)
	}

	rec := store.Instance{
		Schema: store.Schema, ID: "web-2-a", Group: "web", Slot: 2, Phase: store.Draining, Managed: true, Zone: "c",
		Created: x.now.Add(-2 * time.Hour), Spec: store.InstanceSpec{Provider: "mem"}, Template: "t1",
	}
	x.put(map[string]any{x.keys.Instance("web-2-a"): rec})
	m := l.until("the change of an instance", func(m message) bool {
		return m.event == "delta" && m.has("s-2", "leaving")
	})
	for _, c := range m.Changes {
		if slices.Contains([]string{"grid", "main", "s-1", "band-2", "table", "rows", "r-web-1-a", "recent"}, c.ID) {
			t.Errorf("%s is sent, and only one instance has changed", c.ID)
		}
	}
	x.tell(0, store.JournalEntry{Rule: "REC-3", What: "draining", Group: "web", Instance: "web-2-a"})
	l.until("the first entry of the journal", func(m message) bool { return m.has("recent", "draining") })
	x.tell(1, store.JournalEntry{Rule: "REC-3", What: "drained", Group: "web", Instance: "web-2-a"})
	m = l.until("another entry of the journal", func(m message) bool {
		return slices.ContainsFunc(m.Changes, func(c change) bool {
			return c.In == "recent-rows" && c.After == "" && strings.Contains(c.HTML, "drained")
		})
	})

	// A reader that was away gets what it lacks, and no more.
	l.close()
	rec.Phase = store.Deleting
	x.put(map[string]any{x.keys.Instance("web-2-a"): rec})
	back := x.listen(strings.Split(address, "&have=")[0] + "&have=" + url.QueryEscape(m.Have))
	m = back.until("what was missed", func(m message) bool {
		return m.has("grid", "deleting") || m.has("s-2", "deleting")
	})
	if m.has("chips", "") {
		t.Errorf("a fragment is sent that is as it was: %+v", m)
	}

	code, text, h := x.get(address + "&once")
	if code != http.StatusOK || h.Get("Content-Type") != "application/json" || !strings.Contains(text, "deleting") {
		t.Errorf("once: %d %v %s", code, h, text)
	}
	for _, path := range []string{"/live", "/live?page=/nowhere", "/live?page=/g/a/b&once"} {
		if code, _, _ := x.get(path); code != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", path, code)
		}
	}
}

// proves WEB-1: what is old is said to be old, also to a reader that is connected
func TestPagesSayWhenTheyAreOld(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.group("web", 1)
	l := x.listen(x.address("/"))
	if m, _ := l.next(); m.Stale {
		t.Errorf("stale at first: %+v", m)
	}
	x.st.Faults().Cut()
	m := l.until("that it is old", func(m message) bool { return m.Stale })
	if !strings.Contains(m.Top, "data-stale") {
		t.Errorf("the first line does not say so: %s", m.Top)
	}
	if _, body, _ := x.get("/"); !strings.Contains(body, `class="stale"`) || !strings.Contains(body, "web") {
		t.Error("a new reader is not told")
	}
	x.st.Faults().Mend()
	l.until("that it is new again", func(m message) bool { return !m.Stale })
}

// proves WEB-1: no reader holds up another, or agents: those that are too many or too slow are
// turned away
func TestReadersAreBounded(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.group("web", 200)
	const most = 64
	for range most {
		x.listenBy("/live?page=/g/web", &http.Transport{DisableKeepAlives: true, DialContext: smallWindow})
	}
	code, _, h := x.get("/live?page=/")
	if code != http.StatusServiceUnavailable || h.Get("Retry-After") == "" {
		t.Errorf("one stream more than may be: %d %v", code, h)
	}
	if code, _, _ := x.get("/g/web"); code != http.StatusOK {
		t.Errorf("a page beside all streams: %d", code)
	}
	// None of them reads on, and their buffers fill.
	eventually(t, "slow readers are dropped", func() bool {
		for n := range 20 {
			i := store.Instance{
				Schema: store.Schema, ID: fmt.Sprintf("web-%d-a", n), Group: "web", Slot: n, Phase: store.Running, Managed: true,
				Zone: fmt.Sprint(time.Now().UnixNano()), Spec: store.InstanceSpec{Provider: "mem"},
			}
			x.put(map[string]any{x.keys.Instance(i.ID): i})
		}
		code, _, _ := x.get("/live?page=/nowhere")
		return code == http.StatusNotFound
	})
}
