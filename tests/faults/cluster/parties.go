package cluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/disk"
	"github.com/leasehold/leasehold/tests/faults/network"
	"github.com/leasehold/leasehold/tests/stage"
	"github.com/leasehold/leasehold/tests/stage/swarm"
)

// way makes a party reachable through the network.
func (c *Cluster) way(to, from, address string) string {
	c.test.Helper()
	way, err := c.Net.Listen(network.Way{From: from, To: to, Leads: address})
	if err != nil {
		c.test.Fatal(err)
	}
	return way
}

// Impose applies a rule to the network until it is lifted, or all are.
func (c *Cluster) Impose(r network.Rule) (lift func()) {
	lift = c.Net.Impose(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lifts = append(c.lifts, lift)
	return lift
}

// liftAll lifts all rules.
func (c *Cluster) liftAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, lift := range c.lifts {
		lift()
	}
	c.lifts = nil
}

// source returns the address of a machine, by which the network knows it.
func (c *Cluster) source(instance string) string { return c.Net.Source(instance).String() }

// replicaFlags returns further flags of a replica of this cluster.
func (c *Cluster) replicaFlags(id string) []string {
	flags := []string{
		"-history", filepath.Join(c.dir, "history-"+id), "-zones", strings.Join(zones, ","),
		"-balancer", swarm.BalancerTarget,
	}
	flags = append(flags, c.authorityFlag()...)
	if c.cfg.Servers {
		return flags
	}
	if c.cfg.Numbers {
		if c.numbers[id] == "" {
			c.numbers[id] = addresses.FreeAddress(c.test)
		}
		flags = append(flags, "-http", c.numbers[id])
	}
	if d := c.disks[id]; d != nil {
		flags = append(flags, "-dir", d.Dir, "-pki", c.pkiOn(d.Dir))
	}
	return flags
}

// ReplicaIDs returns the names of all replicas, running or not.
func (c *Cluster) ReplicaIDs() []string {
	var ids []string
	for i := range replicas {
		ids = append(ids, string(rune('a'+i)))
	}
	return ids
}

// IsMember reports whether a party is a member of etcd.
func (c *Cluster) IsMember(party string) bool { return len(party) == 2 && party[0] == 'm' }

// IsReplica reports whether a party is a replica.
func (c *Cluster) IsReplica(party string) bool { return slices.Contains(c.ReplicaIDs(), party) }

// IsMachine reports whether a party is a machine.
func (c *Cluster) IsMachine(party string) bool { return !c.IsMember(party) && !c.IsReplica(party) }

// Zones returns the zones of the machines.
func (c *Cluster) Zones() []string { return zones }

// MemberCount returns how many members of etcd there are.
func (c *Cluster) MemberCount() int { return members }

// Replica returns the latest process of a replica.
func (c *Cluster) Replica(id string) stage.Actor {
	if c.cfg.Servers {
		return c.Hosts[slices.Index(c.ReplicaIDs(), id)].Replica
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Replicas[id]
}

// Member returns the latest process of a member of etcd.
func (c *Cluster) Member(i int) stage.Actor {
	if c.cfg.Servers {
		return c.Hosts[i].Member
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Etcd[i]
}

// RaiseReplica starts a replica that has ended. On a host the supervisor does so.
func (c *Cluster) RaiseReplica(id string) error {
	if c.cfg.Servers {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.Replicas[id].HasEnded() {
		return nil
	}
	c.StartReplica(id)
	return nil
}

// RaiseMember starts a member that has ended, without waiting. On a host the supervisor does so.
func (c *Cluster) RaiseMember(i int) error {
	if c.cfg.Servers {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Etcd[i].HasEnded() {
		c.StartMember(i)
	}
	return nil
}

// RaiseMembers starts several.
func (c *Cluster) RaiseMembers(all ...int) error {
	for _, i := range all {
		if err := c.RaiseMember(i); err != nil {
			return err
		}
	}
	return nil
}

// Patiently retries what must be done whatever happens in the run, such as ending a fault.
func (c *Cluster) Patiently(do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.T.Context()), stage.Longest)
	defer cancel()
	return do(ctx)
}

// LeaderNow returns the leading replica as far as the witness has seen; "" if none.
func (c *Cluster) LeaderNow() string {
	kv, there := store.LeaderNow(c.Witness.Now().Of(c.Keys.Of(store.KindLeader)))
	if !there {
		return ""
	}
	v, err := store.Decode[store.Leader](kv)
	if err != nil {
		return ""
	}
	return v.Record.Replica
}

// MachinesDisk returns the disk of all machines; nil if they have none of their own.
func (c *Cluster) MachinesDisk() *disk.Tmpfs { return c.disks["machines"] }

// ReplicaDisk returns the disk of a replica.
func (c *Cluster) ReplicaDisk(id string) *disk.Tmpfs { return c.disks[id] }

// pkiOn copies the shard's authorities to a disk, and returns their directory.
func (c *Cluster) pkiOn(dir string) string {
	c.test.Helper()
	place := filepath.Join(dir, "pki")
	if _, err := os.Stat(place); err == nil {
		return place
	}
	if out, err := exec.Command("cp", "-a", filepath.Join(c.dir, "pki"), place).CombinedOutput(); err != nil {
		c.test.Fatalf("copy the authorities: %v: %s", err, out)
	}
	return place
}
