package agent

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/session"
)

// proves DET-18, REC-8, PROV-9
func TestRetiredStopsTheWorkloadAndKeepsAsking(t *testing.T) {
	story(t, []string{"a"}, true, nil, func(t *testing.T, r *running) {
		retired := &protocol.Refused{
			Reason: protocol.Refused_RETIRED, Message: "deleted by an operator", Revision: 7,
			Phase: protocol.PhaseGone,
		}
		r.shard.act("a", script{refuse: retired})
		r.shard.order(t, "a", &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Refused{Refused: retired}})
		if s := r.machine.State(); s.Running || r.machine.stops != 1 {
			t.Errorf("workload was not stopped: %+v", s)
		}
		r.shard.take()
		pass(2 * maxReconnect)
		asked := r.shard.take()
		if len(asked) < 2 || len(asked) > 4 {
			t.Errorf("heard %q in a minute, want to be asked every 15s to 30s", summary(asked))
		}
		for _, m := range asked {
			if got := m.message.GetHello().GetStopped(); got != retired.GetRevision() {
				t.Errorf("says that it has stopped for revision %d, want %d", got, retired.GetRevision())
			}
		}
		r.shard.act("a", script{})
		pass(maxReconnect + time.Second) // a second for the workload to start
		if s := r.machine.State(); !s.Running || r.machine.starts != 2 {
			t.Errorf("adopted, but the workload was not started again: %+v", s)
		}
		var last *protocol.Report
		for _, m := range r.shard.take() { // a heartbeat follows if the first report had the start already
			if report := m.message.GetReport(); report != nil {
				last = report
			}
		}
		if !last.GetHealthy() {
			t.Errorf("last report is %v, want the workload's start to be told", last)
		}
	})
}

// proves DET-18
func TestRetiredIsRememberedAcrossARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShard(t, "a")
		s.act("a", script{refuse: &protocol.Refused{Reason: protocol.Refused_UNAVAILABLE}})
		dir := t.TempDir()
		if err := writeMemory(dir+"/agent.json", "web-0-a",
			session.Memory{Epoch: 3, Condemned: session.Condemnation{Revision: 7, Phase: protocol.PhaseGone}},
			assignment{}); err != nil {
			t.Fatal(err)
		}
		m := newMachine(true)
		r := startAgent(t, s, m, func(c *Config) { c.StateDir = dir })
		pass(time.Hour)
		if m.starts != 0 {
			t.Error("workload of a retired instance was started")
		}
		r.end()
	})
}

// An agent of an earlier release took the absence of its record for its end. What it wrote down is
// no evidence: the workload runs, until a replica names the record.
//
// proves SAFE-14
func TestRetiredWithoutARecordIsForgottenByARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShard(t, "a")
		s.act("a", script{refuse: &protocol.Refused{Reason: protocol.Refused_RETIRED}})
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/agent.json", []byte(`{"schema":1,"instance":"web-0-a","epoch":7,"retired":true}`),
			0o600); err != nil {
			t.Fatal(err)
		}
		m := newMachine(true)
		r := startAgent(t, s, m, func(c *Config) { c.StateDir = dir })
		pass(time.Hour)
		m.is(t, "after an hour", true, 1, 0)
		r.end()
	})
}

// While its workload is ending, an agent does not report it as stopped; nor does an agent that
// nothing retired.
//
// proves PROV-9
func TestAWorkloadThatStillEndsHasNotStopped(t *testing.T) {
	story(t, []string{"a"}, true, nil, func(t *testing.T, r *running) {
		for _, m := range r.shard.take() {
			if n := m.message.GetHello().GetStopped(); n != 0 {
				t.Errorf("a running instance says that it has stopped for revision %d", n)
			}
		}
		r.machine.stopFor = 5 * time.Minute
		retired := &protocol.Refused{Reason: protocol.Refused_RETIRED, Revision: 7, Phase: protocol.PhaseDeleting}
		r.shard.act("a", script{refuse: retired})
		r.shard.order(t, "a", &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Refused{Refused: retired}})
		newer := &protocol.Refused{Reason: protocol.Refused_RETIRED, Revision: 9, Phase: protocol.PhaseDeleting}
		for _, c := range []struct {
			wait   time.Duration
			refuse *protocol.Refused
			want   int64
		}{{0, retired, 0}, {r.machine.stopFor, retired, 7}, {2 * maxReconnect, newer, 9}} {
			r.shard.act("a", script{refuse: c.refuse})
			pass(c.wait)
			r.shard.take()
			pass(2 * maxReconnect)
			got := r.shard.take()
			if len(got) == 0 || got[len(got)-1].message.GetHello().GetStopped() != c.want {
				t.Errorf("heard %v, want that it has stopped for %d", got, c.want)
			}
		}
	})
}

// An agent stops the workload of a retired instance even with the flag that keeps workloads.
//
// proves DET-18
func TestRetiredWorkloadIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShard(t, "a")
		m := newMachine(true)
		r := startAgent(t, s, m, func(c *Config) { c.Farewell, c.KeepWorkload = FarewellRestart, true })
		pass(time.Millisecond)
		retired := &protocol.Refused{Reason: protocol.Refused_RETIRED, Revision: 7, Phase: protocol.PhaseDeleting}
		s.order(t, "a", &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Refused{Refused: retired}})
		r.end()
		if m.kept || m.stops != 1 {
			t.Errorf("kept: %t, stopped %d times", m.kept, m.stops)
		}
	})
}
