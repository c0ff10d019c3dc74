//go:build nightly

package faults

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/cluster"
	"github.com/leasehold/leasehold/tests/faults/network"
	"github.com/leasehold/leasehold/tests/stage"
)

// Nothing happens for longer than a certificate lasts: each is renewed in time.
//
// proves FILE-2
func TestNothingHappensForALifeOfCertificates(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{})
	c.Pass(cluster.CertificateLife * 5 / 4)
	c.Finish()
}

// Everything there is, is started again, one after the other, while a change is brought to all
// machines of a group: members of etcd killed, replicas ended in order, agents killed.
//
// proves SAFE-5, SAFE-8, ELECT-2, ELECT-3, ROLL-1
func TestEverythingRestartsDuringARoll(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{})
	must(t, c.Edit(t.Context(), "web", "template"))
	over := c.Trouble("everything-restarts", false)
	for i := range c.Etcd {
		c.Member(i).Kill()
		must(t, c.RaiseMember(i))
		c.AwaitReady(c.Etcd[i])
	}
	for _, id := range c.ReplicaIDs() {
		c.Replica(id).Terminate()
		<-c.Replica(id).Ended()
		must(t, c.RaiseReplica(id))
		c.Await("replica "+id, func() bool {
			return stage.Records[store.Replica](c.Stage, store.KindReplicas)[id].Present()
		})
	}
	for _, id := range c.Cloud.Running() {
		_ = c.Cloud.KillAgent(id) // one that the roll has taken away meanwhile has no agent
	}
	over("members, replicas, agents")
	c.Finish()
}

// The leader is killed every few seconds, for a minute and a half, while operators go on with what
// they do and machines crash.
//
// proves SAFE-7, SAFE-8, ELECT-2, ELECT-3, HEAL-2
func TestLeaderIsKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{})
	over := c.Trouble("leaders-killed", false)
	until := time.Now().Add(90 * time.Second)
	kills := 0
	for ; time.Now().Before(until); kills++ {
		var leads string
		c.Await("a leader", func() bool { leads = c.LeaderNow(); return leads != "" && !c.Replica(leads).HasEnded() })
		c.Pass(time.Duration(500+700*(kills%4)) * time.Millisecond) // sometimes it has hardly begun
		c.Replica(leads).Kill()
		switch kills % 4 {
		case 0:
			_ = c.Operator(t.Context(), "group", "scale", "web", strconv.Itoa(10+kills%5), "--confirm", "web")
		case 1:
			if up := c.Cloud.Running(); len(up) > 0 {
				_ = c.Cloud.Crash(up[kills%len(up)])
			}
		case 2:
			_ = c.Edit(t.Context(), "db", "template")
		}
		must(t, c.RaiseReplica(leads))
	}
	over(fmt.Sprintf("%d of them", kills))
	c.Say("%d leaders were killed", kills)
	must(t, c.ApplyAgain("web"))
	c.Finish()
}

// A zone is lost: a third of all machines cannot be heard of. Nothing is replaced, until an
// operator says that this is no storm: then all that was in it is created again. When the zone is
// back, none is there twice.
//
// proves SAFE-2, DET-15, REC-3
func TestAZoneIsLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{})
	gone := func(id string) bool { return c.Cloud.Zone(id) == "a" }
	over := c.Trouble("zone-cut", true)
	mend := c.CutMachines(gone, network.Rule{Silent: true})
	c.Await("a storm", func() bool {
		return stage.Records[store.Status](c.Stage, store.KindStatus)["web"].Record.Storm != nil
	})
	c.Pass(3 * c.TTL)
	over("zone a, and no operator said that it was no storm")
	over = c.Trouble("zone-cut", false)
	for group := range c.Wanted() {
		_ = c.Operator(t.Context(), "group", "override-storm", group) // a group without losses has no storm
	}
	c.Await("replacements", func() bool {
		n := 0
		for _, in := range stage.Records[store.Instance](c.Stage, store.KindInstances) {
			if in.Record.Replaces != "" {
				n++
			}
		}
		return n > 0
	})
	c.Pass(c.TTL)
	must(t, mend())
	over("zone a, after an operator's word")
	c.Finish()
}

// A machine freezes for good, and another is cut off for good, while nothing else is wrong. No
// replica hears them, so their leases are not renewed, and others do their work.
//
// proves DET-2, DET-7
func TestWhoIsNotHeardHasNoLease(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{})
	up := c.Cloud.Running()
	frozen, off := up[0], up[len(up)-1]
	over := c.Trouble("machines-gone", false)
	must(t, c.Cloud.Freeze(frozen))
	mend := c.CutMachines(func(id string) bool { return id == off }, network.Rule{Silent: true})
	c.Pass(7 * c.TTL)
	must(t, mend())
	over(fmt.Sprintf("%s is frozen, %s is cut off", frozen, off))
	c.Finish()
}

// A replica no longer reaches etcd: first it hears nothing, then another is refused. Their agents
// find out, and go elsewhere.
//
// proves DET-14
func TestOneReplicaIsCutOffFromEtcd(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{})
	before := c.Cloud.Existing()
	for i, how := range []network.Rule{{Silent: true}, {Refuse: true, Reset: true}} {
		id := slices.DeleteFunc(c.ReplicaIDs(), func(id string) bool { return id == c.LeaderNow() })[i]
		over := c.Trouble("replica-cut-from-etcd", false)
		how.From, how.To = network.Any(id), c.IsMember
		lift := c.Impose(how)
		c.Await("every agent being served by another replica than "+id, func() bool {
			alive := stage.Records[store.Alive](c.Stage, store.KindAlive)
			return !slices.ContainsFunc(before, func(at string) bool {
				a := alive[at].Record
				return a.State != store.StreamOpen || a.Replica == id
			})
		})
		c.Pass(3 * c.TTL)
		lift()
		over(fmt.Sprintf("replica %s, silently: %t", id, how.Silent))
	}
	c.Finish()
	if after := c.Cloud.Existing(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("there were %v, and there are %v", before, after)
	}
}

// A machine freezes while it drains, so that only the leader can tell when that has lasted long
// enough, and every leader ends before. The next one goes on where it was.
//
// proves DRAIN-2, SAFE-13
func TestADrainEndsThoughLeadersChange(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{Groups: []cluster.Group{{
		Name: "slow", Size: 2,
		More: []string{`drain: {timeout: 30s, hook: [sleep, "1000"]}`},
	}}})
	id := c.Instances("slow")[0]
	over := c.Trouble("leaders-end", false)
	must(t, c.OperatorMust("instance", "replace", id))
	c.Await(id+" draining", func() bool {
		return stage.Records[store.Instance](c.Stage, store.KindInstances)[id].Record.Phase == store.Draining
	})
	must(t, c.Cloud.Freeze(id))
	leaders := 0
	for ; slices.Contains(c.Cloud.Existing(), id); leaders++ {
		if leaders == 8 {
			t.Errorf("%s may drain for 30s, and after %d leaders it still does", id, leaders)
			break
		}
		var leads string
		c.Await("a leader", func() bool { leads = c.LeaderNow(); return leads != "" && !c.Replica(leads).HasEnded() })
		c.Pass(c.Grace + 4*time.Second) // no timer ends within the grace
		c.Replica(leads).Terminate()
		<-c.Replica(leads).Ended()
		must(t, c.RaiseReplica(leads))
	}
	over(fmt.Sprintf("%d of them", leaders))
	c.Finish()
}

// The disk of one replica is full, then the disks of all machines, and a group is changed
// meanwhile.
//
// proves SAFE-5, DET-14
func TestDisksAreFull(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{Disks: true})
	leads := c.LeaderNow()
	over := c.Trouble("replica-disk-full", false)
	must(t, c.ReplicaDisk(leads).Fill())
	must(t, c.Edit(t.Context(), "db", "template"))
	c.Pass(2 * c.TTL)
	c.Replica(leads).Kill() // it starts again on a full disk
	must(t, c.RaiseReplica(leads))
	c.Pass(2 * c.TTL)
	must(t, c.ReplicaDisk(leads).Free())
	over(leads)
	over = c.Trouble("machines-disk-full", false)
	must(t, c.MachinesDisk().Fill())
	must(t, c.Edit(t.Context(), "web", "vars"))
	c.Pass(3 * c.TTL)
	must(t, c.MachinesDisk().Free())
	over("of all machines")
	c.Finish()
}
