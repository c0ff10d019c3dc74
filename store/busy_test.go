package store_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A group has one way to find out whether its workloads are busy.
//
// proves BUSY-1
func TestBoundsOfBusy(t *testing.T) {
	for busy, path := range map[string]string{
		`{"http": {"port": 8080, "path": "/idle"}, "timeout": "1h"}`: "",
		`{"http": {"port": "${port}"}}`:                              "",
		`{"exec": {"run": ["./idle"]}}`:                              "",
		`{"http": {"port": 0}}`:                                      "busy.http.port",
		`{"http": {"port": 80, "path": "idle"}}`:                     "busy.http.path",
		`{"exec": {"run": []}}`:                                      "busy.exec.run",
		`{"exec": {"run": ["./idle"]}, "http": {"port": 80}}`:        "busy.exec.run",
		`{"exec": {"run": ["./idle"]}, "file": "/run/busy"}`:         "busy.file",
		`{"http": {"port": 80}, "file": "/run/busy"}`:                "busy.file",
		`{"file": "/run/${prot}"}`:                                   "busy.file",
	} {
		g, err := store.ReadGroup([]byte(`{"schema": 1, "name": "web", "provider": "process", "busy": ` + busy + `}`))
		wrong := fieldErrors(err)
		if path == "" && err != nil || path != "" && (len(wrong) != 1 || wrong[0].Path != path || wrong[0].Rule != "BUSY-1") {
			t.Errorf("%s: %v", busy, err)
		}
		if path == "" && g.Busy.Timeout != nil {
			t.Errorf("%s: the default is written out: the release before does not know it", busy)
		}
	}
	if _,
		err := store.ReadGroup([]byte(`{"schema": 1, "name": "web", "provider": "process", "busy": {"fiel": "/x"}}`)); err == nil ||
		!strings.Contains(err.Error(), "fiel") {
		t.Errorf("an unknown field gives %v", err)
	}
}

// The agents are asked by a check that changes no health, and a change of it is brought to them
// live. A group that does not ask has the hashes that it had.
//
// proves BUSY-1, ROLL-2
func TestHowAgentsAreAskedWhetherTheyAreBusy(t *testing.T) {
	g := store.DefaultGroup()
	g.Name, g.Provider = "web", "process"
	none := g.InstanceSpec()
	if len(none.AllChecks()) != 0 {
		t.Errorf("checks %+v", none.AllChecks())
	}
	g.Checks = []store.Check{store.DefaultCheck()}
	without := g.InstanceSpec()
	for want, probe := range map[string]store.BusyProbe{
		`{"exec":{"run":["test","!","-e","${dir}/busy"]}}`: {File: "${dir}/busy"},
		`{"exec":{"run":["./idle"]}}`:                      {Exec: &store.ExecCheck{Run: []string{"./idle"}}},
		`{"http":{"port":80,"path":"/idle"}}`:              {HTTP: &store.BusyHTTP{Port: "80", Path: "/idle"}},
	} {
		g.Busy.BusyProbe = probe
		spec := g.InstanceSpec()
		all := spec.AllChecks()
		if len(all) != 2 || len(spec.Checks) != 1 || all[1].Name != store.IdleCheck || !all[1].Optional {
			t.Fatalf("checks %+v", all)
		}
		expected := store.DefaultCheck()
		if err := json.Unmarshal([]byte(want), &expected); err != nil {
			t.Fatal(err)
		}
		expected.Name, expected.Optional = store.IdleCheck, true
		if !reflect.DeepEqual(all[1], expected) {
			t.Errorf("%+v is asked for by %+v", probe, all[1])
		}
		if spec.ConfigHash() == without.ConfigHash() || spec.TemplateHash() == without.TemplateHash() {
			t.Errorf("%+v changes no hash: no agent would hear of it", probe)
		}
	}
	for want, checks := range map[bool][]store.CheckReport{
		true: {{Name: "http"}, {Name: store.IdleCheck, Healthy: true}},
	} {
		if r := (store.Report{Checks: checks}); r.Idle() != want {
			t.Errorf("%+v is idle: %t", checks, r.Idle())
		}
	}
	for _, checks := range [][]store.CheckReport{
		nil, {{Name: "http", Healthy: true}}, {{Name: store.IdleCheck}}, {{
			Name: store.IdleCheck, Healthy: true,
			Pending: true,
		}},
	} {
		if r := (store.Report{Checks: checks}); r.Idle() {
			t.Errorf("%+v is taken for idle", checks)
		}
	}
}
