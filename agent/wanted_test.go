package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
)

// config returns what is wanted of an agent that has a configuration and nothing else to do.
func config(hash, greeting string) *protocol.Wanted {
	return &protocol.Wanted{
		ConfigHash: hash, Run: []string{"./web"}, Vars: map[string]string{"greeting": greeting},
		Lifecycle: "service",
	}
}

func restart(token string) *protocol.Wanted {
	w := config("c2", "hi")
	w.RestartToken = token
	return w
}

func drain(token string) *protocol.Wanted {
	w := config("c2", "hi")
	w.Drain = &protocol.Drain{
		Token: token, Hook: []string{"./drain", "${greeting}"},
		Timeout: durationpb.New(time.Minute),
	}
	return w
}

// want has replica a send the wanted state several times, since repetition must change nothing.
func (r *running) want(w *protocol.Wanted, times int) {
	r.t.Helper()
	for range times {
		r.shard.order(r.t, "a", &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Wanted{Wanted: w}})
	}
}

// tells returns the last report since the last take; there must be one.
func (r *running) tells(what string) *protocol.Report {
	r.t.Helper()
	got := r.shard.take()
	for _, h := range slices.Backward(got) {
		if report := h.message.GetReport(); report != nil {
			return report
		}
	}
	r.t.Fatalf("%s: heard %q, want a report at once", what, summary(got))
	return nil
}

// silent checks that nothing was said.
func (r *running) silent(what string) {
	r.t.Helper()
	if got := r.shard.take(); len(got) > 0 {
		r.t.Errorf("%s: heard %q, want nothing", what, summary(got))
	}
}

// came checks how often the workload was started and stopped, and with what it runs.
func (m *machine) came(t *testing.T, what string, starts, stops int, with string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.starts != starts || m.stops != stops || m.started != with || !m.state.Running {
		t.Errorf("%s: %d starts, %d stops, with %s, running %t; want %d, %d, with %s", what, m.starts, m.stops,
			m.started, m.state.Running, starts, stops, with)
	}
}

const (
	atFirst = "[./old] map[greeting:hello]" // by the bootstrap document
	updated = "[./web] map[greeting:hi]"
)

func withOld(c *Config) {
	c.Bootstrap.Run, c.Bootstrap.Vars = []string{"./old"}, map[string]string{"greeting": "hello"}
}

// wantedStory is a story of an agent whose bootstrap document has a workload.
func wantedStory(t *testing.T, change func(*Config), tell func(t *testing.T, r *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newShard(t, "a")
		r := startAgent(t, s, newMachine(true), func(c *Config) {
			withOld(c)
			if change != nil {
				change(c)
			}
		})
		pass(time.Millisecond)
		s.take()
		tell(t, r)
		r.end()
	})
}

// proves ROLL-2, DET-1
func TestLiveUpdateWithoutARestart(t *testing.T) {
	wantedStory(t, nil, func(t *testing.T, r *running) {
		r.machine.came(t, "at first", 1, 0, atFirst)
		pass(interval / 2)
		r.silent("before the update")
		r.want(config("c2", "hi"), 1)
		if report := r.tells("update"); report.GetConfigHash() != "c2" || !report.GetHealthy() {
			t.Errorf("report is %v, want the new hash", report)
		}
		r.machine.came(t, "updated", 1, 0, atFirst)
		r.want(config("c2", "hi"), 3)
		r.silent("told again")

		r.want(restart("r1"), 1)
		if report := r.tells("restart"); report.GetRestarted() != "r1" || report.GetConfigHash() != "c2" ||
			!report.GetHealthy() {
			t.Errorf("report is %v, want the restart's token", report)
		}
		r.machine.came(t, "restarted", 2, 1, updated)
	})
}

// proves ROLL-2
func TestConfigurationThatIsNotNamedStays(t *testing.T) {
	wantedStory(t, nil, func(t *testing.T, r *running) {
		r.want(&protocol.Wanted{Lifecycle: "service", RestartToken: "r1"}, 1)
		if report := r.tells("restart"); report.GetConfigHash() != "" || report.GetRestarted() != "r1" {
			t.Errorf("report is %v, want no hash", report)
		}
		r.machine.came(t, "restarted", 2, 1, atFirst)
	})
}

// proves HEAL-1
func TestRestartIsCarriedOutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m, dir := newShard(t, "a"), newMachine(true), t.TempDir()
		m.stopFor = 2 * time.Second
		change := func(c *Config) { withOld(c); c.StateDir, c.Farewell, c.KeepWorkload = dir, FarewellRestart, true }
		first := startAgent(t, s, m, change)
		pass(time.Millisecond)
		first.want(restart("r1"), 3) // also while it is under way
		pass(time.Minute)
		m.came(t, "told three times", 2, 1, updated)
		first.want(config("c2", "hi"), 1)
		first.want(restart("r1"), 1)
		pass(time.Minute)
		m.came(t, "told once more after it was done", 2, 1, updated)
		first.cancel()
		<-first.done
		s.take()

		second := startAgent(t, s, m, change)
		second.want(restart("r1"), 3)
		pass(time.Minute)
		m.came(t, "told by the agent's next run", 2, 1, updated)
		if report := second.tells("next run"); report.GetRestarted() != "r1" || report.GetConfigHash() != "c2" {
			t.Errorf("report is %v, want what the run before had done", report)
		}
		second.want(restart("r2"), 1)
		pass(time.Minute)
		m.came(t, "another restart", 3, 2, updated)
		second.end()
	})
}

// If an agent is killed while it restarts the workload, the next agent does it again, since the
// progress is unknown.
//
// proves HEAL-1
func TestRestartThatWasCutShortIsRepeated(t *testing.T) {
	next := t.TempDir()
	wantedStory(t, nil, func(t *testing.T, r *running) {
		r.machine.mu.Lock()
		r.machine.stopFor = 10 * time.Second
		r.machine.mu.Unlock()
		both := restart("r1")
		both.Drain = drain("d1").GetDrain()
		r.want(both, 1)
		pass(5 * time.Second)
		r.hook.end() // something else is remembered meanwhile
		if report := r.tells("under way"); report.GetRestarted() != "" {
			t.Errorf("report is %v, though the workload is still being stopped", report)
		}
		state, err := os.ReadFile(r.state)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(next, "agent.json"), state, 0o600); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		if report := r.tells("done"); report.GetRestarted() != "r1" {
			t.Errorf("report is %v, want the token", report)
		}
		if data, _ := os.ReadFile(r.state); !strings.Contains(string(data), `"restarted":"r1"`) {
			t.Errorf("state is %s, want the token in it", data)
		}
	})
	wantedStory(t, func(c *Config) { c.StateDir = next }, func(t *testing.T, r *running) {
		r.machine.came(t, "at first", 1, 0, updated)
		r.want(restart("r1"), 1)
		r.machine.came(t, "told by the agent's next run", 2, 1, updated)
	})
}

// proves HEAL-1
func TestRestartOfAWorkloadThatHasEnded(t *testing.T) {
	wantedStory(t, nil, func(t *testing.T, r *running) {
		r.machine.exit(3)
		if r.tells("exit").GetHealthy() {
			t.Error("a service that ended is healthy")
		}
		r.want(config("c2", "hi"), 1)
		if s := r.machine.State(); s.Running {
			t.Error("a live update has started a workload that had ended")
		}
		r.want(restart("r1"), 1)
		r.machine.came(t, "restarted", 2, 0, updated)
		if report := r.tells("restart"); !report.GetHealthy() || report.GetRestarted() != "r1" ||
			report.GetWorkloadExit() != nil {
			t.Errorf("report is %v, want a healthy one", report)
		}
		r.machine.exit(4)
		r.want(config("c2", "hi"), 1)
		if s := r.machine.State(); s.Running {
			t.Error("the end of a restart's order has started a workload that had ended once more")
		}
	})
}

// proves ROLL-2
func TestConfigurationOutlivesTheAgent(t *testing.T) {
	dir := t.TempDir()
	keep := func(c *Config) { c.StateDir = dir }
	wantedStory(t, keep, func(_ *testing.T, r *running) { r.want(config("c2", "hi"), 1) })
	wantedStory(t, keep, func(t *testing.T, r *running) {
		r.machine.came(t, "next run", 1, 0, updated)
		pass(6 * interval) // when a report is due
		if report := r.tells("next run"); report.GetConfigHash() != "c2" {
			t.Errorf("report is %v, want the hash that was taken over by the run before", report)
		}
	})
}

// proves DRAIN-1, DET-1
func TestEndOfTheDrainHookIsReportedOnce(t *testing.T) {
	dir := t.TempDir()
	keep := func(c *Config) { c.StateDir = dir }
	wantedStory(t, keep, func(t *testing.T, r *running) {
		r.want(drain("d1"), 3)
		pass(6 * interval) // when a report is due
		if report := r.tells("draining"); report.GetDrained() != "" || !report.GetHealthy() {
			t.Errorf("report is %v, though the hook runs", report)
		}
		r.machine.came(t, "draining", 1, 0, atFirst)
		if d := r.hook.drain; d == nil || d.Token != "d1" || d.Vars["greeting"] != "hi" || d.Timeout != time.Minute ||
			len(d.Run) != 2 {
			t.Fatalf("hook was told %+v", d)
		}
		r.hook.end()
		if report := r.tells("hook has ended"); report.GetDrained() != "d1" {
			t.Errorf("report is %v, want the drain's token", report)
		}
		r.want(drain("d1"), 3)
		r.silent("told again")
		if !slices.Equal(r.hook.begun, []string{"d1"}) || len(r.hook.killed) > 0 {
			t.Errorf("hooks begun: %q, killed: %q", r.hook.begun, r.hook.killed)
		}
	})
	wantedStory(t, keep, func(t *testing.T, r *running) {
		r.want(drain("d1"), 1)
		pass(6 * interval) // when a report is due
		if report := r.tells("next run"); report.GetDrained() != "d1" || len(r.hook.begun) > 0 {
			t.Errorf("report of the next run is %v, hooks begun: %q", report, r.hook.begun)
		}
		r.want(drain("d2"), 1)
		if !slices.Equal(r.hook.begun, []string{"d2"}) {
			t.Errorf("hooks begun for another drain: %q", r.hook.begun)
		}
	})
}

// proves DET-15
func TestDrainThatIsCalledOffKillsTheHook(t *testing.T) {
	wantedStory(t, nil, func(t *testing.T, r *running) {
		r.want(drain("d1"), 1)
		r.want(config("c2", "hi"), 1)
		if !slices.Equal(r.hook.killed, []string{"d1"}) {
			t.Errorf("hooks killed: %q, want d1", r.hook.killed)
		}
		pass(6 * interval) // when a report is due
		if report := r.tells("called off"); report.GetDrained() != "" || !report.GetHealthy() {
			t.Errorf("report is %v", report)
		}
		r.machine.came(t, "called off", 1, 0, atFirst)
		r.want(drain("d2"), 1)
		retired := &protocol.Refused{Reason: protocol.Refused_RETIRED, Revision: 7, Phase: protocol.PhaseDeleting}
		r.shard.order(t, "a", &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Refused{Refused: retired}})
		if !slices.Equal(r.hook.killed, []string{"d1", "d2"}) {
			t.Errorf("hooks killed: %q, want the retired instance's too", r.hook.killed)
		}
	})
}

// proves REC-12
func TestTaskThatIsDoneIsHealthy(t *testing.T) {
	for name, c := range map[string]struct {
		bootstrap, wanted string
		code              int
		healthy           bool
	}{
		"task by the document":     {bootstrap: "task", code: 0, healthy: true},
		"task by the record":       {wanted: "task", code: 0, healthy: true},
		"task that failed":         {bootstrap: "task", wanted: "task", code: 3},
		"service":                  {bootstrap: "service", wanted: "service"},
		"neither was told":         {},
		"a service by now":         {bootstrap: "task", wanted: "service"},
		"a task, and no news else": {bootstrap: "service", wanted: "task", healthy: true},
	} {
		t.Run(name, func(t *testing.T) {
			wantedStory(t, func(c2 *Config) { c2.Bootstrap.Lifecycle = c.bootstrap }, func(t *testing.T, r *running) {
				r.machine.exit(c.code)
				r.want(&protocol.Wanted{Lifecycle: c.wanted}, 1)
				report := r.tells("exit")
				if report.GetHealthy() != c.healthy || report.GetWorkloadExit() == nil ||
					int(report.GetWorkloadExit().GetCode()) != c.code {
					t.Errorf("report is %v, want healthy %t and an exit with %d", report, c.healthy, c.code)
				}
				if r.machine.starts != 1 {
					t.Errorf("workload was started %d times", r.machine.starts)
				}
			})
		})
	}
}

// The hook of an agent that ends goes with the machine, and waits for the next agent where there
// will be one.
//
// proves DET-8
func TestHookIsKeptWithTheWorkload(t *testing.T) {
	for _, keep := range []bool{false, true} {
		wantedStory(t, func(c *Config) { c.Farewell, c.KeepWorkload = FarewellRestart, keep },
			func(t *testing.T, r *running) {
				r.want(drain("d1"), 1)
				r.cancel()
				pass(time.Minute)
				if !r.hook.closed || r.hook.kept != keep {
					t.Errorf("hook closed: %t, kept: %t, want %t", r.hook.closed, r.hook.kept, keep)
				}
			})
	}
}

// A drill kills the workload or the agent once, however often it is sent; the workload counts as
// failed by itself. An unknown kind does nothing.
//
// proves DAY-6
func TestDrillIsCausedOnce(t *testing.T) {
	wantedStory(t, nil, func(t *testing.T, r *running) {
		w := config("c2", "hi")
		r.want(w, 1)
		r.shard.take()
		w.Drill = &protocol.Drill{Token: "d1", Kind: "workload"}
		r.want(w, 3)
		pass(time.Millisecond)
		if report := r.tells("workload killed"); report.GetWorkloadExit() == nil || report.GetHealthy() {
			t.Errorf("report is %v, want an exit", report)
		}
		w.Drill = &protocol.Drill{Token: "d2", Kind: "else"}
		r.want(w, 1)
		w.Drill = &protocol.Drill{Token: "d3", Kind: "agent"}
		r.want(w, 3)
		r.machine.mu.Lock()
		defer r.machine.mu.Unlock()
		if r.machine.crashed != 1 || r.machine.killed != 1 {
			t.Errorf("%d crashes of the agent, %d of the workload, want 1 each", r.machine.crashed, r.machine.killed)
		}
	})
}
