package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/leasehold/leasehold/store"
)

// Grant makes a lease. etcd counts whole seconds and raises a TTL below its minimum (2s with its
// usual election timeout): the returned lease has the granted TTL.
func (s *Store) Grant(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	if ttl <= 0 {
		return store.Lease{}, fmt.Errorf("grant lease of %s: must be longer than nothing", ttl)
	}
	seconds := int64((ttl + time.Second - 1) / time.Second)
	from := time.Now()
	var resp *pb.LeaseGrantResponse
	err := write(ctx, func(opts ...grpc.CallOption) error {
		var err error
		resp, err = pb.NewLeaseClient(s.leases.ActiveConnection()).LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: seconds},
			opts...)
		return err
	})
	if err != nil {
		return store.Lease{}, fmt.Errorf("grant lease of %s: %w", ttl, err)
	}
	lease := store.Lease{ID: store.LeaseID(resp.ID), TTL: time.Duration(resp.TTL) * time.Second, From: from}
	s.renewer.ends.learn(lease.ID, lease.Ends())
	return lease, nil
}

func (s *Store) Renew(ctx context.Context, id store.LeaseID) (store.Lease, error) {
	lease, err := s.renewer.renew(ctx, id)
	if err != nil {
		return store.Lease{}, fmt.Errorf("renew lease %s: %w", id, err)
	}
	return lease, nil
}

func (s *Store) Revoke(ctx context.Context, id store.LeaseID) error {
	err := write(ctx, func(opts ...grpc.CallOption) error {
		_, err := pb.NewLeaseClient(s.leases.ActiveConnection()).LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: int64(id)},
			opts...)
		return err
	})
	if err != nil && !errors.Is(err, store.ErrLeaseGone) {
		return fmt.Errorf("revoke lease %s: %w", id, err)
	}
	s.renewer.ends.forget(id)
	return nil
}
