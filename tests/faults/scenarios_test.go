package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/cluster"
	"github.com/leasehold/leasehold/tests/faults/network"
	"github.com/leasehold/leasehold/tests/stage"
)

// newCluster is the cluster of a scenario, with its groups complete.
func newCluster(t *testing.T, cfg cluster.Config) *cluster.Cluster {
	t.Helper()
	cfg.Programs = built
	cfg.Again = fmt.Sprintf("go test ./tests/faults -count=1 -v -run '^%s$'", t.Name())
	if cfg.Groups == nil {
		cfg.Groups = cluster.Usual()
	}
	c := cluster.New(t, cfg)
	c.Begin()
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// etcd has no quorum for ten leases. Meanwhile a machine crashes.
//
// proves SAFE-1, SAFE-5
func TestQuorumIsLostForTenLeases(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{})
	over := c.Trouble("quorum-lost", false)
	c.Member(0).Kill()
	c.Member(1).Kill()
	c.Pass(2 * time.Second)
	must(t, c.Cloud.Crash(c.Cloud.Running()[0]))
	c.Pass(10 * c.TTL)
	must(t, c.RaiseMembers(0, 1))
	over("for ten leases")
	c.Finish()
}

// Every machine is cut off from every replica for three leases, without a connection being closed,
// and returns.
//
// proves SAFE-2, DET-15
func TestAllMachinesAreCutOffAndReturn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{})
	before := c.Cloud.Existing()
	over := c.Trouble("machines-all-cut", true)
	mend := c.CutMachines(func(string) bool { return true }, network.Rule{Silent: true})
	c.Pass(3 * c.TTL)
	must(t, mend())
	over("for three leases")
	c.Finish()
	if after := c.Cloud.Existing(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("there were %v, and there are %v", before, after)
	}
}

// etcd is put back to a snapshot from an hour before: records of machines that are gone, no records
// of machines that there are, and revisions that start over. The shard holds itself, and nothing is
// made or removed until an operator has looked.
//
// proves SAFE-12
func TestEtcdIsRestoredFromASnapshot(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{})
	c.Await("a calm moment", func() bool { return c.AwaitQuiet(cluster.Bound) == "" })
	snapshot, err := c.SaveSnapshot(t.Context())
	must(t, err)
	// In the hour since then, machines came and went.
	must(t, c.OperatorMust("group", "scale", "web", "15"))
	c.Await("three more", func() bool { return c.Complete("web", 15) })
	for _, id := range c.Instances("db")[:2] {
		must(t, c.OperatorMust("instance", "replace", id))
		c.Await("the replacement of "+id,
			func() bool { return !slices.Contains(c.Cloud.Existing(), id) && c.Complete("db", 6) })
	}
	must(t, c.EverybodysClock(time.Hour))
	c.Pass(c.TTL)
	over := c.Trouble("etcd-restored", false)
	must(t, c.RestoreSnapshot(snapshot))
	before := c.Cloud.Existing()
	c.Await("the shard holding itself", func() bool { return c.Hold() != "" })
	c.Say("hold: %s", c.Hold())
	c.Pass(3 * c.TTL)
	if after := c.Cloud.Existing(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("not looked yet: there were %v, and there are %v", before, after)
	}
	over("an hour back")
	// An operator looks. Machines without a record are taken up again, since their agents are alive
	// and are not removed unasked (REC-8), and are then found to be too many.
	var adopted []string
	for _, id := range before {
		if _, known := stage.Records[store.Instance](c.Stage, store.KindInstances)[id]; !known {
			must(t, c.OperatorMust("instance", "adopt", id))
			adopted = append(adopted, id)
		}
	}
	must(t, c.OperatorMust("release"))
	for _, id := range adopted {
		c.Await("the record of "+id, func() bool {
			return stage.Records[store.Instance](c.Stage, store.KindInstances)[id].Present()
		})
		must(t, c.OperatorMust("instance", "delete", id, "--confirm", id))
	}
	c.Finish()
}
