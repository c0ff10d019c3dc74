package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// buildVersion builds a program of another version.
func (w *world) buildVersion(path, pkg, version string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		"-X main.version="+version, "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
}

// The agents of a group come to a signed version in waves, the first one alone, and their workloads
// go on. A version that ends at once, and one that no coordinator ever hears of, are taken back by
// the machine itself; no other machine gets them, no instance is replaced, and `status` says so.
//
// proves PROV-7
func TestAgentsAreUpgraded(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a") // it leads all the time, and b serves agents
	serve := filepath.Join(c.dir, "serve")
	if err := os.MkdirAll(serve, 0o700); err != nil {
		t.Fatal(err)
	}
	installed := filepath.Join(c.dir, "installed", "leasehold-agent")
	const agent, bad = "github.com/leasehold/leasehold/cmd/leasehold-agent", "./testdata/badagent"
	c.buildVersion(installed, agent, "v1.0.0")
	key := filepath.Join(c.dir, "release.key")
	c.must("upgrade", "key", key)
	script := fmt.Sprintf("#!/bin/sh\nexport LEASEHOLD_RELEASE_KEY=%s.pub\nexec %s\n", key, installed)
	if err := os.WriteFile(c.agentScript(), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c.options = []string{"--downloads", addresses.FreeAddress(t), "--agents", serve}
	// release has a version be served from now on.
	release := func(pkg, version string) {
		if b := c.replicas["b"]; b != nil {
			b.Signal(syscall.SIGTERM)
			c.waitEnd(b)
		}
		program := filepath.Join(serve, "leasehold-agent-linux-"+runtime.GOARCH)
		c.buildVersion(program, pkg, version)
		c.must("upgrade", "sign", "--release-key", key, "--release", version, program)
		c.startReplica("b")
	}
	release(agent, "v1.1.0")
	ids := c.apply("web", 3)
	workloads := map[string]int{}
	for _, id := range ids {
		for _, r := range c.residentsOf(id) {
			if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", r.PID)); err == nil && string(name) == "sleep\n" {
				workloads[id] = r.PID
			}
		}
	}
	agents := map[string]int{}
	for _, id := range ids {
		agents[id] = c.agent(id)
	}
	if len(workloads) != len(ids) {
		t.Fatalf("workloads: %v", workloads)
	}
	wave := func() store.AgentWave {
		if w := currentOf[store.Status](c.h, store.KindStatus)["web"].Record.Agents; w != nil {
			return *w
		}
		return store.AgentWave{}
	}
	// unharmed checks that each workload and each agent's process is the one that it was.
	unharmed := func(version string) {
		t.Helper()
		c.await("all agents to be of "+version, func() bool {
			for _, id := range ids {
				alive := c.h.alive(id).Record
				if alive.Agent != version || alive.State != store.StreamOpen || c.h.instance(id).Record.Upgrade != nil {
					return false
				}
			}
			return c.h.complete("web", 3)
		})
		c.unreplaced("web", ids)
		for _, id := range ids {
			if err := syscall.Kill(workloads[id], 0); err != nil {
				t.Errorf("the workload of %s has ended: %v", id, err)
			}
			if c.agent(id) != agents[id] {
				t.Errorf("the agent of %s is another process: %d, and was %d", id, c.agent(id), agents[id])
			}
		}
	}

	before := c.caughtUp()
	c.must("group", "apply", "-f", c.groupFile("web", 3, "agent: {version: auto, at_once: 100%, within: 10s}"))
	c.await("the wave to be complete", func() bool { return wave().Version == "v1.1.0" && wave().Done == 3 })
	unharmed("v1.1.0")
	offers := c.h.entries(before, func(n noted) bool { return n.What == "agent offered v1.1.0" })
	done := c.h.entries(before, func(n noted) bool { return n.What == "agent upgraded to v1.1.0" })
	if len(offers) != 3 || len(done) != 3 || offers[1].Revision < done[0].Revision {
		t.Errorf("offered %v, done %v: the first one goes alone", offers, done)
	}

	for _, version := range []string{"v1.2.0-ends", "v1.3.0-hangs"} {
		before := c.caughtUp()
		release(bad, version)
		c.await("the wave to stop", func() bool { return wave().Version == version && wave().Stopped != "" })
		unharmed("v1.1.0")
		if offers := c.h.entries(before, func(n noted) bool { return n.What == "agent offered "+version }); len(offers) != 1 {
			t.Errorf("%s was offered to %v", version, offers)
		}
		status := c.cli("status").stdout.String()
		if !strings.Contains(status, "did not come to "+version+": it went back") {
			t.Errorf("status does not say what is wrong:\n%s", status)
		}
	}
	c.heals("web", 3)

	// Told to end during a trial, an agent whose machine goes down ends the workload, which the
	// version on trial does not.
	release(bad, "v1.4.0-hangs")
	on := ""
	c.await("a trial", func() bool {
		for _, id := range c.h.wanted("web") {
			if c.h.instance(id).Record.Upgrade != nil && exec.Command("pgrep", "-P", fmt.Sprint(c.agent(id)), "-f",
				"/program/").Run() == nil {
				on = id
			}
		}
		return on != ""
	})
	pid := c.workloads([]string{on})
	c.signalAgent(on, syscall.SIGTERM)
	c.await("the end of the workload", func() bool { return !c.allRun(pid) })
	c.await("another machine", func() bool { return c.h.complete("web", 3) && !slices.Contains(c.h.wanted("web"), on) })
}
