package lxd

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// listing answers the list of names, and the list of containers.
func listing(full func() []any, names ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("recursion") == "" {
			answer(names)(w, r)
			return
		}
		answer(full())(w, r)
	}
}

// A cluster leaves out the containers of a member that it cannot reach, and still says that all
// went well. List says unknown of what it has seen before, and fails for what it has not.
func TestListIsNeverAPart(t *testing.T) {
	reachable := true
	p := fake(t, map[string]http.HandlerFunc{
		"GET /1.0/instances": listing(func() []any {
			if reachable {
				return []any{ours("Stopped", map[string]string{keyStopped: "2026-01-02T03:04:05.000000006Z"})}
			}
			return []any{}
		}, "/1.0/instances/ls-i1", "/1.0/instances/ls-of-another-shard?project=default", "/1.0/instances/db"),
		"GET /1.0/instances/ls-i1": refuse(http.StatusServiceUnavailable, "member is offline"),
		"GET /1.0/instances/ls-of-another-shard": answer(map[string]any{
			"name": "ls-of-another-shard", "status": "Running", "config": map[string]string{
				tagShard:    "s2",
				tagInstance: "of-another-shard",
			},
		}),
	})
	reachable = false
	if all, err := p.List(t.Context(), "s1"); err == nil {
		t.Errorf("a part is listed as the whole: %+v", all)
	}
	reachable = true
	if all, err := p.List(t.Context(), "s1"); err != nil || len(all) != 1 || all[0].State != provider.StateStopped {
		t.Errorf("List: %+v, %v", all, err)
	}
	reachable = false
	all, err := p.List(t.Context(), "s1")
	if err != nil || len(all) != 1 || all[0].State != provider.StateUnknown || all[0].Instance != "i1" ||
		all[0].Zone != "local" {
		t.Errorf("List: %+v, %v, want one that is unknown", all, err)
	}
}

// An answer that something between us and LXD has damaged says of no container that it is gone.
//
// proves DET-4
func TestDamagedAnswersProveNothing(t *testing.T) {
	for name, answers := range map[string]map[string]http.HandlerFunc{
		"no names": {"GET /1.0/instances": answer(nil)},
		"a container that is none": {
			"GET /1.0/instances": listing(func() []any { return []any{nil} }, "/1.0/instances/ls-i1"),
		},
		"a container without a name": {
			"GET /1.0/instances": listing(func() []any { return []any{map[string]any{}} }, "/1.0/instances/ls-i1"),
		},
		"a hidden container that is another": {
			"GET /1.0/instances": listing(func() []any { return []any{} }, "/1.0/instances/ls-i1"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			answers["GET /1.0/instances/ls-i1"] = answer(map[string]any{})
			p := fake(t, answers)
			if all, err := p.List(t.Context(), "s1"); err == nil {
				t.Errorf("List: %+v", all)
			}
			for what, err := range map[string]error{
				"Stop": p.Stop(t.Context(), "s1", "i1", 0), "Delete": p.Delete(t.Context(), "s1", "i1"),
				"Restart": p.Restart(t.Context(), "s1", "i1", ""),
			} {
				if err == nil || provider.KindOf(err) != provider.Temporary {
					t.Errorf("%s: %v, want an error that is temporary", what, err)
				}
			}
		})
	}
}

// An error that is not LXD's comes from a program between us and LXD. It says nothing of a
// container, whatever its status.
//
// proves DET-4, SAFE-8
func TestErrorsOfAnotherProgramProveNothing(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusConflict, http.StatusBadGateway} {
		var made atomic.Int64
		page := func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, "<html>Error</html>")
		}
		p := fake(t, map[string]http.HandlerFunc{
			"GET /1.0/instances/ls-i1": page, "DELETE /1.0/instances/ls-i1": page,
			"POST /1.0/instances": func(w http.ResponseWriter, r *http.Request) {
				made.Add(1)
				page(w, r)
			},
			"GET /1.0/instances": listing(func() []any { return []any{} }, "/1.0/instances/ls-i1"),
		})
		if all, err := p.List(t.Context(), "s1"); err == nil {
			t.Errorf("%d: List: %+v", status, all)
		}
		_, createErr := p.Create(t.Context(), request1())
		_, consoleErr := p.Console(t.Context(), "s1", "i1")
		for what, err := range map[string]error{
			"Stop": p.Stop(t.Context(), "s1", "i1", 0), "Delete": p.Delete(t.Context(), "s1", "i1"),
			"Restart": p.Restart(t.Context(), "s1", "i1", ""), "Create": createErr, "Console": consoleErr,
		} {
			if err == nil || provider.KindOf(err) != provider.Temporary || !strings.Contains(err.Error(), "<html>") {
				t.Errorf("%d: %s: %v, want an error that is temporary", status, what, err)
			}
		}
		if made.Load() > 0 {
			t.Errorf("%d: a container was requested", status)
		}
	}
}

// An operation whose end LXD does not report may still be under way.
func TestAnOperationThatHasNotSucceeded(t *testing.T) {
	for name, says := range map[string]http.HandlerFunc{
		"nothing": answer(nil), "no status": answer(map[string]any{}),
		"still runs": answer(map[string]any{"status": "Running", "status_code": 103}),
	} {
		p := fake(t, map[string]http.HandlerFunc{
			"GET /1.0/instances/ls-i1":    answer(ours("Stopped", nil)),
			"DELETE /1.0/instances/ls-i1": background("op"), "GET /1.0/operations/op/wait": says,
		})
		if err := p.Delete(t.Context(), "s1", "i1"); err == nil || provider.KindOf(err) != provider.Temporary {
			t.Errorf("%s: Delete: %v, want an error that is temporary", name, err)
		}
	}
}

// A container with the tags of an instance and another name is no machine of ours: an operator
// copied it (lxc copy keeps the tags), or renamed it to keep it. It is listed as foreign, so that
// operators see it, and no call touches it.
//
// proves PROV-4, SAFE-8
func TestContainersOfAnotherName(t *testing.T) {
	renamed := ours("Running", nil)
	renamed["name"] = "evidence"
	touched := func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s", r.Method, r.URL.Path)
		refuse(http.StatusBadRequest, "no")(w, r)
	}
	var there []any
	p := fake(t, map[string]http.HandlerFunc{
		"GET /1.0/instances":       listing(func() []any { return there }, "/1.0/instances/ls-i1", "/1.0/instances/evidence"),
		"GET /1.0/instances/ls-i1": refuse(http.StatusNotFound, "Instance not found"),
		"/1.0/instances/evidence":  touched, "/1.0/instances/evidence/": touched,
	})
	there = []any{renamed, ours("Stopped", nil)}
	all, err := p.List(t.Context(), "s1")
	if err != nil || len(all) != 2 || !all[0].Foreign || all[0].Ref != "evidence" || all[1].Foreign {
		t.Errorf("beside the instance's: %+v, %v", all, err)
	}
	there = []any{renamed}
	all, err = p.List(t.Context(), "s1")
	if err != nil || len(all) != 1 || !all[0].Foreign || all[0].Instance != "i1" {
		t.Errorf("alone: %+v, %v", all, err)
	}
	if err := errors.Join(p.Stop(t.Context(), "s1", "i1", 0), p.Delete(t.Context(), "s1", "i1")); err != nil {
		t.Error(err)
	}
	if err := p.Restart(t.Context(), "s1", "i1", ""); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Restart: %v", err)
	}
}

func TestWhatAContainerIs(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC)
	const start = "2026-01-02T03:04:05.000000006Z"
	for name, c := range map[string]struct {
		status string
		keys   map[string]string
		want   provider.State
	}{
		"runs":                     {"Running", nil, provider.StateRunning},
		"frozen":                   {"Frozen", nil, provider.StateRunning},
		"starts":                   {"Starting", nil, provider.StateStarting},
		"is to stop":               {"Running", map[string]string{keyStopped: start}, provider.StateStopping},
		"an earlier start stopped": {"Running", map[string]string{keyStopped: "2026-01-01T00:00:00Z"}, provider.StateRunning},
		"stopped":                  {"Stopped", map[string]string{keyStopped: start}, provider.StateStopped},
		"crashed":                  {"Stopped", map[string]string{keyStopped: "2026-01-01T00:00:00Z"}, provider.StateCrashed},
		"new": {
			"Stopped",
			map[string]string{keyStep: noteOf(stepNew, now.Add(-time.Second))},
			provider.StateStarting,
		},
		"new for long": {
			"Stopped",
			map[string]string{keyStep: noteOf(stepNew, now.Add(-time.Hour))},
			provider.StateFailed,
		},
		"between two boots": {
			"Stopped",
			map[string]string{keyStep: noteOf(stepStarting, now)},
			provider.StateStarting,
		},
		"never came back": {
			"Stopped",
			map[string]string{keyStep: noteOf(stepStarting, now.Add(-time.Hour))},
			provider.StateFailed,
		},
		"did not start":        {"Stopped", map[string]string{keyStep: noteOf(stepFailed, now)}, provider.StateFailed},
		"out of reach":         {"Error", nil, provider.StateUnknown},
		"a word of the future": {"Hibernating", nil, provider.StateUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(ours(c.status, c.keys))
			if err != nil {
				t.Fatal(err)
			}
			var read container
			if err := json.Unmarshal(data, &read); err != nil {
				t.Fatal(err)
			}
			if m := read.machine(now, time.Minute); m.State != c.want {
				t.Errorf("%+v, want %s", m, c.want)
			}
		})
	}
}

// A container that ends without a Stop of ours may be between two boots. Its end counts once it has
// been seen down for some seconds, all of them of one start. One that LXD did not see end is
// started again when LXD is, as after a restart of its host.
//
// proves DET-4, DET-10
func TestAnEndThatMayBeAReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(Config{Socket: "none", Image: "tiny"})
		if err != nil {
			t.Fatal(err)
		}
		const first, second = "2026-01-02T03:04:05.000000006Z", "2026-01-02T03:05:05.000000007Z"
		lists := func(p *Provider, status, start string, keys map[string]string, autostart string) provider.Machine {
			t.Helper()
			c := ours(status, keys)
			c["last_used_at"], c["expanded_config"] = start, map[string]string{"boot.autostart": autostart}
			data, err := json.Marshal(c)
			var read container
			if err = errors.Join(err, json.Unmarshal(data, &read)); err != nil {
				t.Fatal(err)
			}
			return p.machine(&read, time.Now())
		}
		want := func(m provider.Machine, state provider.State, unsettled bool) {
			t.Helper()
			if m.State != state || m.Unsettled != unsettled {
				t.Errorf("it is listed as %+v, want %s, unsettled %t", m, state, unsettled)
			}
		}
		seen := map[string]string{keyPower: "STOPPED"}
		want(lists(p, "Running", first, nil, ""), provider.StateRunning, false)
		for range 3 {
			want(lists(p, "Stopped", first, seen, ""), provider.StateUnknown, true)
			<-time.After(time.Second)
		}
		want(lists(p, "Running", second, nil, ""), provider.StateRunning, false)
		<-time.After(time.Hour)
		want(lists(p, "Stopped", second, seen, ""), provider.StateUnknown, true)
		<-time.After(betweenBoots)
		want(lists(p, "Stopped", second, seen, ""), provider.StateCrashed, false)
		want(lists(p, "Stopped", first, seen, ""), provider.StateUnknown, true) // another start
		stopped := map[string]string{keyStopped: second, keyPower: "STOPPED"}
		want(lists(p, "Stopped", second, stopped, ""), provider.StateStopped, false)

		unseen := map[string]string{keyPower: "RUNNING"}
		for range 2 {
			want(lists(p, "Stopped", second, unseen, ""), provider.StateUnknown, false)
			<-time.After(time.Hour)
		}
		want(lists(p, "Stopped", second, unseen, "false"), provider.StateUnknown, true)
		<-time.After(betweenBoots)
		want(lists(p, "Stopped", second, unseen, "false"), provider.StateCrashed, false)
	})
}
