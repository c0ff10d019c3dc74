package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/cluster"
	"github.com/leasehold/leasehold/tests/faults/trouble"
)

// damage has records be damaged for a while and put right, and fails if that cannot be done.
func damage(t *testing.T, c *cluster.Cluster, kind string, seed uint64,
	do func(context.Context, *trouble.Site) (string, func() error, error),
) {
	t.Helper()
	s := &trouble.Site{Cluster: c, Rand: rand.New(rand.NewPCG(seed, seed))}
	over := c.Trouble(kind, false)
	what, end, err := do(t.Context(), s)
	if err != nil {
		t.Errorf("%s: %s: %v", kind, what, err)
	}
	c.Say("%s: %s", kind, what)
	if end != nil {
		c.Pass(c.TTL + c.TTL/2) // leases end meanwhile
		if err := end(); err != nil {
			t.Errorf("%s: %s: put it right: %v", kind, what, err)
		}
	}
	over(what)
}

// All records of instances are deleted by hand. Nothing is stopped and nothing made, and they are
// put back from etcd's history.
//
// proves SAFE-14, SAFE-15, SAFE-16
func TestTheRecordsOfAllInstancesAreDeleted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{})
	before := c.Cloud.Existing()
	damage(t, c, "records-deleted", 1, func(ctx context.Context, s *trouble.Site) (string, func() error, error) {
		what, end, err := trouble.DeleteAll(ctx, s, store.KindInstances)
		return what, func() error {
			if c.Hold() == "" {
				t.Error("the shard did not put itself on hold")
			}
			return end()
		}, err
	})
	c.Finish()
	if after := c.Cloud.Existing(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("there were %v, and there are %v", before, after)
	}
}

// All of etcd's data is removed while replicas and agents run, and nothing is left to restore. The
// shard is recovered: every machine is put back into its slot.
//
// proves SAFE-14, SAFE-15, SAFE-17
func TestEtcdIsEmptiedAndTheShardRecovered(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{})
	before := c.Cloud.Existing()
	settings, err := c.Settings(t.Context())
	must(t, err)
	damage(t, c, "etcd-emptied", 1, func(context.Context, *trouble.Site) (string, func() error, error) {
		err := c.EmptyEtcd()
		return "and recovered", func() error { return c.Recover(settings) }, err
	})
	c.Finish()
	if after := c.Cloud.Existing(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("there were %v, and there are %v", before, after)
	}
}
