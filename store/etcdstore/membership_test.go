package etcdstore

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/leasehold/leasehold/store"
)

// endsItself is a member that stops as soon as it is removed, before it can say that it was.
type endsItself struct {
	pb.UnimplementedClusterServer
	members []*pb.Member
	silent  atomic.Int32 // listings that are not answered yet
}

func (s *endsItself) MemberRemove(context.Context, *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	return nil, rpctypes.ErrGRPCStopped
}

func (s *endsItself) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	if s.silent.Add(-1) >= 0 {
		return nil, rpctypes.ErrGRPCStopped
	}
	return &pb.MemberListResponse{Header: &pb.ResponseHeader{}, Members: s.members}, nil
}

// A member that was asked to remove itself cannot answer: whether it is removed is what the others
// say, and where they still have it the outcome stays unknown.
//
// proves DAY-1
func TestRemovalThatWasNotAnswered(t *testing.T) {
	for name, test := range map[string]struct {
		members []*pb.Member
		want    error
	}{
		"removed":     {[]*pb.Member{{ID: 1}}, nil},
		"still there": {[]*pb.Member{{ID: 1}, {ID: 2}}, store.ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			cluster := &endsItself{members: test.members}
			cluster.silent.Store(2)
			server := grpc.NewServer()
			pb.RegisterClusterServer(server, cluster)
			go func() { _ = server.Serve(at) }()
			defer server.Stop()
			m, err := OpenMembers(t.Context(), Config{Endpoints: []string{at.Addr().String()}})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if err := m.Remove(t.Context(), 2); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
		})
	}
}
