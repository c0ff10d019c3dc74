package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// proves DET-19, DET-1
func TestExitCodeAndLastOutputAreReported(t *testing.T) {
	r := begin(t, "fail", nil)
	r.start()
	e := r.exit()
	if e.Code != 3 || e.Signal != "" || string(e.Output) != "about to fail\nfor a reason\n" || e.At.IsZero() {
		t.Errorf("exit is %+v", e)
	}
	r.start()
	if s := r.State(); s.Running || s.Exit == nil {
		t.Errorf("state after another Start is %+v: a workload that ended by itself must stay ended", s)
	}
}

// proves DET-19
func TestSignalIsReported(t *testing.T) {
	r := begin(t, "serve", nil)
	r.start()
	r.says("ready")
	kill(t, r.State().PID)
	if e := r.exit(); e.Code != -1 || e.Signal != "killed" || string(e.Output) != "ready\n" {
		t.Errorf("exit is %+v", e)
	}
}

func TestEnvironmentArgumentsAndDirectory(t *testing.T) {
	t.Setenv(provider.EnvBootstrap, "/secret/bootstrap.json")
	t.Setenv(provider.EnvBootID, "boot-1")
	t.Setenv("INHERITED", "yes")
	r := begin(t, "look", func(c *Config) {
		c.Run = append(c.Run, "--port=${port}", "${greeting}")
		c.Vars["greeting"] = "hello ${port}"
		c.Facts = map[string]string{"port": "8080", "name": "web-0"}
	})
	r.start()
	if e := r.exit(); e.Code != 0 {
		t.Fatalf("exit is %+v", e)
	}
	out := r.output()
	for _, want := range []string{
		"dir " + r.cfg.Dir, "env INHERITED=yes", "env greeting=hello ${port}", "env LEASEHOLD_INSTANCE=web-0-a",
		"env LEASEHOLD_GROUP=web", "env LEASEHOLD_NAME=web-0",
		"env LEASEHOLD_MACHINE=shard-1/web-0-a", "arg --port=8080", "arg hello ${port}",
	} {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("workload does not see %q", want)
		}
	}
	if strings.Contains(out, provider.EnvBootstrap) || strings.Contains(out, provider.EnvBootID) {
		t.Error("workload sees what is the agent's own business")
	}
}

func TestStopInOrder(t *testing.T) {
	r := begin(t, "orderly", nil)
	r.start()
	r.says("ready")
	pid := r.State().PID
	r.Stop(t.Context())
	if lives(pid) || !strings.HasSuffix(r.output(), "ended in order\n") {
		t.Errorf("workload lives: %t, output %q", lives(pid), r.output())
	}
	if s := r.State(); s.Running || s.Exit != nil {
		t.Errorf("state is %+v: an end that was asked for is no failure", s)
	}
	select {
	case <-r.Changed():
		t.Error("an end that was asked for was told as one that was not")
	default:
	}
	r.start()
	if s := r.State(); !s.Running || s.PID == pid {
		t.Errorf("state after a new start is %+v", s)
	}
}

// proves ROLL-2
func TestNewConfigurationIsThatOfTheNextStart(t *testing.T) {
	r := begin(t, "orderly", nil)
	r.start()
	r.says("ready")
	pid := r.State().PID
	r.Configure(append(r.cfg.Run, "${greeting}"), map[string]string{playVar: "look", "greeting": "hello"})
	r.start()
	if s := r.State(); !s.Running || s.PID != pid {
		t.Fatalf("state is %+v, want process %d to go on", s, pid)
	}
	r.Stop(t.Context())
	r.start()
	if e := r.exit(); e.Code != 0 {
		t.Fatalf("exit is %+v", e)
	}
	r.says("arg hello\n")
	r.says("env greeting=hello\n")

	// Without a command there is nothing to start, but a running workload can still be stopped.
	r.Configure(nil, nil)
	if s := r.State(); !s.Wanted || s.Exit == nil {
		t.Errorf("state is %+v, want the state of the last run", s)
	}
	r.Stop(t.Context())
	r.start()
	if s := r.State(); s.Wanted || s.Running || s.Exit != nil {
		t.Errorf("state is %+v, want none", s)
	}
}

// proves HEAL-1
func TestWorkloadThatHasEndedIsStartedAfterAStop(t *testing.T) {
	r := begin(t, "fail", nil)
	r.start()
	r.exit()
	r.Configure(r.cfg.Run, map[string]string{playVar: "serve"})
	r.Stop(t.Context())
	r.start()
	if s := r.State(); !s.Running || s.Exit != nil {
		t.Errorf("state is %+v, want it to run", s)
	}

	// The same for a workload whose end only the record has, and one that could not be started.
	kill(t, r.State().PID)
	r.exit()
	next := again(t, r.cfg)
	next.start()
	next.exit()
	next.Configure([]string{"/nowhere/web"}, nil)
	next.Stop(t.Context())
	if next.Start(t.Context()) == nil {
		t.Error("no error")
	}
	next.exit()
	next.Configure(r.cfg.Run, map[string]string{playVar: "serve"})
	next.Stop(t.Context())
	next.start()
	if s := next.State(); !s.Running {
		t.Errorf("state is %+v, want it to run", s)
	}
}

func TestStopKillsTheWholeGroupAfterTheTimeout(t *testing.T) {
	r := begin(t, "family", func(c *Config) { c.StopTimeout = time.Millisecond })
	r.start()
	r.says("ready") // the child's
	var child int
	if _, err := fmt.Sscanf(r.output(), "child %d", &child); err != nil {
		t.Fatalf("output %q: %v", r.output(), err)
	}
	pid := r.State().PID
	r.Stop(t.Context())
	if lives(pid) || lives(child) {
		t.Errorf("after Stop the workload lives: %t, its child: %t", lives(pid), lives(child))
	}
}

func TestStopWaitsNoLongerThanItsContext(t *testing.T) {
	r := begin(t, "stubborn", nil)
	r.start()
	r.says("ready")
	pid := r.State().PID
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	begun := time.Now()
	r.Stop(ended)
	if lives(pid) {
		t.Error("workload lives")
	}
	if d := time.Since(begun); d >= patience {
		t.Errorf("Stop took %s though its context had ended", d)
	}
}

func TestWhatAWorkloadLeavesBehindEndsWithIt(t *testing.T) {
	r := begin(t, "orphans", nil)
	r.start()
	r.exit()
	var child int
	if _, err := fmt.Sscanf(r.output(), "child %d", &child); err != nil {
		t.Fatalf("output %q: %v", r.output(), err)
	}
	r.eventually("child ends", func() bool { return !lives(child) })
}

// A provider whose machines are processes finds the workload by the record, when the agent is gone.
func TestTheRecordNamesTheProcess(t *testing.T) {
	r := begin(t, "serve", nil)
	r.start()
	data, err := os.ReadFile(filepath.Join(r.cfg.StateDir, provider.WorkloadFile))
	if err != nil {
		t.Fatal(err)
	}
	var w provider.WorkloadProcess
	if err := json.Unmarshal(data, &w); err != nil {
		t.Fatal(err)
	}
	s, err := readStat(r.State().PID)
	if err != nil || w != (provider.WorkloadProcess{Kernel: kernelBoot(), PID: r.State().PID, Start: s.start}) {
		t.Errorf("recorded as %+v, started at %s, %v", w, s.start, err)
	}
}

// A process that has the recorded ID but began at another time is not ours.
func TestProcessIDOfSomebodyElse(t *testing.T) {
	r := begin(t, "serve", nil)
	old := record{Boot: "boot-1", Kernel: kernelBoot(), PID: os.Getpid(), Start: "1"}
	if err := writeRecord(r.records.path, old); err != nil {
		t.Fatal(err)
	}
	r.start()
	if e := r.exit(); e.Code != -1 {
		t.Errorf("exit is %+v, want an unknown exit", e)
	}
}

func TestWhatCannotBeStarted(t *testing.T) {
	for name, c := range map[string]struct {
		run  []string
		want string
	}{
		"no such program": {[]string{"/nowhere/web"}, "/nowhere/web"},
		"unknown name":    {[]string{"./web", "${prot}"}, "${prot}"},
	} {
		t.Run(name, func(t *testing.T) {
			r := begin(t, "", func(cfg *Config) { cfg.Run = c.run })
			if err := r.Start(t.Context()); err == nil {
				t.Error("no error")
			}
			if e := r.exit(); e.Code != 127 || !strings.Contains(e.Why, c.want) ||
				!strings.Contains(string(e.Output), c.want) {
				t.Errorf("exit is %+v, want code 127 and %q named", e, c.want)
			}
		})
	}
}

func TestNoWorkload(t *testing.T) {
	r := begin(t, "", func(c *Config) { c.Run = nil })
	r.start()
	r.Stop(t.Context())
	r.Release()
	if s := r.State(); s.Wanted || s.Running || s.Exit != nil {
		t.Errorf("state is %+v", s)
	}
}

func TestOutputIsBounded(t *testing.T) {
	const limit = 256 << 10
	r := begin(t, "shout", func(c *Config) { c.OutputLimit = limit })
	r.start()
	r.eventually("output is cut", func() bool {
		now, err := os.Stat(r.out.path)
		earlier, err2 := os.Stat(r.out.earlier())
		return err == nil && err2 == nil && now.Size() < limit && earlier.Size() <= limit
	})
	if !r.State().Running {
		t.Error("workload ended")
	}
}

// proves DET-19
func TestTailSpansBothFiles(t *testing.T) {
	o := output{path: filepath.Join(t.TempDir(), "log"), limit: TailSize}
	for _, f := range []struct{ path, text string }{
		{o.earlier(), strings.Repeat("a", TailSize)}, {o.path, strings.Repeat("b", 100)},
	} {
		if err := os.WriteFile(f.path, []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.Repeat("a", TailSize-100) + strings.Repeat("b", 100)
	if got := string(o.tail()); got != want {
		t.Errorf("tail has %d bytes, want the last %d of both files", len(got), len(want))
	}
}

// A workload that is killed for a drill counts as ended by itself. What is not there is not killed.
//
// proves DAY-6
func TestKilledWorkloadHasFailed(t *testing.T) {
	r := begin(t, "serve", nil)
	r.Kill() // nothing was started yet
	r.start()
	pid := r.State().PID
	r.Kill()
	if exit := r.exit(); exit.Signal != "killed" || lives(pid) {
		t.Errorf("exit is %+v", exit)
	}
	r.Kill()
}
