package agent

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/certificate"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/provider"
)

// story runs an agent against replicas in memory, in a synctest bubble. It begins when the agent
// was welcomed and acknowledged, at replica a if that one serves.
func story(t *testing.T, replicas []string, workload bool, before func(*shard), tell func(t *testing.T, r *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newShard(t, replicas...)
		if before != nil {
			before(s)
		}
		r := startAgent(t, s, newMachine(workload), nil)
		pass(time.Millisecond)
		tell(t, r)
		r.end()
	})
}

// proves DET-1, DET-8
func TestReportsAtOnceAndThenEveryInterval(t *testing.T) {
	story(t, []string{"a"}, false, nil, func(t *testing.T, r *running) {
		first := r.shard.take()
		wantHeard(t, first, "a hello", "a report 1 healthy")
		hello := first[0].message.GetHello()
		if hello.GetProtocol() != protocol.Oldest || hello.GetNewestProtocol() != protocol.Newest ||
			hello.GetShard() != "shard-1" || hello.GetInstance() != "web-0-a" ||
			hello.GetBootId() != "boot-1" ||
			hello.GetEpoch() != 1 || hello.GetAgentVersion() != "test" || hello.GetAgentStarted() == nil {
			t.Errorf("hello is %v", hello)
		}
		pass(2 * interval)
		wantHeard(t, r.shard.take(), "a heartbeat 2 of 1", "a heartbeat 3 of 1")
		r.cancel()
		pass(time.Millisecond)
		wantHeard(t, r.shard.take(), "a goodbye SHUTDOWN")
	})
}

// proves DET-1, DET-9, DET-19
func TestEndOfTheWorkloadIsReportedAtOnce(t *testing.T) {
	story(t, []string{"a"}, true, nil, func(t *testing.T, r *running) {
		r.shard.take()
		pass(interval / 2)
		r.shard.take()
		r.machine.exit(3)
		got := r.shard.take()
		if len(got) != 1 {
			t.Fatalf("heard %q, want one report at once", summary(got))
		}
		report := got[0].message.GetReport()
		exit := report.GetWorkloadExit()
		if report.GetHealthy() || report.GetWhy() != "process: workload ended with exit code 3" ||
			exit.GetCode() != 3 || string(exit.GetOutput()) != "last words" {
			t.Errorf("report is %v", report)
		}
		if c := report.GetChecks(); len(c) != 1 || c[0].GetName() != "process" || c[0].GetHealthy() {
			t.Errorf("checks are %v", c)
		}
		if r.machine.starts != 1 {
			t.Errorf("workload was started %d times: only the coordinator may do that", r.machine.starts)
		}
	})
}

// proves DET-13
func TestReportOfAMachineThatRuns(t *testing.T) {
	story(t, []string{"a"}, true, nil, func(t *testing.T, r *running) {
		pass(interval)
		report := lastReport(t, r.shard.take())
		if !report.GetHealthy() || len(report.GetChecks()) != 1 || !report.GetChecks()[0].GetHealthy() ||
			report.GetHost().GetCpuPercent() != 12 || report.GetMachineUptime().AsDuration() != time.Hour ||
			report.GetSent() == nil || report.GetWorkloadExit() != nil {
			t.Errorf("report is %v", report)
		}
	})
}

// proves DET-14, DET-18
func TestLostStreamIsRetriedAtOnceElsewhere(t *testing.T) {
	story(t, []string{"a", "b"}, false, nil, func(t *testing.T, r *running) {
		pass(interval)
		r.shard.take()
		r.shard.replicas["a"].stop()
		pass(time.Millisecond)
		got := r.shard.take()
		wantHeard(t, got, "b hello", "b report 1 healthy")
		if h := got[0].message.GetHello(); h.GetEpoch() != 2 || h.GetLease() != 101 {
			t.Errorf("hello has epoch %d and lease %d, want 2 and 101", h.GetEpoch(), h.GetLease())
		}
	})
}

// proves DET-14
func TestComesBackAfterAllReplicasWereGone(t *testing.T) {
	story(t, []string{"a", "b"}, true, nil, func(t *testing.T, r *running) {
		for _, n := range r.shard.names() {
			r.shard.replicas[n].stop()
		}
		pass(time.Hour)
		if s := r.machine.State(); !s.Running || r.machine.starts != 1 {
			t.Errorf("workload was touched: %+v, %d starts", s, r.machine.starts)
		}
		r.shard.take()
		for _, n := range r.shard.names() {
			r.shard.replicas[n].start()
		}
		pass(maxReconnect)
		got := r.shard.take()
		if len(got) < 2 || got[0].message.GetHello() == nil || got[1].message.GetReport() == nil {
			t.Errorf("heard %q within the longest back-off, want a hello and reports", summary(got))
		}
	})
}

// proves DET-8, DET-14
func TestMovesWhenReportsRenewNothing(t *testing.T) {
	for name, act := range map[string]script{"nack": {nack: true}, "no answer": {mute: true}} {
		t.Run(name, func(t *testing.T) {
			story(t, []string{"a", "b"}, false, nil, func(t *testing.T, r *running) {
				r.shard.take()
				r.shard.act("a", act)
				pass(2*interval + time.Second)
				got := summary(r.shard.take())
				i := slices.Index(got, "b hello")
				j := slices.Index(got, "a goodbye MOVING")
				if i < 0 || j < i {
					t.Fatalf("heard %q, want a hello at b and then a goodbye at a", got)
				}
				pass(interval)
				for _, h := range r.shard.take() {
					if h.replica != "b" {
						t.Errorf("heard %q, want reports at b alone", summary([]heard{h}))
					}
				}
			})
		})
	}
}

// proves DET-14
func TestStaysWhereItIsIfNobodyElseWelcomesIt(t *testing.T) {
	for name, other := range map[string]script{
		"refuses": {refuse: &protocol.Refused{Reason: protocol.Refused_UNAVAILABLE}},
		"hangs":   {hang: true},
		"closes":  {refuse: &protocol.Refused{}},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, []string{"a", "b"}, false, func(s *shard) { s.act("b", other) }, func(t *testing.T, r *running) {
				r.shard.take()
				r.shard.act("a", script{nack: true})
				pass(3 * interval)
				got := summary(r.shard.take())
				if !slices.Contains(got, "b hello") || !slices.Contains(got, "a report 4 healthy") ||
					slices.Contains(got, "a goodbye MOVING") {
					t.Errorf("heard %q, want b asked, and reports at a going on", got)
				}
			})
		})
	}
}

// proves DET-8
func TestMovesWhenAsked(t *testing.T) {
	story(t, []string{"a", "b"}, false, nil, func(t *testing.T, r *running) {
		r.shard.take()
		r.shard.order(t, "a",
			&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Move{Move: &protocol.Move{Reason: "going down"}}})
		got := summary(r.shard.take())
		for _, want := range []string{"b hello", "a goodbye MOVING", "b report 1 healthy"} {
			if !slices.Contains(got, want) {
				t.Errorf("heard %q, want %q too", got, want)
			}
		}
	})
}

// proves DET-18, SAFE-14
func TestRefusalsThatLeaveTheWorkloadAlone(t *testing.T) {
	for _, reason := range []protocol.Refused_Reason{
		protocol.Refused_UNAVAILABLE, protocol.Refused_BOOT_CONFLICT, protocol.Refused_WRONG_SHARD,
		protocol.Refused_MALFORMED,
		protocol.Refused_SUPERSEDED, protocol.Refused_REASON_UNSPECIFIED, protocol.Refused_UNKNOWN,
		protocol.Refused_RETIRED, // it names no record
	} {
		t.Run(reason.String(), func(t *testing.T) {
			act := script{refuse: &protocol.Refused{Reason: reason}}
			story(t, []string{"a"}, true, func(s *shard) { s.act("a", act) }, func(t *testing.T, r *running) {
				pass(10 * time.Minute)
				if s := r.machine.State(); !s.Running {
					t.Errorf("workload is %+v, want it to run", s)
				}
				if n := len(r.shard.take()); n < 20 || n > 60 {
					t.Errorf("asked %d times in ten minutes, want about every 30s", n)
				}
				r.shard.act("a", script{})
				pass(maxReconnect)
				if got := summary(r.shard.take()); !slices.Contains(got, "a report 1 healthy") {
					t.Errorf("heard %q after the refusals ended, want reports", got)
				}
			})
		})
	}
}

// proves DET-18
func TestStaleEpochIsRaised(t *testing.T) {
	story(t, []string{"a"}, false, func(s *shard) { s.epoch = 41 }, func(t *testing.T, r *running) {
		got := r.shard.take()
		wantHeard(t, got, "a hello", "a hello", "a report 1 healthy")
		if e := got[1].message.GetHello().GetEpoch(); e != 42 {
			t.Errorf("second hello has epoch %d, want 42", e)
		}
	})
}

// A replica that ends every stream after its welcome must not be run against in a circle.
//
// proves DET-14
func TestStreamThatEndsAtOnceIsNotRetriedInACircle(t *testing.T) {
	story(t, []string{"a"}, false, func(s *shard) { s.act("a", script{closing: true}) },
		func(t *testing.T, r *running) {
			pass(10 * time.Minute)
			if n := len(r.shard.take()); n < 10 || n > 60 {
				t.Errorf("said hello %d times in ten minutes", n)
			}
		})
}

// proves DET-18, DET-8
func TestEpochListAndLeaseOutliveTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShard(t, "a", "b")
		dir := t.TempDir()
		m := newMachine(true)
		first := startAgent(t, s, m, func(c *Config) {
			c.StateDir, c.Farewell, c.KeepWorkload = dir, FarewellRestart, true
		})
		pass(time.Millisecond)
		first.cancel()
		if err := <-first.done; err != nil {
			t.Fatal(err)
		}
		got := summary(s.take())
		if got[len(got)-1] != "a goodbye RESTART" {
			t.Errorf("heard %q, want a goodbye that says restart", got)
		}
		if !m.kept || m.stops != 0 {
			t.Errorf("workload was not kept: %+v", m)
		}
		// The document knows a replica that is long gone; the agent knows better.
		second := startAgent(t, s, m, func(c *Config) { c.StateDir, c.Bootstrap.Coordinators = dir, []string{"gone"} })
		pass(time.Millisecond)
		hello := s.take()[0].message.GetHello()
		if hello.GetEpoch() != 2 || hello.GetLease() != 101 {
			t.Errorf("hello after a restart has epoch %d and lease %d, want 2 and 101", hello.GetEpoch(),
				hello.GetLease())
		}
		second.end()
		if m.stops != 1 {
			t.Errorf("workload was stopped %d times by an agent that does not keep it", m.stops)
		}
	})
}

// An agent that keeps its workload over a restart ends it when the machine goes down.
//
// proves DET-8
func TestWorkloadEndsWithTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := newShard(t, "a"), newMachine(true)
		r := startAgent(t, s, m, func(c *Config) {
			c.Farewell, c.KeepWorkload, c.GoesDown = FarewellRestart, true, func() bool { return true }
		})
		pass(time.Millisecond)
		r.cancel()
		if err := <-r.done; err != nil {
			t.Fatal(err)
		}
		if got := summary(s.take()); got[len(got)-1] != "a goodbye SHUTDOWN" || m.kept || m.stops != 1 {
			t.Errorf("heard %q; workload kept: %t, stopped %d times", got, m.kept, m.stops)
		}
		s.stop()
	})
}

// What a coordinator has sealed is kept, and shown with each hello, also by the next run.
//
// proves SAFE-17
func TestClaimIsKeptAndShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m, dir := newShard(t, "a"), newMachine(true), t.TempDir()
		run := func(show string, then ...*protocol.Wanted) {
			t.Helper()
			r := startAgent(t, s, m, func(c *Config) { c.StateDir, c.Farewell = dir, FarewellRestart })
			pass(time.Second)
			hello := s.take()[0].message.GetHello()
			if got := string(hello.GetClaim()); got != show {
				t.Errorf("hello shows %q, want %q", got, show)
			}
			for _, w := range then {
				s.order(t, "a", &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Wanted{Wanted: w}})
			}
			r.cancel()
			if err := <-r.done; err != nil {
				t.Errorf("Run: %v", err)
			}
			s.take()
		}
		run("", &protocol.Wanted{Claim: []byte("one")}, &protocol.Wanted{})
		run("one", &protocol.Wanted{Claim: make([]byte, protocol.MaxClaim+1)})
		run("one", &protocol.Wanted{Claim: []byte("two")})
		run("two")
		s.stop()
	})
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	good := Config{
		Bootstrap: provider.Bootstrap{Instance: "a", Shard: "s", Coordinators: []string{"x"}}, BootID: "b",
		StateDir: t.TempDir(),
	}
	m := newMachine(false)
	deps := Deps{
		Certificate: certificate.Unsecured{}, Logger: slog.New(slog.DiscardHandler), Host: m, Workload: m,
		Hook: newHook(), Checks: newChecker(), Notices: newOracle(), Evacuation: newOracle(), Fence: newSwitch(),
	}
	if _, err := New(good, deps); err != nil {
		t.Fatalf("New: %v", err)
	}
	for want, change := range map[string]func(*Config, *Deps){
		"no instance":     func(c *Config, _ *Deps) { c.Bootstrap.Instance = "" },
		"no coordinator":  func(c *Config, _ *Deps) { c.Bootstrap.Coordinators = nil },
		"LEASEHOLD_BOOT":  func(c *Config, _ *Deps) { c.BootID = "" },
		"state directory": func(c *Config, _ *Deps) { c.StateDir = "" },
		"reconnect_max":   func(c *Config, _ *Deps) { c.Bootstrap.ReconnectMax = "soon" },
		"farewell":        func(c *Config, _ *Deps) { c.Farewell = "adieu" },
		"only if":         func(c *Config, _ *Deps) { c.KeepWorkload = true },
		"certificate":     func(_ *Config, d *Deps) { d.Certificate = nil },
	} {
		cfg, deps := good, deps
		change(&cfg, &deps)
		if _, err := New(cfg, deps); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
}

func TestStateThatIsNotOursIsLeftAside(t *testing.T) {
	path := t.TempDir() + "/agent.json"
	for name, content := range map[string]string{
		"another instance": `{"schema":1,"instance":"web-9-z","epoch":7}`,
		"newer schema":     `{"schema":2,"instance":"web-0-a","epoch":7}`,
		"torn":             `{"schema":1,"inst`,
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if m, _, err := readMemory(path, "web-0-a"); err == nil || m.Epoch != 0 {
			t.Errorf("%s: read %+v, %v; want an error and nothing", name, m, err)
		}
	}
	if m, _, err := readMemory(path+".none", "web-0-a"); err != nil || m.Epoch != 0 {
		t.Errorf("no file: %+v, %v; want nothing", m, err)
	}
}

// An agent continues to run if it cannot write anything.
//
// proves DET-14
func TestStateDirectoryThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShard(t, "a")
		r := startAgent(t, s, newMachine(false), func(c *Config) { c.StateDir = "/proc/nowhere" })
		pass(interval)
		wantHeard(t, s.take(), "a hello", "a report 1 healthy", "a heartbeat 2 of 1")
		r.end()
	})
}

// A replica without room receives us on the existing connection when we return at the time that it
// gave us.
//
// proves SAFE-11
func TestConnectionToAReplicaWithoutRoomIsKept(t *testing.T) {
	story(t, []string{"a", "b"}, false, nil, func(t *testing.T, r *running) {
		pass(maxReconnect) // until there is a second connection
		r.shard.mu.Lock()
		dialled, shaken := r.shard.dialled["b"], r.shard.shaken
		r.shard.mu.Unlock()
		r.shard.act("b", script{refuse: &protocol.Refused{
			Reason: protocol.Refused_UNAVAILABLE,
			After:  durationpb.New(2 * time.Second),
		}})
		r.shard.take()
		r.shard.replicas["a"].stop()
		pass(2*time.Second - time.Millisecond)
		wantHeard(t, r.shard.take(), "b hello")
		r.shard.act("b", script{})
		pass(2 * time.Second)
		wantHeard(t, r.shard.take(), "b hello", "b report 1 healthy")
		r.shard.mu.Lock()
		defer r.shard.mu.Unlock()
		if n := r.shard.dialled["b"]; n != dialled || r.shard.shaken != shaken {
			t.Errorf("b was dialled %d times more, with %d handshakes", n-dialled, r.shard.shaken-shaken)
		}
	})
}

// proves SAFE-11
func TestConnectionToASecondReplicaIsKeptReady(t *testing.T) {
	story(t, []string{"a", "b"}, false, nil, func(t *testing.T, r *running) {
		r.shard.mu.Lock()
		if n := r.shard.dialled["b"]; n != 0 {
			t.Errorf("replica b was dialled at once: each of ten thousand agents is to do that at a time of its own")
		}
		r.shard.mu.Unlock()
		pass(maxReconnect)
		r.shard.mu.Lock()
		dialled, shaken := r.shard.dialled["b"], r.shard.shaken
		r.shard.mu.Unlock()
		if dialled != 1 || shaken != 2 {
			t.Fatalf("replica b was dialled %d times beside the stream to a, with %d handshakes in all; want once, and two",
				dialled, shaken)
		}
		r.shard.take()
		r.shard.replicas["a"].stop()
		pass(time.Millisecond)
		wantHeard(t, r.shard.take(), "b hello", "b report 1 healthy")
		r.shard.mu.Lock()
		defer r.shard.mu.Unlock()
		if n := r.shard.dialled["b"]; n != dialled {
			t.Errorf("moving over dialled b again (%d times)", n)
		}
		if r.shard.shaken != shaken {
			t.Errorf("moving over cost %d handshakes", r.shard.shaken-shaken)
		}
	})
}
