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

// elected is a member that knows who leads, and counts how often it is asked to promote another.
type elected struct {
	pb.UnimplementedClusterServer
	pb.UnimplementedMaintenanceServer
	id, leader, term uint64
	members          []*pb.Member
	asked            atomic.Int32
}

func (s *elected) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return &pb.MemberListResponse{Header: &pb.ResponseHeader{}, Members: s.members}, nil
}

func (s *elected) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: s.id}, Leader: s.leader, RaftTerm: s.term}, nil
}

func (s *elected) MemberPromote(context.Context, *pb.MemberPromoteRequest) (*pb.MemberPromoteResponse, error) {
	s.asked.Add(1)
	return &pb.MemberPromoteResponse{Header: &pb.ResponseHeader{}}, nil
}

// A follower forwards a promotion without the client's certificate, is refused, and repeats it
// without a pause: so none is ever asked, neither while no member leads nor if it led before.
//
// proves DAY-1
func TestPromotionIsAskedOfTheLeaderAlone(t *testing.T) {
	for name, test := range map[string]struct {
		leaders, terms [3]uint64 // as each member says
		want           [3]int32  // how often each is asked
		err            error
	}{
		"the last one leads":         {[3]uint64{3, 3, 3}, [3]uint64{5, 5, 5}, [3]int32{0, 0, 1}, nil},
		"one still thinks it leads":  {[3]uint64{1, 3, 3}, [3]uint64{4, 5, 5}, [3]int32{0, 0, 1}, nil},
		"they elect":                 {[3]uint64{}, [3]uint64{6, 6, 6}, [3]int32{}, ErrNoLeader},
		"the leader does not answer": {[3]uint64{9, 9, 9}, [3]uint64{7, 7, 7}, [3]int32{}, ErrNoLeader},
	} {
		t.Run(name, func(t *testing.T) {
			var cluster [3]*elected
			var list []*pb.Member
			for i := range cluster {
				at, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				cluster[i] = &elected{id: uint64(i + 1), leader: test.leaders[i], term: test.terms[i]}
				server := grpc.NewServer()
				pb.RegisterClusterServer(server, cluster[i])
				pb.RegisterMaintenanceServer(server, cluster[i])
				list = append(list, &pb.Member{ID: cluster[i].id, ClientURLs: []string{"http://" + at.Addr().String()}})
				go func() { _ = server.Serve(at) }()
				defer server.Stop()
			}
			list = append(list, &pb.Member{ID: 4, IsLearner: true})
			for _, one := range cluster {
				one.members = list
			}
			m, err := OpenMembers(t.Context(), Config{Endpoints: list[0].ClientURLs})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if err := m.Promote(t.Context(), 4); !errors.Is(err, test.err) {
				t.Errorf("%v, want %v", err, test.err)
			}
			var asked [3]int32
			for i := range cluster {
				asked[i] = cluster[i].asked.Load()
			}
			if asked != test.want {
				t.Errorf("the members are asked %v times, want %v", asked, test.want)
			}
		})
	}
}
