package etcdstore

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// compactable adds what the suite wants of a store beyond the contract.
type compactable struct{ *Store }

func (c compactable) Compact(ctx context.Context, rev store.Revision) error {
	_, err := c.data.Compact(ctx, int64(rev), clientv3.WithCompactPhysical())
	return err
}

func TestContract(t *testing.T) {
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	storetest.Run(t, func(t *testing.T) store.Store {
		return compactable{openStore(t, Config{Endpoints: []string{server.Endpoint()}})}
	})
}
