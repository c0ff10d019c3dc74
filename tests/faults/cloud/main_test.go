package cloud

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake/socket"
	"github.com/leasehold/leasehold/tests/faults/history"
	"github.com/leasehold/leasehold/tests/harness"
	"github.com/leasehold/leasehold/tests/stage"
)

// agentProgram is a cast whose wall clock can be set.
var agentProgram string

func TestMain(m *testing.M) {
	programs, err := stage.Build()
	if err == nil {
		agentProgram, err = programs.WrongClock()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := errors.Join(programs.Remove(), goleak.Find()); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// world is a cloud, and one replica that calls it.
type world struct {
	*Cloud
	t   *testing.T
	dir string
	log *history.Log
	as  *socket.Provider
}

func newWorld(t *testing.T, more ...func(*Config)) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "cloud-") //nolint:usetesting // the name of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir}
	if w.log, err = history.Open(filepath.Join(dir, "history")); err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Log: w.log, Agent: agentProgram, Dir: filepath.Join(dir, "machines"), Socket: filepath.Join(dir, "socket"),
		AgentAgain: 10 * time.Millisecond,
		Source:     func(string) string { return "127.9.9.9" },
	}
	for _, change := range more {
		change(&cfg)
	}
	if w.Cloud, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	if err := w.Serve(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	w.as = socket.NewProvider("a", cfg.Socket)
	t.Cleanup(w.leave)
	return w
}

// leave ends the cloud, and looks whether anything is left of it.
func (w *world) leave() {
	if err := w.Close(); err != nil {
		w.t.Error(err)
	}
	for _, f := range w.Failures() {
		w.t.Error(f)
	}
	if left := w.Processes(); len(left) > 0 {
		w.t.Errorf("processes were left: %v", left)
	}
	if err := w.log.Close(); err != nil {
		w.t.Error(err)
	}
	if err := os.RemoveAll(w.dir); err != nil {
		w.t.Error(err)
	}
}

// forgive takes back what was to go wrong.
func (w *world) forgive() []string {
	told := w.Failures()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = nil
	return told
}

func request(instance string) provider.CreateRequest {
	return provider.CreateRequest{Zone: "b", Bootstrap: provider.Bootstrap{
		Schema: provider.BootstrapSchema, Instance: instance, Group: "web", Shard: "s1",
		Coordinators:   []string{"127.0.0.1:1"},
		ReportInterval: "1s", ReconnectMin: "100ms", ReconnectMax: "1s", StopTimeout: "5s",
		Run: []string{"sh", "-c", "sleep 100000 & exec sleep 100000"},
	}}
}

// create makes a machine and waits until all of it runs.
func (w *world) create(instance string) {
	w.t.Helper()
	if _, err := w.as.Create(w.t.Context(), request(instance)); err != nil {
		w.t.Fatal(err)
	}
	w.awaitAll(instance)
}

// awaitAll waits for the agent and both processes of the workload.
func (w *world) awaitAll(instance string) []int {
	w.t.Helper()
	var all []int
	w.await("agent and workload of "+instance, func() bool {
		all = w.Processes()[instance]
		return len(all) == 3 && strings.Contains(w.Said(instance), "replica does not answer")
	})
	return all
}

func (w *world) await(what string, is func() bool) {
	w.t.Helper()
	harness.Await(w.t, what, time.Minute, 10*time.Millisecond, is, nil)
}

// must is for what has to work.
func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// told is all that the history says of a machine, in short.
func (w *world) told(instance string) (out []string) {
	for _, e := range w.log.Events() {
		switch {
		case e.Call != nil && e.Call.Instance == instance && e.Call.Replica == "a":
			out = append(out, word(string(e.Call.Method), e.Call.Ended, e.Call.Err))
		case e.Machine != nil && (e.Machine.What == history.WorkloadBegan || e.Machine.What == history.WorkloadEnded):
			// seen some time later: see workloads
		case e.Machine != nil && e.Machine.Instance == instance:
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %d %s", e.Machine.What, e.Machine.Boot, e.Machine.Why)))
		case e.Harm != nil && e.Harm.Instance == instance:
			out = append(out, word(string(e.Harm.Kind), e.Harm.Ends, ""))
		}
	}
	return out
}

// workloads is what the history says of a machine's workload.
func (w *world) workloads(instance string) (out []history.Step) {
	for _, e := range w.log.Events() {
		if m := e.Machine; m != nil && m.Instance == instance &&
			(m.What == history.WorkloadBegan || m.What == history.WorkloadEnded) {
			out = append(out, m.What)
		}
	}
	return out
}

func word(what string, ends bool, err string) string {
	if ends {
		what = "/" + what
	}
	return strings.TrimSpace(what + " " + err)
}

// expect compares what the history says of a machine. What is in one string happens in any order.
func (w *world) expect(instance string, want ...string) {
	w.t.Helper()
	got, all := w.told(instance), w.told(instance)
	for _, these := range want {
		any := strings.Split(these, " | ")
		if len(got) < len(any) {
			w.t.Fatalf("%s: %s is missing in\n%s", instance, these, strings.Join(all, "\n"))
		}
		here := slices.Sorted(slices.Values(got[:len(any)]))
		if slices.Sort(any); !slices.Equal(here, any) {
			w.t.Fatalf("%s: %v, want %v, in\n%s", instance, here, any, strings.Join(all, "\n"))
		}
		got = got[len(any):]
	}
	if len(got) > 0 {
		w.t.Fatalf("%s: %v is too much", instance, got)
	}
}
