//go:build nightly

package faults

import (
	"context"
	"fmt"
	"testing"

	"github.com/leasehold/leasehold/tests/faults/cluster"
	"github.com/leasehold/leasehold/tests/faults/trouble"
)

// One key of each kind in turn is overwritten with what nobody can read. No machine is made or removed for it, and each key is mended by who holds it, or repaired.
//
// proves SAFE-10, SAFE-14, SAFE-16
func TestAKeyOfEachKindIsSpoiled(t *testing.T) {
	for n, how := range trouble.SpoiledHow() {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, cluster.Config{})
			before := c.Cloud.Existing()
			for i, kind := range trouble.SpoiledKinds() {
				damage(t, c, "record-spoiled", uint64(100*n+i), func(ctx context.Context, s *trouble.Site) (string, func() error, error) {
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

// All keys of each kind in turn are deleted by hand. No machine is made or removed for it, and they are made anew by who holds them, or put back.
//
// proves SAFE-10, SAFE-14, SAFE-15, SAFE-16
func TestThePrefixOfEachKindIsDeleted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{})
	before := c.Cloud.Existing()
	for i, kind := range trouble.DeletedKinds() {
		damage(t, c, "records-deleted", uint64(i), func(ctx context.Context, s *trouble.Site) (string, func() error, error) {
			return trouble.DeleteAll(ctx, s, kind)
		})
	}
	c.Finish()
	if after := c.Cloud.Existing(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("there were %v, and there are %v", before, after)
	}
}
