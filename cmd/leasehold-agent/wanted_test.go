package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
)

// saying is a workload that appends its process ID and a word to a file and keeps running.
var saying = []string{"sh", "-c", "echo $$ ${greeting} >>said; exec sleep 1000"}

// started lists what the workload has said: one line for each start.
func (b box) started() []string {
	data, _ := os.ReadFile(filepath.Join(b.dir, "said"))
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// reported waits for a healthy report that says this.
func (g *gateway) reported(what string, is func(*protocol.Report) bool) {
	g.t.Helper()
	g.await(what, func(m *protocol.AgentMessage) bool { return m.GetReport().GetHealthy() && is(m.GetReport()) })
}

// The wanted state is sent with every answer, to two agents one after the other, and carried out
// once.
//
// proves ROLL-2, HEAL-1, DRAIN-1
func TestWhatIsWantedIsDoneOnce(t *testing.T) {
	g := startGateway(t)
	b := newBox(t, serving, g)
	t.Cleanup(func() {
		for _, line := range b.started() {
			pid, _, _ := strings.Cut(line, " ")
			if pid, _ := strconv.Atoi(pid); pid > 1 {
				_ = syscall.Kill(-pid, syscall.SIGKILL)
			}
		}
	})
	first := b.agent()
	g.healthy()
	old := b.workload()

	wanted := &protocol.Wanted{ConfigHash: "c2", Run: saying, Vars: map[string]string{"greeting": "hi"}}
	g.wanted.Store(wanted)
	g.reported("report of the configuration", func(r *protocol.Report) bool { return r.GetConfigHash() == "c2" })
	if !lives(old) {
		t.Error("a live update has ended the workload")
	}
	g.wanted.Store(&protocol.Wanted{ConfigHash: "c2", Run: saying, Vars: wanted.GetVars(), RestartToken: "r1"})
	g.reported("report of the restart", func(r *protocol.Report) bool { return r.GetRestarted() == "r1" })
	if lives(old) {
		t.Error("the workload was not ended")
	}
	g.healthy()
	g.healthy()
	first.signal(syscall.SIGKILL)
	first.ended()

	g.wanted.Store(&protocol.Wanted{
		ConfigHash: "c2", Run: saying, Vars: wanted.GetVars(), RestartToken: "r1",
		Drain: &protocol.Drain{
			Token: "d1", Hook: []string{"sh", "-c", "echo ${greeting} >>drained; exit 3"},
			Timeout: durationpb.New(time.Hour),
		},
	})
	second := b.agent()
	g.reported("report of the drain", func(r *protocol.Report) bool {
		return r.GetDrained() == "d1" && r.GetRestarted() == "r1" && r.GetConfigHash() == "c2"
	})
	g.healthy()
	g.healthy()
	if data, _ := os.ReadFile(filepath.Join(b.dir, "drained")); string(data) != "hi\n" {
		t.Errorf("hook wrote %q, want one line", data)
	}
	starts := b.started()
	if len(starts) != 1 || !strings.HasSuffix(starts[0], " hi") {
		t.Fatalf("workload was started as %q, want once", starts)
	}
	second.signal(syscall.SIGTERM)
	second.ended()
	if pid, _ := strconv.Atoi(strings.Fields(starts[0])[0]); lives(pid) {
		t.Error("workload lives after its agent has ended")
	}
}
