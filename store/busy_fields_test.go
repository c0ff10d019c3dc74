package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What busy cannot be is refused with its value. Values at the very bounds are allowed.
//
// proves BUSY-1
func TestWhatBusyMaySay(t *testing.T) {
	long := "/" + strings.Repeat("x", 4096)
	http := func(port store.Port, path string) store.BusySpec {
		return store.BusySpec{BusyProbe: store.BusyProbe{HTTP: &store.BusyHTTP{Port: port, Path: path}}}
	}
	exec := func(run ...string) store.BusySpec {
		return store.BusySpec{BusyProbe: store.BusyProbe{Exec: &store.ExecCheck{Run: run}}}
	}
	both := exec("./idle")
	both.HTTP = &store.BusyHTTP{Port: "80"}
	for _, test := range []struct {
		busy store.BusySpec
		want string // field and value; "": nothing is wrong
	}{
		{store.BusySpec{}, ""},
		{http("80", "/idle"), ""},
		{http("80", "${idle}"), ""},
		{http("80", long[:4096]), ""},
		{http("80", long), `busy.http.path: "` + long + `"`},
		{http("80", "idle"), `busy.http.path: "idle"`},
		{http("65536", "/"), "busy.http.port: 65536"},
		{exec(slices.Repeat([]string{"x"}, 256)...), ""},
		{exec(slices.Repeat([]string{"x"}, 257)...), "busy.exec.run: [x x"},
		{exec("./idle", long), "busy.exec.run: [./idle /x"},
		{both, "busy.exec.run: [./idle]"},
		{store.BusySpec{BusyProbe: store.BusyProbe{File: long[:4096]}}, ""},
		{store.BusySpec{BusyProbe: store.BusyProbe{File: long}}, `busy.file: "` + long + `"`},
		{store.BusySpec{BusyProbe: store.BusyProbe{File: "run/busy"}}, `busy.file: "run/busy"`},
		{store.BusySpec{Timeout: new(store.Duration(48 * time.Hour))}, ""},
		{store.BusySpec{Timeout: new(store.Duration(49 * time.Hour))}, "busy.timeout: 49h0m0s"},
	} {
		g := web()
		g.Vars = map[string]string{"idle": "/idle"}
		g.Busy = test.busy
		got := refusalOf(g)
		if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") || strings.Contains(got, "\n") {
			t.Errorf("%+v: got %q, want %q", test.busy, got, test.want)
		}
	}
}

// Agents ask whether their workload is idle, beside the checks of the group, only where the group
// says how. An instance that was chosen has an hour to become idle, or as long as its group says.
//
// proves BUSY-1
func TestWhetherAgentsAskForBusy(t *testing.T) {
	for name, test := range map[string]struct {
		probe store.BusyProbe
		asked bool
	}{
		"nothing": {store.BusyProbe{}, false},
		"http":    {store.BusyProbe{HTTP: &store.BusyHTTP{Port: "80"}}, true},
		"command": {store.BusyProbe{Exec: &store.ExecCheck{Run: []string{"./idle"}}}, true},
		"file":    {store.BusyProbe{File: "/run/busy"}, true},
	} {
		s := store.InstanceSpec{Checks: []store.Check{{Name: "ready"}}, Busy: test.probe}
		var names []string
		for _, c := range s.AllChecks() {
			names = append(names, c.Name)
		}
		want := []string{"ready"}
		if test.asked {
			want = append(want, store.IdleCheck)
		}
		if s.Busy.Asked() != test.asked || !slices.Equal(names, want) {
			t.Errorf("%s: asked is %t, the checks are %q", name, s.Busy.Asked(), names)
		}
	}
	for want, b := range map[time.Duration]store.BusySpec{
		time.Hour: {}, 0: {Timeout: new(store.Duration(0))}, time.Minute: {Timeout: new(store.Duration(time.Minute))},
	} {
		if got := b.Patience(); got != want {
			t.Errorf("patience of %s, want %s", got, want)
		}
	}
}
