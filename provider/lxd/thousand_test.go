package lxd

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/faultproxy"
	"github.com/leasehold/leasehold/provider/providertest"
	"github.com/leasehold/leasehold/tests/tier"
)

// imitation is a server of ours that has as much of LXD's API as the provider uses, with
// operations that take their time and are forgotten soon after. What happened to each container is
// counted.
type imitation struct {
	mu         sync.Mutex
	containers map[string]*imitated
	operations map[string]*imitatedOperation
	numbers    int
	made       map[string]int // how often a container of that name was made
	starts     int
}

type imitated struct {
	revision     int
	config       map[string]string
	status, used string
	boot         string
}

type imitatedOperation struct {
	ends time.Time
	text string // its error
}

// Of an operation.
const (
	takes     = 300 * time.Millisecond
	forgotten = 5 * time.Second
)

func newImitation() *imitation {
	return &imitation{
		containers: map[string]*imitated{}, operations: map[string]*imitatedOperation{}, made: map[string]int{},
	}
}

// begin begins an operation whose effect is there at once: LXD shows what it has done before the
// operation has ended, too.
func (l *imitation) begin(w http.ResponseWriter, r *http.Request, text string) {
	l.numbers++
	id := fmt.Sprintf("op-%d", l.numbers)
	l.operations[id] = &imitatedOperation{time.Now().Add(takes), text}
	background(id)(w, r)
}

func (l *imitation) show(name string) map[string]any {
	c := l.containers[name]
	shown := map[string]any{"name": name, "status": c.status, "config": maps.Clone(c.config)}
	if c.used != "" {
		shown["last_used_at"] = c.used
	}
	return shown
}

func (l *imitation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what := strings.TrimPrefix(r.URL.Path, "/1.0/")
	if id, is := strings.CutPrefix(what, "operations/"); is {
		l.await(strings.TrimSuffix(id, "/wait"), w, r)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case strings.HasPrefix(what, "projects/"), what == "operations":
		answer(map[string]any{})(w, r)
	case what == "instances" && r.Method == http.MethodPost:
		l.create(w, r)
	case what == "instances":
		l.list(w, r)
	default:
		name, of, _ := strings.Cut(strings.TrimPrefix(what, "instances/"), "/")
		if l.containers[name] == nil {
			refuse(http.StatusNotFound, "Instance not found")(w, r)
			return
		}
		l.one(name, of, w, r)
	}
}

func (l *imitation) await(id string, w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	op := l.operations[id]
	l.mu.Unlock()
	if op == nil || time.Since(op.ends) > forgotten {
		refuse(http.StatusNotFound, "Operation not found")(w, r)
		return
	}
	<-time.After(time.Until(op.ends))
	if op.text != "" {
		ended(http.StatusBadRequest, op.text)(w, r)
		return
	}
	ended(http.StatusOK, "")(w, r)
}

func (l *imitation) create(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Name   string            `json:"name"`
		Config map[string]string `json:"config"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(http.StatusBadRequest, err.Error())(w, r)
		return
	}
	if l.containers[body.Name] != nil {
		l.begin(w, r, fmt.Sprintf("Failed creating instance record: Instance %q already exists", body.Name))
		return
	}
	l.made[body.Name]++
	l.containers[body.Name] = &imitated{config: body.Config, status: isStopped}
	l.begin(w, r, "")
}

func (l *imitation) list(w http.ResponseWriter, r *http.Request) {
	names, all := []string{}, []any{}
	for name := range l.containers {
		names, all = append(names, "/1.0/instances/"+name), append(all, l.show(name))
	}
	listing(func() []any { return all }, names...)(w, r)
}

func (l *imitation) one(name, of string, w http.ResponseWriter, r *http.Request) {
	c := l.containers[name]
	switch r.Method + " " + of {
	case "GET ":
		w.Header().Set("ETag", strconv.Itoa(c.revision))
		answer(l.show(name))(w, r)
	case "PATCH ":
		var body struct{ Config map[string]string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			refuse(http.StatusBadRequest, err.Error())(w, r)
			return
		}
		if r.Header.Get("If-Match") != strconv.Itoa(c.revision) {
			refuse(http.StatusPreconditionFailed, "ETag doesn't match")(w, r)
			return
		}
		c.revision++
		maps.Copy(c.config, body.Config)
		answer(nil)(w, r)
	case "DELETE ":
		if c.status != isStopped {
			refuse(http.StatusBadRequest, "Instance is running")(w, r)
			return
		}
		delete(l.containers, name)
		l.begin(w, r, "")
	case "PUT state":
		l.setState(c, w, r)
	case "GET state":
		answer(map[string]any{})(w, r)
	case "POST files":
		answer(nil)(w, r)
	case "GET files":
		fmt.Fprintln(w, c.boot)
	default:
		refuse(http.StatusNotImplemented, r.Method+" "+r.URL.Path)(w, r)
	}
}

func (l *imitation) setState(c *imitated, w http.ResponseWriter, r *http.Request) {
	var body struct{ Action string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(http.StatusBadRequest, err.Error())(w, r)
		return
	}
	switch {
	case body.Action == "start" && c.status == isRunning:
		l.begin(w, r, "The instance is already running")
	case body.Action == "stop" && c.status == isStopped:
		l.begin(w, r, "The instance is already stopped")
	case body.Action == "start":
		l.starts++
		c.status, c.used = isRunning, time.Now().UTC().Format(time.RFC3339Nano)
		c.boot = fmt.Sprintf("00000000-0000-4000-8000-%012d", l.starts)
		l.begin(w, r, "")
	default:
		c.status = isStopped
		l.begin(w, r, "")
	}
}

// Containers are made and removed by two coordinators in turns, while LXD's answers are lost, cut
// off or late, it breaks down, is busy, refuses the caller or has no quota left for a while, and
// lists are out of date. Each instance gets one container, which is started once, and after the
// removal nothing is left. The coordinators send no more requests than the calls need.
//
// proves SAFE-8, PROV-5
func TestManyContainersWithFaults(t *testing.T) {
	n := tier.Pick(150, 1000)
	synctest.Test(t, func(t *testing.T) {
		const workers = 48
		lxd := newImitation()
		posts := func(r *http.Request, _ []byte) bool {
			return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/instances")
		}
		refusal := func(status int, text string, chance float64) faultproxy.Fault {
			body, err := json.Marshal(map[string]any{"type": "error", "error": text, "error_code": status})
			if err != nil {
				t.Fatal(err)
			}
			return faultproxy.Fault{
				Kind: faultproxy.Refuse, Chance: chance, Answer: faultproxy.Answer{Status: status, Body: string(body)},
			}
		}
		stranger := refusal(http.StatusForbidden, "not authorized", 0)
		stranger.From, stranger.Until = 10*time.Second, 40*time.Second
		quota := refusal(http.StatusForbidden, `Reached maximum number of instances in project "default"`, .05)
		quota.When = posts
		lists := func(r *http.Request, _ []byte) bool {
			return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/instances")
		}
		const age = 2 * time.Second
		proxy := faultproxy.New(lxd, 7,
			stranger, quota,
			faultproxy.Fault{Kind: faultproxy.Swallow, When: posts, Chance: .2},
			faultproxy.Fault{Kind: faultproxy.Swallow, Chance: .03}, faultproxy.Fault{Kind: faultproxy.Lose, Chance: .03},
			faultproxy.Fault{Kind: faultproxy.Cut, Chance: .03},
			refusal(http.StatusInternalServerError, "something broke", .03),
			refusal(http.StatusInternalServerError, "Instance is busy running a \"start\" operation", .03),
			refusal(http.StatusServiceUnavailable, "database is locked", .02),
			faultproxy.Fault{Kind: faultproxy.Stale, When: lists, Chance: .2, Age: age},
		)
		over := make(chan struct{})
		var listing sync.WaitGroup
		crowd := providertest.Crowd{
			Shard: "s1", Machines: n, AtOnce: workers, Timeout: time.Minute,
			Pauses: map[provider.Kind]time.Duration{
				provider.Temporary: time.Second, provider.Credentials: 20 * time.Second, provider.Quota: 20 * time.Second,
			},
			Settle: age + time.Second, Meter: new(providertest.Meter),
			Request: func(id string, _ int) provider.CreateRequest {
				req := request1()
				req.Bootstrap.Instance, req.Zone = id, "local"
				return req
			},
			Created: func() {
				close(over)
				listing.Wait()
			},
			There: func() int {
				lxd.mu.Lock()
				defer lxd.mu.Unlock()
				return len(lxd.containers)
			},
		}
		pipes := faultproxy.NewPipes()
		stop := pipes.Serve(crowd.Meter.Before(proxy))
		leaders := make([]*Provider, 2)
		for i := range leaders {
			p, err := New(Config{Socket: "/none", Image: "tiny", Pool: "default", CallTimeout: "1m"})
			if err != nil {
				t.Fatal(err)
			}
			p.client.http = pipes.Client(0)
			leaders[i] = p
			crowd.Leaders = append(crowd.Leaders, p)
		}
		defer func() {
			for _, p := range leaders {
				p.client.http.CloseIdleConnections()
			}
			stop()
		}()
		extra := int64(0)
		// A leader lists all the while, and takes what a list says for true.
		listing.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Second):
				}
				extra++
				all, err := leaders[0].List(t.Context(), "s1")
				for _, m := range all {
					if m.State == provider.StateCrashed || m.State == provider.StateStopped {
						t.Errorf("a list, %v, has %+v", err, m)
					}
				}
			}
		})
		figures := crowd.Run(t)
		if lxd.starts != n {
			t.Errorf("%d containers were started %d times", n, lxd.starts)
		}
		for name, times := range lxd.made {
			if times != 1 {
				t.Errorf("container %s was made %d times", name, times)
			}
		}
		if hits := proxy.Hits(); len(hits) < 5 {
			t.Errorf("only these faults happened: %v", hits)
		}
		// A creation takes some ten requests, with those that are repeated; a removal half of that.
		const perCall = 20
		if calls := figures.Calls + extra; int64(figures.Requests) > perCall*calls {
			t.Errorf("%d requests were sent by %d calls", figures.Requests, calls)
		}
		t.Logf("%s; %d lists beside; faults %v", figures, extra, proxy.Hits())
	})
}
