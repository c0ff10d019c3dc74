//go:build nightly

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A provider is taken out of the coordinators' file while a machine of it hangs. status says what
// keeps the record and which command ends it; while a coordinator has the provider, that command
// refuses. The machine is not forgotten: a coordinator that has the provider again removes it.
//
// proves PROV-10, REC-8
func TestAMachineWhoseProviderIsGone(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	// with starts a coordinator with these providers, each with machines of its own.
	with := func(id string, providers ...string) {
		text := "providers:\n"
		for _, name := range providers {
			dir := map[string]string{"old": c.machines, "process": filepath.Join(c.dir, "others")}[name]
			text += fmt.Sprintf("  %s: {process: {dir: %s, agent: [%s], zones: [local]}}\n", name, dir, c.agentScript())
		}
		c.options = []string{"--providers", c.file("providers-"+id+".yaml", text)}
		before := c.caughtUp()
		c.startReplica(id)
		c.awaitLeader(before, id)
	}
	with("a", "old")
	c.must("config", "set", "orphan_grace=1s")
	file := c.groupFile("web", 1)
	replaceIn(t, file, "provider: process", "provider: old")
	c.must("group", "apply", "-f", file, "--wait")
	c.awaitComplete("web", 1)
	id := c.h.wanted("web")[0]
	p := c.cli("instance", "delete", "--gone", id, "--confirm", id)
	if p.ExitCode() != 2 || !strings.Contains(p.stderr.String(), "coordinator a is configured with provider old") {
		t.Errorf("a provider has it: exit %d, %s", p.ExitCode(), p.stderr.String())
	}
	c.signalAgent(id, syscall.SIGSTOP)
	c.replicas["a"].Signal(syscall.SIGKILL)

	with("b", "process")
	replaceIn(t, file, "provider: old", "provider: process")
	c.must("group", "apply", "-f", file, "--wait")
	command := "leasehold instance delete --gone " + id
	c.await("status to name the way out", func() bool {
		out := c.cli("status").stdout.String()
		return strings.Contains(out, "no running coordinator is configured with provider old") &&
			strings.Contains(out, command) && c.h.instance(id).Record.Phase == store.Deleting
	})
	c.must("instance", "delete", "--gone", id, "--confirm", id)
	c.await("its record to end", func() bool { return !c.h.instance(id).Present() })
	if out := c.must("explain", id); !strings.Contains(strings.Join(strings.Fields(out), " "),
		"says that its machine is gone, and for") {
		t.Errorf("explain says\n%s", out)
	}

	c.replicas["b"].Signal(syscall.SIGKILL)
	before := c.caughtUp()
	with("c", "old", "process")
	c.awaitEntry("it to be found and removed", before, func(n noted) bool { return n.Instance == id && n.Rule == "REC-8" })
	c.await("its machine to be gone", func() bool { return !c.h.instance(id).Present() && len(c.residentsOf(id)) == 0 })
	if !c.h.complete("web", 1) {
		t.Error("the group is not complete")
	}
}
