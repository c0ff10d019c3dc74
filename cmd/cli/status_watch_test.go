package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// feed is the output of a command that does not end by itself.
type feed struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (f *feed) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.b.Write(p)
}

func (f *feed) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.b.String()
}

// watching runs a command until the test ends or stop is called.
func (w *world) watching(args ...string) (out *feed, stop func() Code) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	out = &feed{}
	done := make(chan Code, 1)
	env := w.env(out, out)
	go func() { done <- Run(ctx, env, args) }()
	return out, func() Code {
		cancel()
		return <-done
	}
}

func (w *world) until(out *feed, text string) {
	w.t.Helper()
	end := time.After(2 * time.Minute)
	for !strings.Contains(out.String(), text) {
		select {
		case <-end:
			w.t.Fatalf("%q is not told:\n%s", text, out)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// proves WEB-1: a watched status, and top where its output is no terminal, are a line for each
// change
func TestWatchedStatus(t *testing.T) {
	for _, command := range [][]string{{"status", "--watch"}, {"top"}} {
		w := newWorld(t)
		w.serve()
		web := webGroup(3)
		rev := w.put(store.KindGroups, "web", web)
		w.put(store.KindStatus, "web", statusOf(web, rev, 3))
		st := w.db.Connect()
		w.open = func(context.Context, Connection) (store.Store, func() error, error) {
			return st, func() error { return nil }, nil
		}
		out, stop := w.watching(append(command, "--every", "100ms")...)
		const at = "2026-03-01T12:00:00Z\t"
		w.until(out, at+"leader\tcoord-a\t-\tleads\t-\n")
		w.until(out, at+"group\tweb\t-\tstarted 100% 3/3\t-\n")
		w.put(store.KindStatus, "web", statusOf(web, rev, 2))
		w.until(out, at+"group\tweb\t-\tstarted 66% 2/3\t-\n")
		st.Faults().Cut()
		w.until(out, "stale\tdefault\t-\t")
		st.Faults().Mend()
		w.until(out, "fresh\tdefault\t-\tetcd answers again\t-\n")
		w.put(store.KindReplicas, "coord-b", store.Replica{
			Schema: store.Schema, ID: "coord-b", Address: "127.0.0.1:7401", Version: "v0", Providers: []string{"process"},
			Since: noon.Add(-3 * time.Minute), IssuerEnds: noon.Add(-time.Minute),
		})
		w.until(out, "problem\tcoord-b\tSEC-3\t")
		w.put(store.KindReplicas, "coord-b", store.Replica{
			Schema: store.Schema, ID: "coord-b", Address: "127.0.0.1:7401", Version: "v0", Providers: []string{"process"},
			Since: noon.Add(-3 * time.Minute),
		})
		w.until(out, "solved\tcoord-b\tSEC-3\t")
		if code := stop(); code == Usage {
			t.Errorf("%v: exit %d:\n%s", command, code, out)
		}
		if n := strings.Count(out.String(), "\tleader\t"); n != 1 {
			t.Errorf("%v: the leader is told %d times:\n%s", command, n, out)
		}
	}
}

func TestWatchedStatusAsRecords(t *testing.T) {
	w := newWorld(t)
	w.serve()
	out, stop := w.watching("status", "--watch", "-o", "json")
	w.until(out, "\n")
	stop()
	line, _, _ := strings.Cut(out.String(), "\n")
	var change statusChange
	if err := json.Unmarshal([]byte(line), &change); err != nil || change.Kind != leaderChanged ||
		change.About != "coord-a" {
		t.Errorf("%q: %+v, %v", line, change, err)
	}
	if code, _, stderr := w.run("status", "--watch", "-o", "yaml"); code != Usage || !strings.Contains(stderr, "next: ") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, _ := w.run("status", "--watch", "--every", "1ms"); code != Usage {
		t.Errorf("an interval of 1ms: exit %d", code)
	}
}
