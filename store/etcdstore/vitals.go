package etcdstore

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/leasehold/leasehold/store"
)

// Vitals asks one member which leader it knows, and the cluster for its revision.
//
// The revision comes from a linearizable read and not from the member's status: successive calls
// reach different members, a follower's own revision lags, and a revision that goes backwards must
// mean that a snapshot was restored. The read also fails where the leader is frozen or has lost its
// followers, which a status alone would not show.
func (s *Store) Vitals(ctx context.Context) (store.Vitals, error) {
	st, err := pb.NewMaintenanceClient(s.data.ActiveConnection()).Status(ctx, &pb.StatusRequest{},
		grpc.WaitForReady(true))
	if err != nil {
		return store.Vitals{}, fmt.Errorf("ask etcd for its status: %w", readError(ctx, err))
	}
	read, err := s.data.Get(ctx, store.Root, clientv3.WithKeysOnly())
	if err != nil {
		return store.Vitals{}, fmt.Errorf("ask etcd for its revision: %w", readError(ctx, err))
	}
	return store.Vitals{
		Cluster:  read.Header.ClusterId,
		Leader:   st.Leader,
		Term:     max(st.RaftTerm, read.Header.RaftTerm),
		Revision: store.Revision(read.Header.Revision),
	}, nil
}
