package process

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// proves HEAL-14
func TestStopLetsTheAgentEndInOrder(t *testing.T) {
	p := open(t, t.TempDir(), "plain")
	r := create(t, p, "i1")
	if err := p.Stop(t.Context(), "s1", "i1", time.Minute); err != nil {
		t.Fatal(err)
	}
	if !exists(workFile(p, "i1", "ended-in-order")) {
		t.Error("the agent was not let end in order")
	}
	if runs(t, identity{r.PID, r.Start}) {
		t.Error("the agent still runs")
	}
	if m := stateOf(t, p, "i1"); m.State != provider.StateStopped || !strings.Contains(m.Why, "exit code 0") {
		t.Errorf("listed as %+v", m)
	}
}

// proves HEAL-14
func TestStopKillsAfterTheTimeout(t *testing.T) {
	p := open(t, t.TempDir(), "stubborn")
	r := create(t, p, "i1")
	began := time.Now()
	if err := p.Stop(t.Context(), "s1", "i1", 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("killed after %s already", took)
	}
	if runs(t, identity{r.PID, r.Start}) {
		t.Error("the agent still runs")
	}
	if m := stateOf(t, p, "i1"); m.State != provider.StateStopped || !strings.Contains(m.Why, "SIGKILL") {
		t.Errorf("listed as %+v", m)
	}
}

func TestStopEndsWithItsContext(t *testing.T) {
	p := open(t, t.TempDir(), "stubborn")
	r := create(t, p, "i1")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.Stop(ctx, "s1", "i1", time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Stop: %v, want that its time is over", err)
	}
	if !runs(t, identity{r.PID, r.Start}) {
		t.Error("the agent was killed before the stop's timeout")
	}
	if m := stateOf(t, p, "i1"); m.State != provider.StateStopping {
		t.Errorf("listed as %+v, want stopping", m)
	}
}

// A Delete need not wait for a Stop that is patient.
func TestDeleteCutsAStopShort(t *testing.T) {
	p := open(t, t.TempDir(), "stubborn")
	create(t, p, "i1")
	stopped := make(chan error, 1)
	go func() { stopped <- p.Stop(context.Background(), "s1", "i1", time.Hour) }()
	awaitState(t, p, "i1", provider.StateStopping)
	if err := p.Delete(t.Context(), "s1", "i1"); err != nil {
		t.Fatal(err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Stop: %v", err)
	}
}

// A workload outlives its agent, in a process group, a session or under an environment of its own.
// No end of the machine leaves it behind.
func TestNothingOutlivesTheMachine(t *testing.T) {
	ends := map[string]func(*Provider) error{
		"Stop":   func(p *Provider) error { return p.Stop(context.Background(), "s1", "i1", time.Minute) },
		"Delete": func(p *Provider) error { return p.Delete(context.Background(), "s1", "i1") },
		"Halt":   func(p *Provider) error { return p.Halt(context.Background()) },
	}
	for _, c := range []struct {
		mode   string
		killed bool // the agent, before the end
	}{
		{"parent", false},
		{"parent", true},
		{"daemon", false},
		{"daemon", true},
		{"wiped", false},
		{"nginx", false},
		{"nginx", true},
	} {
		for name, end := range ends {
			t.Run(c.mode+name, func(t *testing.T) {
				p := open(t, t.TempDir(), c.mode)
				r := create(t, p, "i1")
				s, err := readStat(pidIn(t, p, "i1", "ready-workload"))
				if err != nil {
					t.Fatal(err)
				}
				if c.killed {
					if err := (identity{r.PID, r.Start}).signal(syscall.SIGKILL); err != nil {
						t.Fatal(err)
					}
					awaitState(t, p, "i1", provider.StateCrashed)
				}
				if !runs(t, s.identity) {
					t.Fatal("the workload does not run: the test could not fail")
				}
				if err := end(p); err != nil {
					t.Fatal(err)
				}
				if runs(t, s.identity) {
					t.Error("the workload still runs")
				}
				if left := marked(t, "s1", "i1"); len(left) > 0 {
					t.Errorf("these run still: %v", left)
				}
			})
		}
	}
}

// What a machine's directory says of a workload names one process for good: a later one with its
// pid is none of the machine's.
func TestAnotherProcessIsNotTheRecordedWorkload(t *testing.T) {
	stranger := open(t, t.TempDir(), "plain")
	other := create(t, stranger, "i9")
	start := strconv.FormatUint(other.Start, 10)
	for name, w := range map[string]provider.WorkloadProcess{
		"start":  {Kernel: other.HostBoot, PID: other.PID, Start: start + "1"},
		"kernel": {Kernel: "of-last-week", PID: other.PID, Start: start},
		"none":   {Kernel: other.HostBoot, PID: other.PID},
	} {
		p := open(t, t.TempDir(), "plain")
		create(t, p, "i1")
		data, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p.machineDir("i1"), provider.WorkloadFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.Delete(t.Context(), "s1", "i1"); err != nil {
			t.Fatal(err)
		}
		if !runs(t, identity{other.PID, other.Start}) {
			t.Fatalf("%s: a stranger was ended", name)
		}
	}
}

// A shard that removes a machine whose name is another shard's harms neither that machine's agent
// nor the workload that its directory names.
//
// proves PROV-8
func TestAnotherShardsWorkloadIsNotEnded(t *testing.T) {
	stranger := open(t, t.TempDir(), "plain")
	other := create(t, stranger, "i9")
	p := open(t, t.TempDir(), "plain")
	mine := create(t, p, "i1")
	data, err := json.Marshal(provider.WorkloadProcess{
		Kernel: other.HostBoot, PID: other.PID, Start: strconv.FormatUint(other.Start, 10),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.machineDir("i1"), provider.WorkloadFile), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), "s2", "i1"); err != nil {
		t.Fatal(err)
	}
	if !runs(t, identity{mine.PID, mine.Start}) || !runs(t, identity{other.PID, other.Start}) {
		t.Error("another shard's machine was harmed")
	}
}

// proves SAFE-8
func TestRestartEndsTheOldWorkloadFirst(t *testing.T) {
	p := open(t, t.TempDir(), "daemon")
	before := create(t, p, "i1")
	s, err := readStat(pidIn(t, p, "i1", "ready-workload"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Restart(t.Context(), "s1", "i1", ""); err != nil {
		t.Fatal(err)
	}
	after := recordOf(t, p, "i1")
	if runs(t, identity{before.PID, before.Start}) || runs(t, s.identity) {
		t.Error("agent or workload of the old boot still runs")
	}
	if !runs(t, identity{after.PID, after.Start}) || after.Boot != before.Boot+1 || after.BootID == before.BootID ||
		after.Port != before.Port {
		t.Errorf("restarted from %+v to %+v", before, after)
	}
}

// A pid that another process has now is not the machine, and is left alone.
func TestReusedPidIsNotSignalled(t *testing.T) {
	p := open(t, t.TempDir(), "plain")
	bystander := open(t, t.TempDir(), "plain")
	other := create(t, bystander, "i9")
	for _, c := range []struct {
		name  string
		spoil func(*record)
	}{
		{"StartTime", func(r *record) { r.Start-- }},
		{"HostBoot", func(r *record) { r.HostBoot = "of-last-week" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := "i" + strings.ToLower(c.name)
			r := create(t, p, id)
			if err := (identity{r.PID, r.Start}).signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			awaitState(t, p, id, provider.StateCrashed)
			r.PID, r.Start, r.Exit = other.PID, other.Start, nil
			c.spoil(&r)
			if err := p.write(r); err != nil {
				t.Fatal(err)
			}
			if m := stateOf(t, p, id); m.State != provider.StateCrashed {
				t.Errorf("listed as %+v by another process's pid", m)
			}
			for name, call := range map[string]func() error{
				"Stop":   func() error { return p.Stop(t.Context(), "s1", id, time.Second) },
				"Halt":   func() error { return p.Halt(t.Context()) },
				"Delete": func() error { return p.Delete(t.Context(), "s1", id) },
			} {
				if err := call(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if !runs(t, identity{other.PID, other.Start}) || exists(workFile(bystander, "i9", "ended-in-order")) {
				t.Fatal("a process that is none of the machine's was signalled")
			}
		})
	}
}

func TestSignalHitsTheProcessAndNoLaterOne(t *testing.T) {
	p := open(t, t.TempDir(), "plain")
	r := create(t, p, "i1")
	if err := (identity{r.PID, r.Start - 1}).signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// Killed, it could no longer end in order.
	if err := p.Stop(t.Context(), "s1", "i1", time.Minute); err != nil {
		t.Fatal(err)
	}
	if now := recordOf(t, p, "i1"); !exists(workFile(p, "i1", "ended-in-order")) || now.Exit == nil ||
		now.Exit.Signal != "" {
		t.Errorf("the signal for an earlier process of this pid hit the agent: %+v", now)
	}
}

func TestSignalRefusesOurselves(t *testing.T) {
	for _, pid := range []int{0, 1, os.Getpid()} {
		if err := (identity{pid: pid}).signal(syscall.Signal(0)); err == nil {
			t.Errorf("pid %d would be signalled", pid)
		}
	}
}

// proves DET-4
func TestEndIsSeenAndExplained(t *testing.T) {
	for mode, want := range map[string]struct {
		state provider.State
		why   string
	}{
		"exit3": {provider.StateCrashed, "exit code 3"},
		"exit0": {provider.StateStopped, "exit code 0"},
	} {
		t.Run(mode, func(t *testing.T) {
			p := open(t, t.TempDir(), mode)
			if _, err := p.Create(t.Context(), request("i1")); err != nil {
				t.Fatal(err)
			}
			if m := awaitState(t, p, "i1", want.state); !strings.Contains(m.Why, want.why) {
				// The List that sees it first may do so while another call holds the lock; no later
				// one.
				t.Errorf("why: %q, want %q", m.Why, want.why)
			}
			r := recordOf(t, p, "i1")
			if _, err := readStat(r.PID); !errors.Is(err, errGone) {
				t.Errorf("it was not reaped: %v", err)
			}
			// A later caller knows it from the record.
			if m := stateOf(t, open(t, p.dir, mode), "i1"); m.State != want.state ||
				!strings.Contains(m.Why, want.why) {
				t.Errorf("a new provider lists %+v", m)
			}
		})
	}
}
