package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/provider"
)

// held is a check that fails where there is a file "ill", and waits as long as there is a file
// "hold".
func held() *protocol.Wanted {
	script := "while [ -e hold ]; do sleep 0.02; done; test ! -e ill"
	return &protocol.Wanted{ConfigHash: "c1", Run: serving, Checks: []*protocol.CheckSpec{{
		Name: "app", Interval: durationpb.New(100 * time.Millisecond), Timeout: durationpb.New(time.Minute),
		UnhealthyThreshold: 3, HealthyThreshold: 3,
		Kind: &protocol.CheckSpec_Exec{Exec: &protocol.ExecCheck{Run: []string{"sh", "-c", script}}},
	}}}
}

func (b box) put(name string) {
	b.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), nil, 0o600); err != nil {
		b.Fatal(err)
	}
}

func (b box) drop(name string) {
	b.Helper()
	if err := os.Remove(filepath.Join(b.dir, name)); err != nil {
		b.Fatal(err)
	}
}

// app returns the state of the check in the next report that has it.
func (g *gateway) app() *protocol.Check {
	g.t.Helper()
	var app *protocol.Check
	g.await("report of the check", func(m *protocol.AgentMessage) bool {
		for _, c := range m.GetReport().GetChecks() {
			if c.GetName() == "app" {
				app = c
			}
		}
		return app != nil
	})
	return app
}

// decided waits for a verdict that results have led to.
func (g *gateway) decided(healthy bool) *protocol.Check {
	g.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if c := g.app(); c.GetHealthy() == healthy && !c.GetPending() {
			return c
		}
	}
	g.t.Fatalf("check is not decided to be healthy %t within %s", healthy, patience)
	return nil
}

// keeps waits until the agent's state file has a verdict that results have led to. It is written
// beside the reports, since a disk may hang.
func (b box) keeps(healthy bool) {
	b.Helper()
	var state struct {
		Verdicts struct {
			Checks map[string]struct{ Healthy, Pending bool }
		}
	}
	file := filepath.Join(b.dir, "agent.json")
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		data, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(data, &state) != nil {
			continue
		}
		if c, ok := state.Verdicts.Checks["app"]; ok && c.Healthy == healthy && !c.Pending {
			return
		}
	}
	b.Fatalf("%s has no verdict that the check is healthy %t within %s", file, healthy, patience)
}

// An agent that was killed and restarted reports what the previous one knew, until its own results
// suffice for another verdict. After another boot of the machine it knows nothing.
//
// proves DET-9
func TestVerdictOutlivesAKilledAgent(t *testing.T) {
	g := startGateway(t)
	g.wanted.Store(held())
	b := newBox(t, serving, g)
	p := b.agent()
	g.decided(true)

	again := func(was bool, env ...string) {
		t.Helper()
		b.keeps(was)
		b.put("hold")
		p.signal(syscall.SIGKILL)
		p.ended()
		p = b.agent(env...)
		g.hello()
	}
	kept := func(what string, healthy bool, why string) {
		t.Helper()
		for range 3 {
			if c := g.app(); c.GetHealthy() != healthy || c.GetPending() || c.GetWhy() != why || c.GetAgainst() != 0 {
				t.Fatalf("%s: its successor, which has no result yet, reports %v", what, c)
			}
		}
	}

	again(true)
	b.put("ill")
	kept("one that was well", true, "")
	b.drop("hold")
	if c := g.decided(false); c.GetWhy() != "ended with exit code 1" {
		t.Errorf("after three failures: %v", c)
	}

	again(false)
	b.drop("ill")
	kept("one that was ill", false, "ended with exit code 1")
	b.drop("hold")
	g.decided(true)

	again(true, provider.EnvBootID+"=boot-2")
	if c := g.app(); c.GetHealthy() || !c.GetPending() || c.GetWhy() != "not checked yet" {
		t.Errorf("another boot of one that was well reports %v", c)
	}
	b.drop("hold")
	g.decided(true)
}
