package faultproxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// serve serves the proxy over pipes and returns what sends a request: its answer or error.
func serve(t *testing.T, p *Proxy) func(body string) (string, error) {
	pipes := NewPipes()
	stop := pipes.Serve(p)
	client := pipes.Client(time.Minute)
	t.Cleanup(func() {
		client.CloseIdleConnections()
		stop()
	})
	return func(body string) (string, error) {
		// POST is not repeated by net/http, whatever happens to it.
		r, err := client.Post("http://api/", "text/plain", strings.NewReader(body))
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		return fmt.Sprintf("%d %s", r.StatusCode, text), err
	}
}

func TestEachFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reached atomic.Int64
		p := New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "answer %d", reached.Add(1))
		}), 1)
		send := serve(t, p)
		expect := func(what string, body, want string, fails bool, reaches int64) {
			t.Helper()
			before := reached.Load()
			got, err := send(body)
			if (err != nil) != fails || !fails && got != want || reached.Load()-before != reaches {
				t.Errorf("%s: %q, %v, and the server was reached %d times", what, got, err, reached.Load()-before)
			}
		}
		expect("nothing wrong", "a", "200 answer 1", false, 1)
		p.Add(Fault{Kind: Refuse, Times: 1, Answer: Answer{Status: 503, Body: "busy"}})
		expect("refused", "a", "503 busy", false, 0)
		p.Add(Fault{Kind: Lose, Times: 1})
		expect("lost", "a", "", true, 0)
		p.Add(Fault{Kind: Swallow, Times: 1})
		expect("swallowed", "a", "", true, 1)
		p.Add(Fault{Kind: Cut, Times: 1})
		expect("cut", "a", "", true, 1)
		p.Add(Fault{Kind: Stale, Age: 10 * time.Second, When: func(_ *http.Request,
			b []byte,
		) bool {
			return string(b) == "b"
		}})
		expect("nothing to be stale with", "b", "200 answer 4", false, 1)
		timer := time.NewTimer(9 * time.Second)
		<-timer.C
		expect("stale", "b", "200 answer 4", false, 0)
		timer.Reset(2 * time.Second)
		<-timer.C
		expect("too old", "b", "200 answer 5", false, 1)
		expect("another request", "a", "200 answer 6", false, 1)
		p.Clear()
		p.Add(Fault{Kind: Lose, From: 20 * time.Second, Until: 30 * time.Second})
		expect("before", "a", "200 answer 7", false, 1)
		timer.Reset(10 * time.Second)
		<-timer.C
		expect("during", "a", "", true, 0)
		timer.Reset(10 * time.Second)
		<-timer.C
		expect("afterwards", "a", "200 answer 8", false, 1)
		if hits := p.Hits(); hits[Lose] != 2 || hits[Stale] != 1 || hits[Cut] != 1 {
			t.Errorf("hits: %v", hits)
		}
	})
}
