package lxd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// fake answers what a real LXD cannot be made to answer in a test. Each path has its answer; the
// project is there.
func fake(t *testing.T, answers map[string]http.HandlerFunc) *Provider {
	t.Helper()
	dir, err := os.MkdirTemp("", "lxd") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /1.0/projects/default", answer(map[string]any{}))
	mux.HandleFunc("GET /1.0/operations", answer(map[string]any{}))
	for pattern, says := range answers {
		mux.HandleFunc(pattern, says)
	}
	server := httptest.NewUnstartedServer(mux)
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	p, err := New(Config{Socket: socket, Image: "tiny", Pool: "default", CallTimeout: "5s"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.client.http.CloseIdleConnections)
	return p
}

func answer(metadata any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "sync", "metadata": metadata})
	}
}

func refuse(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "error", "error": text, "error_code": code})
	}
}

// background begins an operation.
func background(id string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "async", "operation": "/1.0/operations/" + id})
	}
}

func ended(code int, text string) http.HandlerFunc {
	return answer(map[string]any{"status_code": code, "err": text})
}

// endedWith is the failure of an operation with a code, as of LXD 6.
func endedWith(code int, text string) http.HandlerFunc {
	return answer(map[string]any{"status_code": 400, "err": text, "err_code": code})
}

// ours is a container of instance i1 of shard s1.
func ours(status string, more map[string]string) map[string]any {
	config := map[string]string{tagShard: "s1", tagInstance: "i1", tagZone: "local", keyStep: noteOf(stepStarted,
		time.Now())}
	for k, v := range more {
		config[k] = v
	}
	return map[string]any{
		"name": "ls-i1", "status": status, "config": config,
		"last_used_at": "2026-01-02T03:04:05.000000006Z",
	}
}

func TestBusyIsWaitedOut(t *testing.T) {
	var asked atomic.Int64
	p := fake(t, map[string]http.HandlerFunc{
		"GET /1.0/instances/ls-i1": func(w http.ResponseWriter, r *http.Request) {
			if asked.Load() > 4 {
				refuse(http.StatusNotFound, "Instance not found")(w, r)
				return
			}
			answer(ours("Stopped", nil))(w, r)
		},
		"DELETE /1.0/instances/ls-i1": func(w http.ResponseWriter, r *http.Request) {
			switch asked.Add(1) {
			case 1:
				refuse(http.StatusInternalServerError,
					`Failed to create instance delete operation: Instance is busy running a "stop" operation`)(w, r)
			case 2:
				background("busy")(w, r)
			case 3:
				refuse(http.StatusInternalServerError, "Failed to add operation: A matching non-reusable operation has now "+
					"succeeded")(w, r)
			default:
				background("done")(w, r)
			}
		},
		"GET /1.0/operations/busy/wait": ended(400, "Instance is busy running a \"stop\" operation"),
		"GET /1.0/operations/done/wait": ended(200, ""),
	})
	if err := p.Delete(t.Context(), "s1", "i1"); err != nil || asked.Load() != 4 {
		t.Errorf("after %d requests: %v", asked.Load(), err)
	}
}

// A request to stop that LXD could not pass on comes again, in order as before; only when the time
// is over is the container stopped the hard way.
func TestAStopThatFailsComesAgain(t *testing.T) {
	for name, test := range map[string]struct {
		timeout time.Duration
		fails   int // requests in order; the next one takes the container down
		forced  bool
	}{
		"failed twice": {time.Minute, 2, false},
		"always":       {time.Second, 100, true},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			asked, forced := 0, false
			p := fake(t, map[string]http.HandlerFunc{
				"GET /1.0/instances/ls-i1": func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					if forced || asked > test.fails {
						answer(ours("Stopped", nil))(w, r)
						return
					}
					answer(ours("Running", nil))(w, r)
				},
				"PATCH /1.0/instances/ls-i1": answer(nil), "PUT /1.0/instances/ls-i1": answer(nil),
				"PUT /1.0/instances/ls-i1/state": func(w http.ResponseWriter, r *http.Request) {
					var body struct{ Force bool }
					if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					asked++
					if forced = body.Force; forced || asked > test.fails {
						answer(nil)(w, r)
						return
					}
					refuse(http.StatusInternalServerError, "Failed to connect to the monitor")(w, r)
				},
			})
			if err := p.Stop(t.Context(), "s1", "i1", test.timeout); err != nil || forced != test.forced {
				t.Errorf("after %d requests, the hard way %t: %v", asked, forced, err)
			}
		})
	}
}

// An LXD that reports a container as running and refuses to stop it as stopped is asked at a pace.
func TestAContradictoryLXDIsNotAskedWithoutPause(t *testing.T) {
	var asked atomic.Int64
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var pauses []time.Time
	p := fake(t, map[string]http.HandlerFunc{
		"GET /1.0/instances/ls-i1":   answer(ours("Running", nil)),
		"PATCH /1.0/instances/ls-i1": answer(nil), "PUT /1.0/instances/ls-i1": answer(nil),
		"PUT /1.0/instances/ls-i1/state": func(w http.ResponseWriter, r *http.Request) {
			pauses = append(pauses, time.Now())
			if asked.Add(1) == 3 {
				end()
			}
			refuse(http.StatusBadRequest, "The instance is already stopped")(w, r)
		},
	})
	if err := p.Stop(ctx, "s1", "i1", 0); !errors.Is(err, context.Canceled) {
		t.Errorf("after %d requests: %v", asked.Load(), err)
	}
	for i := 1; i < len(pauses); i++ {
		if pause := pauses[i].Sub(pauses[i-1]); pause < stopAgain {
			t.Errorf("asked again after %s", pause)
		}
	}
}

func TestBusyForeverEndsWithTheContext(t *testing.T) {
	p := fake(t, map[string]http.HandlerFunc{
		"GET /1.0/instances/ls-i1": answer(ours("Stopped", nil)),
		"DELETE /1.0/instances/ls-i1": refuse(http.StatusInternalServerError,
			"Instance is busy running a \"stop\" operation"),
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.Delete(ctx, "s1", "i1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the context's", err)
	}
}

// An operation that LXD forgot, or that does not end in time, may have succeeded.
func TestOperationWithoutAnEndIsTemporary(t *testing.T) {
	for name, says := range map[string]http.HandlerFunc{
		"forgotten": refuse(http.StatusNotFound, "Operation not found"),
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
		},
		"garbage": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
	} {
		t.Run(name, func(t *testing.T) {
			p := fake(t, map[string]http.HandlerFunc{
				"GET /1.0/instances/ls-i1":    refuse(http.StatusNotFound, "Instance not found"),
				"POST /1.0/instances":         background("op"),
				"GET /1.0/operations/op/wait": says,
			})
			_, err := p.Create(t.Context(), request1())
			if err == nil || provider.KindOf(err) != provider.Temporary {
				t.Errorf("error %v, want one that is temporary", err)
			}
		})
	}
}

func request1() provider.CreateRequest {
	return provider.CreateRequest{Bootstrap: provider.Bootstrap{
		Shard: "s1", Instance: "i1", Group: "web",
		StopTimeout: "1s",
	}}
}

// proves PROV-5
func TestErrorsHaveAKind(t *testing.T) {
	for text, c := range map[string]struct {
		code int
		want provider.Kind
	}{
		"not authorized": {
			http.StatusForbidden, provider.Credentials,
		},
		"Certificate is restricted": {
			http.StatusForbidden, provider.Credentials,
		},
		`Reached maximum number of instances in project "p"`:  {http.StatusForbidden, provider.Quota},
		"No suitable cluster member could be found":           {http.StatusNotFound, provider.Capacity},
		"Cluster group \"racks\" not found":                   {http.StatusNotFound, provider.Invalid},
		"Target only allowed when clustered":                  {http.StatusBadRequest, provider.Invalid},
		"Missing event connection with target cluster member": {http.StatusServiceUnavailable, provider.Temporary},
		"Create LVM: No space left on device":                 {http.StatusInternalServerError, provider.Capacity},
		"Privileged containers are forbidden":                 {http.StatusForbidden, provider.Invalid},
		"Failed to fetch image: unexpected EOF": {
			http.StatusInternalServerError,
			provider.Temporary,
		},
	} {
		t.Run(text, func(t *testing.T) {
			for name, says := range map[string]http.HandlerFunc{
				"at once":         refuse(c.code, text),
				"as an operation": background("op"),
			} {
				p := fake(t, map[string]http.HandlerFunc{
					"GET /1.0/instances/ls-i1": refuse(http.StatusNotFound, "Instance not found"), "POST /1.0/instances": says,
					"GET /1.0/operations/op/wait": endedWith(c.code, text),
				})
				_, err := p.Create(t.Context(), request1())
				if provider.KindOf(err) != c.want || !strings.Contains(err.Error(), text) {
					t.Errorf("%s: %v, want %s", name, err, c.want)
				}
			}
		})
	}
}

// What LXD refuses to make twice need not be the container: the error says what it is.
func TestWhatExistsAlreadyIsNamed(t *testing.T) {
	const why = `Failed creating instance from image: Volume "ls-i1" of type "containers" already exists`
	p := fake(t, map[string]http.HandlerFunc{
		"GET /1.0/instances/ls-i1":    refuse(http.StatusNotFound, "Instance not found"),
		"POST /1.0/instances":         background("op"),
		"GET /1.0/operations/op/wait": ended(400, why),
	})
	_, err := p.Create(t.Context(), request1())
	if err == nil || provider.KindOf(err) != provider.Temporary || !strings.Contains(err.Error(), why) {
		t.Errorf("Create: %v", err)
	}
}

// A start that fails is kept in the container, though LXD changes the container meanwhile, and List
// says why.
func TestStartThatFailsIsNoted(t *testing.T) {
	c := ours("Stopped", map[string]string{keyStep: noteOf(stepNew, time.Now())})
	meanwhile := 0
	p := fake(t, map[string]http.HandlerFunc{
		"GET /1.0/instances/ls-i1": func(w http.ResponseWriter, r *http.Request) { answer(c)(w, r) },
		"PATCH /1.0/instances/ls-i1": func(w http.ResponseWriter, r *http.Request) {
			var body struct{ Config map[string]string }
			err := json.NewDecoder(r.Body).Decode(&body)
			if step := body.Config[keyStep]; strings.HasPrefix(step, string(stepFailed)) && meanwhile < 2 {
				meanwhile++
				refuse(http.StatusPreconditionFailed, "ETag doesn't match")(w, r)
				return
			}
			if err == nil {
				for k, v := range body.Config {
					c["config"].(map[string]string)[k] = v
				}
			}
			answer(nil)(w, r)
		},
		"POST /1.0/instances/ls-i1/files": answer(nil), "PUT /1.0/instances/ls-i1/state": background("op"),
		"GET /1.0/operations/op/wait": ended(400, "Failed to run: forkstart: exit status 1"),
		"GET /1.0/instances":          listing(func() []any { return []any{c} }, "/1.0/instances/ls-i1"),
	})
	if _, err := p.Create(t.Context(), request1()); provider.KindOf(err) != provider.Temporary || err == nil {
		t.Errorf("Create: %v", err)
	}
	all, err := p.List(t.Context(), "s1")
	if err != nil || len(all) != 1 || all[0].State != provider.StateFailed || !strings.Contains(all[0].Why, "forkstart") {
		t.Errorf("List: %+v, %v", all, err)
	}
}

// Without LXD there is a provider, whose calls say what is missing.
func TestLXDMayComeLater(t *testing.T) {
	p, err := New(Config{Socket: filepath.Join(t.TempDir(), "none"), Image: "tiny"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.List(t.Context(), "s1"); err == nil || !strings.Contains(err.Error(), "out of reach") {
		t.Errorf("List: %v", err)
	}
	for name, c := range map[string]Config{
		"both":         {Socket: "/s", URL: "https://x:1"},
		"no key":       {URL: "https://x:1", Cert: "c"},
		"not https":    {URL: "http://x:1", Cert: "c", Key: "k", ServerCert: "s"},
		"cert alone":   {Cert: "c"},
		"bad timeout":  {CallTimeout: "soon"},
		"bad target":   {Zones: map[string]string{"a": "no member"}},
		"no such file": {URL: "https://x:1", Cert: "/none", Key: "/none", ServerCert: "/none"},
	} {
		if _, err := New(c); err == nil || !strings.HasPrefix(err.Error(), "lxd provider: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
