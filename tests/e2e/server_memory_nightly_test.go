//go:build nightly

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The kernel kills a part of a host for want of memory: the replica, then the member. The part is
// started again and the log says why it ended. The other part keeps running, and no instance is
// replaced, restarted or without its lease.
//
// proves DAY-1
func TestAPartOfAServerRunsOutOfMemory(t *testing.T) {
	t.Parallel()
	c := newHosts(t)
	a := c.host("a")
	c.begin(a, "--init")
	c.commands(a)
	c.follow()
	c.must("config", "set", "reconnect_max="+reconnect.String(), "provider_poll=1s")
	c.must("group", "apply", "-f", c.groupFile("web", 3), "--wait")
	ids := c.h.wanted("web")
	running := c.workloads(ids)
	for part, other := range map[string]string{"replica": "member", "member": "replica"} {
		before, kept, starts := c.part(a, part), c.part(a, other), a.starts(part)
		m := newMemory(t, part)
		m.take(before)
		began := time.Now()
		c.await("the kernel to kill the "+part, func() bool { return m.kills() > 0 })
		c.await("another "+part, func() bool { return a.starts(part) == starts+1 })
		c.await("commands to be answered", func() bool { return c.cli("status").ExitCode() == 0 })
		t.Logf("%s: killed, started again and answering after %s", part, time.Since(began).Round(time.Millisecond))
		if c.part(a, other) != kept {
			t.Errorf("the %s was started again with the %s", other, part)
		}
		if log := a.run.stderr.String(); !strings.Contains(log, fmt.Sprintf(`"part":%q,"how":"signal: killed"`, part)) ||
			!strings.Contains(log, "it may have run out of memory") {
			t.Errorf("the log does not say how the %s ended: %s", part, log)
		}
		c.same("web", ids)
		if !c.allRun(running) {
			t.Errorf("the %s was killed, and workloads were %v", part, running)
		}
	}
	c.heals(ids)
}

// memory is a control group whose processes get no memory, beyond what they have when they enter.
type memory struct {
	t                  *testing.T
	dir, limit, events string
}

func newMemory(t *testing.T, name string) *memory {
	t.Helper()
	m := &memory{t: t, dir: "/sys/fs/cgroup/memory", limit: "memory.limit_in_bytes", events: "memory.oom_control"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil { // version 2
		m.dir, m.limit, m.events = "/sys/fs/cgroup", "memory.max", "memory.events"
		// systemd has done so; without it groups have no limits.
		if err := os.WriteFile(filepath.Join(m.dir, "cgroup.subtree_control"), []byte("+memory"), 0); err != nil {
			t.Fatal(err)
		}
	}
	m.dir = filepath.Join(m.dir, fmt.Sprintf("leasehold-test-%d-%s", os.Getpid(), name))
	if err := os.Mkdir(m.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(m.dir); err != nil {
			t.Error(err)
		}
	})
	return m
}

// take moves a process into the group.
func (m *memory) take(pid int) {
	m.t.Helper()
	for _, w := range [][2]string{{"cgroup.procs", strconv.Itoa(pid)}, {m.limit, "0"}} {
		if err := os.WriteFile(filepath.Join(m.dir, w[0]), []byte(w[1]), 0); err != nil {
			m.t.Fatal(err)
		}
	}
}

// kills is how many processes the kernel has killed in the group.
func (m *memory) kills() (n int) {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.dir, m.events))
	if err != nil {
		m.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if count, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "oom_kill "); ok {
			if n, err = strconv.Atoi(count); err != nil {
				m.t.Fatal(err)
			}
		}
	}
	return n
}
