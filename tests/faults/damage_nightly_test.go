//go:build nightly

package faults

import (
	"context"
	"fmt"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/cluster"
	"github.com/leasehold/leasehold/tests/faults/trouble"
	"github.com/leasehold/leasehold/tests/stage"
)

// One key of each kind in turn is overwritten with unreadable data. No machine is made or removed
// for it, and each key is mended by who holds it, or repaired.
//
// proves SAFE-10, SAFE-14, SAFE-16
func TestAKeyOfEachKindIsSpoiled(t *testing.T) {
	for n, how := range trouble.SpoiledHow() {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, cluster.Config{})
			before := c.Cloud.Existing()
			for i, kind := range trouble.SpoiledKinds() {
				damage(t, c, "record-spoiled", uint64(100*n+i),
					func(ctx context.Context, s *trouble.Site) (string, func() error, error) {
						return trouble.Spoil(ctx, s, kind, how)
					})
			}
			c.Finish()
			if after := c.Cloud.Existing(); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("there were %v, and there are %v", before, after)
			}
		})
	}
}

// All keys of each kind in turn are deleted by hand. No machine is made or removed for it, and they
// are created again by who holds them, or put back.
//
// proves SAFE-10, SAFE-14, SAFE-15, SAFE-16
func TestThePrefixOfEachKindIsDeleted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{})
	before := c.Cloud.Existing()
	for i, kind := range trouble.DeletedKinds() {
		damage(t, c, "records-deleted", uint64(i),
			func(ctx context.Context, s *trouble.Site) (string, func() error, error) {
				return trouble.DeleteAll(ctx, s, kind)
			})
	}
	c.Finish()
	if after := c.Cloud.Existing(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("there were %v, and there are %v", before, after)
	}
}

// etcd is put back to a snapshot from before three machines were made. They run on, the shard holds
// itself, and they are adopted into the slots that they had.
//
// proves SAFE-12, SAFE-14, REC-8
func TestMachinesYoungerThanEtcdsDataAreAdopted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{})
	c.Await("a calm moment", func() bool { return c.AwaitQuiet(cluster.Bound) == "" })
	snapshot, err := c.SaveSnapshot(t.Context())
	must(t, err)
	must(t, c.OperatorMust("group", "scale", "web", "15"))
	c.Await("three more", func() bool { return c.Complete("web", 15) })
	before := stage.Records[store.Instance](c.Stage, store.KindInstances)
	over := c.Trouble("etcd-older", false)
	must(t, c.RestoreSnapshot(snapshot))
	c.Await("the shard holding itself", func() bool { return c.Hold() != "" })
	must(t, c.OperatorMust("group", "scale", "web", "15"))
	must(t, c.PutRight())
	c.Await("all of them", func() bool { return c.Complete("web", 15) })
	after := stage.Records[store.Instance](c.Stage, store.KindInstances)
	for id, was := range before {
		if is, known := after[id]; !known || !is.Record.Managed || is.Record.Slot != was.Record.Slot {
			t.Errorf("%s had slot %d, and is now %+v", id, was.Record.Slot, is.Record)
		}
	}
	over("than three of web")
	must(t, c.OperatorMust("group", "scale", "web", "12", "--confirm", "web"))
	c.Finish()
}
