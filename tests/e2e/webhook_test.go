package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// A machine dies: a program that verifies signatures gets the decision, and a real Alertmanager an
// alert. What the first refuses meanwhile it gets later.
//
// proves WEB-3
func TestWebhooks(t *testing.T) {
	t.Parallel()
	const key = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	l := newLaptop(t)
	verify, err := webhooks.NewWebhook(key)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var events []string // the headlines
	refused := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = verify.Verify(body, r.Header)
		}
		var event struct{ Data struct{ Headline string } }
		if err == nil {
			err = json.Unmarshal(body, &event)
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			t.Errorf("an event: %v: %s", err, body)
		case refused < 2 && strings.Contains(event.Data.Headline, "demo-"):
			refused++
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			events = append(events, event.Data.Headline)
		}
	}))
	t.Cleanup(receiver.Close)
	manager := l.address()
	l.start("alertmanager", l.command("prometheus-alertmanager", "--config.file", l.file("alertmanager.yaml",
		"route: {receiver: none}\nreceivers: [{name: none}]\n"), "--web.listen-address", manager,
		"--cluster.listen-address=", "--storage.path", filepath.Join(l.dir, "alertmanager")))
	providers := l.file("providers.yaml", "webhooks:\n"+
		"  ops: {cloudevents: {url_file: "+l.file("url", receiver.URL)+", key_file: "+l.file("key", key)+"}}\n"+
		"  pager: {alertmanager: {url: 'http://"+manager+"/api/v2/alerts', groups: [demo], rules: [DET-4]}}\n")
	l.startDev("--listen", l.address(), "--http", "off", "--providers", providers)
	l.follow()
	l.await("the group", func() bool { return l.h.complete("demo", 3) })
	l.await("Alertmanager to listen", func() bool {
		return l.cli("webhook", "test", "pager", "--providers", providers).ExitCode() == 0
	})

	victim := l.h.wanted("demo")[0]
	l.signalAgent(victim, syscall.SIGKILL)
	l.await("the decision to be received", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range events {
			if strings.HasPrefix(e, victim+": deleting, replaced by demo-0-") {
				return true
			}
		}
		return false
	})
	if refused != 2 {
		t.Errorf("%d events were refused before: that was not tried", refused)
	}
	l.await("an alert", func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+manager+"/api/v2/alerts", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		var alerts []struct {
			Labels map[string]string
			Status struct{ State string }
		}
		if err := json.NewDecoder(answer.Body).Decode(&alerts); err != nil {
			t.Fatal(err)
		}
		for _, a := range alerts {
			if a.Labels["instance"] == victim && a.Labels["rule"] == "DET-4" && a.Status.State == "active" {
				return true
			}
		}
		return false
	})
	if out := l.must("webhook", "list"); !strings.Contains(out, "ops") || !strings.Contains(out, "pager") {
		t.Errorf("webhook list: %s", out)
	}
	p := l.cli("webhook", "test", "none", "--providers", providers)
	complains(t, p, 3, `names no webhook "none"`, "ops, pager")
}
