package e2e

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// leaseless freezes the only replica until etcd has ended the leases of these instances.
func (c *cluster) leaseless(ids []string) {
	c.t.Helper()
	c.replicas["a"].Signal(syscall.SIGSTOP)
	c.await("the end of all leases", func() bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return c.h.alive(id).Present() })
	})
}

// The workload of an agent that cannot renew its lease has ended when that does; it starts again
// with the agent's return, and nothing was replaced.
//
// proves SAFE-9
func TestWorkloadEndsBeforeTheLease(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	ids := c.apply("web", 2) // asks for nothing
	c.groupFile("api", 2)
	c.rewrite("api", "lease_ttl: "+leaseTTL.String()+"}", "lease_ttl: "+leaseTTL.String()+", on_lease_lost: stop}")
	c.awaitComplete("api", 2)
	held := c.h.wanted("api")
	all := append(slices.Clone(ids), held...)
	slices.Sort(all)
	before := map[string]int{}
	for _, id := range all {
		before[id] = c.workload(id)
	}

	c.leaseless(held)
	for _, id := range held {
		if pid := c.workload(id); pid != 0 {
			t.Errorf("the lease of %s has ended, and its workload runs as process %d", id, pid)
		}
	}
	c.leaseless(ids)
	for _, id := range ids {
		if pid := c.workload(id); pid != before[id] {
			t.Errorf("%s was asked for nothing, its workload was process %d and is %d", id, before[id], pid)
		}
	}

	c.replicas["a"].Signal(syscall.SIGCONT)
	c.await("the workloads of those that come back", func() bool {
		return !slices.ContainsFunc(held, func(id string) bool { return c.workload(id) == 0 })
	})
	c.awaitComplete("web", 2)
	c.awaitComplete("api", 2)
	c.caughtUp()
	if ever := c.h.everRecorded(); !slices.Equal(ever, all) {
		t.Errorf("there were %v, and by now %v", all, ever)
	}
	c.heals("web", 2)
}

// Machines that power themselves off without a lease are found stopped when coordinators are back.
// That many at once are a storm, so nothing is replaced without an order.
//
// proves SAFE-9, SAFE-2
func TestMachinesThatPowerOffAreAStorm(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	c.groupFile("web", 3, "storm: {cooldown: 5s}")
	c.rewrite("web", "lease_ttl: "+leaseTTL.String()+"}", "lease_ttl: "+leaseTTL.String()+", on_lease_lost: poweroff}")
	c.awaitComplete("web", 3)
	ids := c.h.wanted("web")

	before := c.caughtUp()
	c.leaseless(ids)
	c.await("the end of the machines", func() bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return len(c.residentsOf(id)) > 0 })
	})
	c.replicas["a"].Signal(syscall.SIGCONT)
	c.awaitEntry("a storm", before, func(n noted) bool { return n.Rule == "SAFE-2" && n.Group == "web" })
	c.throughout(grace+5*time.Second, "nothing is replaced in a storm", func() bool {
		return len(c.h.entries(before, func(n noted) bool { return n.To == store.Deleting })) == 0
	})
	c.must("group", "override-storm", "web")
	c.awaitComplete("web", 3)
	for _, id := range c.h.wanted("web") {
		if slices.Contains(ids, id) {
			t.Errorf("%s was powered off, and counts as there", id)
		}
	}
}
