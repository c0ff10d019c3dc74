package haproxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/balancer/haproxy"
	"github.com/leasehold/leasehold/provider/balancer/haproxy/haproxytest"
	"github.com/leasehold/leasehold/tests/tier"
)

// web is an instance whose workload takes some milliseconds for each request.
type web struct {
	balancer.Member
	server *httptest.Server
}

func startWeb(t *testing.T, number int) web {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, strconv.Itoa(number)) // the client may be gone
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return web{balancer.Member{Instance: fmt.Sprintf("web-%d", number), Address: "127.0.0.1", Port: port}, server}
}

// load sends requests to an address without pauses, over kept and over new connections, until it is
// stopped. It returns the number of answers, and the failures.
func load(t *testing.T, front string) (stop func() (answered int64, failures []error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var count atomic.Int64
	var mu sync.Mutex
	var failures []error
	var clients sync.WaitGroup
	for i := range 8 {
		transport := &http.Transport{DisableKeepAlives: i%2 == 0}
		client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
		clients.Go(func() {
			defer transport.CloseIdleConnections()
			for ctx.Err() == nil {
				err := once(client, front)
				if err == nil {
					count.Add(1)
					continue
				}
				mu.Lock()
				failures = append(failures, err)
				mu.Unlock()
			}
		})
	}
	return func() (int64, []error) {
		cancel()
		clients.Wait()
		return count.Load(), failures
	}
}

func once(client *http.Client, front string) error {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+front+"/", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return err
}

// Instances join and leave under load. Each is added, confirmed, drained and removed as a
// coordinator does it, and its server is stopped as soon as it is gone: no request fails.
//
// proves LB-1, LB-2
func TestNoRequestFailsWhileMembersChange(t *testing.T) {
	for name, slots := range map[string]int{"added servers": 0, "slots": 6} {
		t.Run(name, func(t *testing.T) {
			p := haproxytest.Start(t, slots)
			c := haproxy.Config{Sockets: []string{"unix:" + p.Socket}, Server: quickChecks}
			if slots > 0 {
				c.Slots, c.Server = "slot", ""
			}
			b := open(t, c)
			add := func(number int) web {
				w := startWeb(t, number)
				if err := b.Add(t.Context(), shard, w.Member); err != nil {
					t.Fatal(err)
				}
				eventually(t, w.Instance+" is in service", func() bool { return membership(t, b, w.Member).Confirmed() })
				return w
			}
			serving := []web{add(0), add(1), add(2)}
			stop := load(t, p.Front)
			for i := range tier.Pick(6, 100) {
				serving = append(serving, add(3+i))
				leaves := serving[0]
				serving = serving[1:]
				if err := b.Drain(t.Context(), shard, leaves.Member); err != nil {
					t.Fatal(err)
				}
				eventually(t, leaves.Instance+" has drained", func() bool { return membership(t, b, leaves.Member).Drained() })
				if err := b.Remove(t.Context(), shard, leaves.Member); err != nil {
					t.Fatal(err)
				}
				if s := membership(t, b, leaves.Member); !s.Gone() {
					t.Errorf("%s: %+v", leaves.Instance, s)
				}
				leaves.server.Close()
			}
			answered, failures := stop()
			t.Logf("%d requests were answered", answered)
			if len(failures) > 0 || answered == 0 {
				t.Errorf("%d requests were answered, and %d failed: %v", answered, len(failures), failures[:min(5, len(failures))])
			}
		})
	}
}
